#include "cli/given_template.h"

#include "cli/input.h"

namespace octavo::cli {
namespace {

constexpr size_t kMaxTemplateBytes = 1 << 20;

}  // namespace

Result<std::string> read_template(const std::string& given) {
  const bool is_template =
      given.find("{{") != std::string::npos || given.find("{%") != std::string::npos;
  if (given.empty() || is_template) return given;
  return read_text_file(given, kMaxTemplateBytes);
}

Result<void> use_template(LoadedEngine& engine, const std::string& source) {
  if (source.empty()) return {};
  OCTAVO_TRY(ChatTemplate given, ChatTemplate::parse(source));
  use_chat_template(engine, std::move(given));
  return {};
}

}  // namespace octavo::cli
