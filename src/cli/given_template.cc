#include "cli/given_template.h"

#include <fmt/format.h>

#include "cli/input.h"
#include "text/builtin_templates.h"

namespace octavo::cli {
namespace {

constexpr size_t kMaxTemplateBytes = 1 << 20;

}  // namespace

Result<std::string> read_template(const std::string& given) {
  const bool is_template =
      given.find("{{") != std::string::npos || given.find("{%") != std::string::npos;
  if (given.empty() || is_template) return given;
  if (const BuiltinTemplate* builtin = find_builtin_template(given))
    return std::string(builtin->source);
  auto read = read_text_file(given, kMaxTemplateBytes);
  if (!read && read.error().code == ErrorCode::not_found)
    return fail(ErrorCode::not_found, fmt::format("{}; built-in chat templates are {}",
                                                  read.error().message, builtin_template_names()));
  return read;
}

Result<void> use_template(LoadedEngine& engine, const std::string& source) {
  if (source.empty()) return {};
  OCTAVO_TRY(ChatTemplate given, ChatTemplate::parse(source));
  return use_chat_template(engine, std::move(given));
}

}  // namespace octavo::cli
