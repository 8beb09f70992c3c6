#include "formats/peft_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>

#include "formats/json_section.h"
#include "formats/quote.h"

namespace octavo {
namespace {

constexpr int64_t kMaxRank = 1 << 16;
constexpr size_t kMaxPatterns = 4096;

using Json = nlohmann::json;

enum class Use {
  read,     // by what follows
  ignored,  // says how the adapter was trained, or where it came from
};
struct Field {
  std::string_view name;
  Use use;
};

// Every other field must ask for nothing.
constexpr std::array kFields = {
    Field{"peft_type", Use::read},
    Field{"r", Use::read},
    Field{"lora_alpha", Use::read},
    Field{"use_rslora", Use::read},
    Field{"rank_pattern", Use::read},
    Field{"alpha_pattern", Use::read},
    Field{"bias", Use::read},
    Field{"init_lora_weights", Use::read},
    Field{"auto_mapping", Use::ignored},
    Field{"base_model_name_or_path", Use::ignored},
    Field{"corda_config", Use::ignored},
    Field{"ensure_weight_tying", Use::ignored},
    Field{"eva_config", Use::ignored},
    Field{"exclude_modules", Use::ignored},
    Field{"inference_mode", Use::ignored},
    Field{"layers_pattern", Use::ignored},
    Field{"layers_to_transform", Use::ignored},
    Field{"loftq_config", Use::ignored},
    Field{"lora_dropout", Use::ignored},
    Field{"lora_ga_config", Use::ignored},
    Field{"megatron_core", Use::ignored},
    Field{"peft_version", Use::ignored},
    Field{"qalora_group_size", Use::ignored},  // of use_qalora
    Field{"revision", Use::ignored},
    Field{"runtime_config", Use::ignored},
    Field{"target_modules", Use::ignored},  // the tensors say it
    Field{"task_type", Use::ignored},
};

// What people meet, said in words.
struct Refusal {
  std::string_view field, why;
};
constexpr std::array kRefusals = {
    Refusal{"use_dora",
            "makes it a DoRA adapter, which scales every row of the matrix as well; "
            "only plain LoRA can be used"},
    Refusal{"modules_to_save",
            "gives whole new modules, which an adapter cannot bring here; merge "
            "the adapter into its model"},
    Refusal{"fan_in_fan_out",
            "is for models whose matrices are stored transposed, which no model "
            "here is"},
    Refusal{"lora_bias", "adds biases, which cannot be used"},
    Refusal{"target_parameters", "changes experts, which cannot be used"},
    Refusal{"alora_invocation_tokens", "makes it an activated LoRA, which cannot be used"},
    Refusal{"trainable_token_indices", "changes the embedding, which cannot be used"},
    Refusal{"layer_replication", "repeats layers, which cannot be used"},
};

bool asks_for_nothing(const Json& value) {
  return value.is_null() || value == false ||
         ((value.is_array() || value.is_object()) && value.empty());
}

Result<void> check_fields(const JsonSection& config) {
  for (const auto& [name, value] : config.object().items()) {
    if (std::ranges::find(kFields, name, &Field::name) != kFields.end()) continue;
    if (asks_for_nothing(value)) continue;
    const auto* refusal = std::ranges::find(kRefusals, name, &Refusal::field);
    return config.error(
        quote(name),
        refusal == kRefusals.end() ? "is set, and this program does not know it" : refusal->why,
        ErrorCode::unsupported);
  }
  return {};
}

Result<void> check_word(const JsonSection& config, const char* field, std::string_view wanted,
                        std::string_view why) {
  OCTAVO_TRY(const auto word, config.find_string(field));
  if (!word || *word == wanted) return {};
  return config.error(field, fmt::format("is {}; {}", quote(*word), why), ErrorCode::unsupported);
}

// Some ways to begin training move a part of the model's matrices into the adapter.
Result<void> check_start(const JsonSection& config) {
  const Json* start = config.find("init_lora_weights");
  if (!start || start->is_boolean()) return {};
  constexpr std::array<std::string_view, 3> kPlain = {"gaussian", "eva", "orthogonal"};
  const std::string word = start->is_string() ? start->get<std::string>() : "";
  if (std::ranges::find(kPlain, word) != kPlain.end()) return {};
  return config.error(
      "init_lora_weights",
      fmt::format("is {}, which changes the model's own weights as well; save the "
                  "adapter as plain LoRA (path_initial_model_for_weight_conversion)",
                  quote(word)),
      ErrorCode::unsupported);
}

// PEFT takes regular expressions. Names are what they mostly are, and all that is taken here.
Result<std::string> module_end(const JsonSection& config, const char* field, std::string key) {
  const auto is_plain = [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '.'; };
  if (!key.empty() && std::all_of(key.begin(), key.end(), is_plain)) return key;
  return config.error(
      field, fmt::format("has the pattern {}; only names of modules are taken", quote(key)),
      ErrorCode::unsupported);
}

template <class Value, class Read>
Result<std::vector<std::pair<std::string, Value>>> read_pattern(const JsonSection& config,
                                                                const char* field,
                                                                const Read& read) {
  std::vector<std::pair<std::string, Value>> pattern;
  const Json* object = config.find(field);
  if (!object) return pattern;
  if (!object->is_object() || object->size() > kMaxPatterns)
    return config.error(field, fmt::format("is not an object of at most {} entries", kMaxPatterns));
  const JsonSection entries(*object, config.file(), std::string(field) + ".");
  for (const auto& [key, ignored] : object->items()) {
    OCTAVO_TRY(std::string end, module_end(config, field, key));
    OCTAVO_TRY(const auto value, read(entries, key.c_str()));
    if (!value) return entries.error(key, "is null");
    pattern.emplace_back(std::move(end), static_cast<Value>(*value));
  }
  return pattern;
}

// Whether it is the whole name, or its end from a dot on.
bool fits(std::string_view end, std::string_view module) {
  return module.ends_with(end) &&
         (module.size() == end.size() || module[module.size() - end.size() - 1] == '.');
}

template <class Value>
Result<Value> look_up(const std::vector<std::pair<std::string, Value>>& pattern,
                      std::string_view module, Value otherwise, std::string_view file) {
  const std::string* found = nullptr;
  for (const auto& [end, value] : pattern) {
    if (!fits(end, module)) continue;
    if (found && value != otherwise)
      return fail(ErrorCode::unsupported,
                  fmt::format("{}: the patterns {} and {} say different things of {}", file,
                              quote(*found), quote(end), quote(module)));
    found = &end;
    otherwise = value;
  }
  return otherwise;
}

Result<void> read_numbers(const JsonSection& config, PeftConfig& out) {
  OCTAVO_TRY(const int64_t rank, config.number("r", kMaxRank));
  out.rank = static_cast<int>(rank);
  OCTAVO_TRY(const auto alpha, config.find_real("lora_alpha"));
  if (!alpha) return config.error("lora_alpha", "is missing");
  out.alpha = *alpha;
  OCTAVO_TRY(const auto sqrt_rank, config.find_bool("use_rslora"));
  out.sqrt_rank = sqrt_rank.value_or(false);
  OCTAVO_TRY(out.rank_pattern,
             read_pattern<int>(config, "rank_pattern", [](const JsonSection& at, const char* key) {
               return at.find_number(key, 1, kMaxRank);
             }));
  OCTAVO_TRY(out.alpha_pattern, read_pattern<double>(config, "alpha_pattern",
                                                     [](const JsonSection& at, const char* key) {
                                                       return at.find_real(key);
                                                     }));
  return {};
}

}  // namespace

Result<PeftConfig::Size> PeftConfig::size_of(std::string_view module) const {
  OCTAVO_TRY(const int r, look_up(rank_pattern, module, rank, file));
  OCTAVO_TRY(const double a, look_up(alpha_pattern, module, alpha, file));
  return Size{r, static_cast<float>(a / (sqrt_rank ? std::sqrt(r) : r))};
}

Result<PeftConfig> parse_peft_config(std::string_view text, const std::string& name) {
  OCTAVO_TRY(const Json root, parse_config_json(text, name));
  const JsonSection config(root, name, "");
  if (!config.find("peft_type")) return config.error("peft_type", "is missing");
  OCTAVO_CHECK_OK(check_word(config, "peft_type", "LORA", "only LORA can be used"));
  OCTAVO_CHECK_OK(
      check_word(config, "bias", "none", "biases cannot be changed, only none is taken"));
  OCTAVO_CHECK_OK(check_start(config));
  OCTAVO_CHECK_OK(check_fields(config));
  PeftConfig out;
  out.file = name;
  OCTAVO_CHECK_OK(read_numbers(config, out));
  return out;
}

}  // namespace octavo
