#include "cli/lora_options.h"

#include <fmt/format.h>

#include "formats/json_section.h"
#include "formats/quote.h"

namespace octavo::cli {
namespace {

tl::unexpected<Error> refuse(std::string_view given, std::string_view why) {
  return fail(ErrorCode::invalid_argument, fmt::format("--lora-modules {}: {}", quote(given), why));
}

Result<LoraModule> parse_json_module(const std::string& text) {
  const auto root = parse_config_json(text, "--lora-modules");
  if (!root) return refuse(text, "is neither NAME=PATH nor an object of JSON");
  const JsonSection object(*root, "--lora-modules", "");
  for (const auto& [field, value] : root->items())
    if (field != "name" && field != "path" && field != "base_model_name")
      return refuse(text, fmt::format("has a field {}; there are name and path", quote(field)));
  const auto name = object.find_string("name"), path = object.find_string("path");
  if (!name || !*name || !path || !*path) return refuse(text, "needs name and path, two strings");
  return LoraModule{**name, **path};
}

}  // namespace

Result<LoraModule> parse_lora_module(const std::string& text) {
  if (text.starts_with('{')) return parse_json_module(text);
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
    return refuse(text, "is not NAME=PATH");
  return LoraModule{text.substr(0, equals), text.substr(equals + 1)};
}

Result<LoraOptions> read_lora_options(const OptionValues& options) {
  LoraOptions lora{.max_loras = options.integer("max_loras"),
                   .allow_runtime_updating = options.flag("allow_runtime_lora_updating")};
  for (const std::string& text : options.all<std::string>("lora_modules")) {
    OCTAVO_TRY(LoraModule module, parse_lora_module(text));
    lora.modules.push_back(std::move(module));
  }
  lora.enabled = options.flag("enable_lora") || !lora.modules.empty();
  if (!lora.modules.empty() && options.is_given("enable_lora") && !options.flag("enable_lora"))
    return fail(ErrorCode::invalid_argument,
                "--lora-modules are given and --no-enable-lora; leave one of them away");
  if (std::ssize(lora.modules) > lora.max_loras)
    return fail(ErrorCode::invalid_argument,
                fmt::format("--lora-modules names {} adapters and --max-loras is {}; raise it",
                            lora.modules.size(), lora.max_loras));
  return lora;
}

}  // namespace octavo::cli
