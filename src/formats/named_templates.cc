#include "formats/named_templates.h"

namespace octavo {

void add_named_template(std::string_view name, std::string_view source, TokenizerSpec& spec) {
  if (name == "default") spec.chat_template = source;
  if (name == "tool_use") spec.tool_template = source;
  spec.template_names.emplace_back(name);
}

}  // namespace octavo
