#include "spec/speculative_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "formats/quote.h"
#include "formats/shallow_json.h"
#include "spec/draft_length.h"

namespace octavo {
namespace {

using nlohmann::json;

constexpr int kMaxDepth = 2;
constexpr int kMost = 1 << 20;

constexpr std::array kMethods = {DraftMethod::ngram, DraftMethod::suffix, DraftMethod::draft_model,
                                 DraftMethod::early_exit};

tl::unexpected<Error> refuse(std::string_view field, std::string_view why) {
  return fail(ErrorCode::invalid_argument,
              fmt::format("--speculative-config: {} {}", quote(std::string(field)), why));
}

constexpr std::string_view kMethodNames =
    "ngram, suffix, draft_model or early_exit, or several with commas";

std::string_view without_spaces(std::string_view text) {
  const size_t begin = std::min(text.find_first_not_of(' '), text.size());
  return text.substr(begin, text.find_last_not_of(' ') + 1 - begin);
}

Result<void> add_method(std::string_view word, std::vector<DraftMethod>& methods) {
  if (word == "early-exit") word = "early_exit";
  const auto found = std::ranges::find(kMethods, word, [](DraftMethod m) { return name(m); });
  if (found == kMethods.end())
    return refuse("method",
                  fmt::format("has {}; it must be {}", quote(std::string(word)), kMethodNames));
  if (std::ranges::find(methods, *found) != methods.end())
    return refuse("method", fmt::format("has {} twice", word));
  methods.push_back(*found);
  return {};
}

// A list is taken as well as names with commas.
Result<std::vector<DraftMethod>> read_methods(const json& value) {
  std::vector<DraftMethod> methods;
  for (const json& part : value.is_array() ? value : json::array({value})) {
    if (!part.is_string()) return refuse("method", fmt::format("must be {}", kMethodNames));
    const std::string names = part.get<std::string>();
    for (size_t begin = 0; begin <= names.size();) {
      const size_t end = std::min(names.find(',', begin), names.size());
      const auto word = without_spaces(std::string_view(names).substr(begin, end - begin));
      OCTAVO_CHECK_OK(add_method(word, methods));
      begin = end + 1;
    }
  }
  return methods;
}

Result<RejectionSampleMethod> read_rejection_sample_method(const json& value) {
  if (value == "strict") return RejectionSampleMethod::strict;
  if (value == "probabilistic") return RejectionSampleMethod::probabilistic;
  return refuse("rejection_sample_method", "must be strict or probabilistic");
}

// One field of the object, checked.
struct Reader {
  const std::string& field;
  const json& value;

  Result<void> integer(int least, int most, int& out) const {
    const bool fits =
        value.is_number_integer() && value.get<double>() >= least && value.get<double>() <= most;
    if (!fits) return refuse(field, fmt::format("must be an integer from {} to {}", least, most));
    out = value.get<int>();
    return {};
  }
  Result<void> real(double least, double most, double& out) const {
    if (!value.is_number() || value.get<double>() < least || value.get<double>() > most)
      return refuse(field, fmt::format("must be a number from {} to {}", least, most));
    out = value.get<double>();
    return {};
  }
  Result<void> boolean(bool& out) const {
    if (!value.is_boolean()) return refuse(field, "must be true or false");
    out = value.get<bool>();
    return {};
  }
  Result<void> integers(int least, int most, std::vector<int>& out) const {
    const std::string wanted = fmt::format("must be a list of integers from {} to {}", least, most);
    if (!value.is_array()) return refuse(field, wanted);
    for (const json& element : value) {
      if (!element.is_number_integer() || element.get<double>() < least ||
          element.get<double>() > most)
        return refuse(field, wanted);
      out.push_back(element.get<int>());
    }
    return {};
  }
  Result<void> text(std::string& out) const {
    if (!value.is_string()) return refuse(field, "must be a string");
    out = value.get<std::string>();
    return {};
  }
};

Result<void> read_field(const std::string& field, const json& value, SpeculativeConfig& config) {
  const Reader read{field, value};
  if (field == "method") {
    OCTAVO_TRY(config.methods, read_methods(value));
    return {};
  }
  if (field == "rejection_sample_method") {
    OCTAVO_TRY(config.rejection_sample_method, read_rejection_sample_method(value));
    return {};
  }
  if (field == "model") {
    OCTAVO_CHECK_OK(read.text(config.model));
    return config.model.empty() ? refuse("model", "is empty") : Result<void>();
  }
  if (field == "num_speculative_tokens")
    return read.integer(1, kMaxDraftTokens, config.num_speculative_tokens);
  if (field == "adaptive") return read.boolean(config.adaptive);
  if (field == "branching_factor") return read.integer(1, 8, config.branching_factor);
  if (field == "prompt_lookup_min") return read.integer(1, 64, config.prompt_lookup_min);
  if (field == "prompt_lookup_max") return read.integer(1, 64, config.prompt_lookup_max);
  if (field == "suffix_decoding_max_tree_depth")
    return read.integer(2, 1024, config.suffix.max_tree_depth);
  if (field == "suffix_decoding_max_cached_requests")
    return read.integer(0, kMost, config.suffix.max_cached_requests);
  if (field == "suffix_decoding_max_spec_factor")
    return read.real(0, 1000, config.suffix.max_spec_factor);
  if (field == "suffix_decoding_min_token_prob")
    return read.real(0, 1, config.suffix.min_token_prob);
  if (field == "skip_layers") return read.integers(0, kMost, config.skip_layers.emplace());
  if (field == "draft_confidence_threshold")
    return read.real(0, 1, config.draft_confidence_threshold.emplace());
  return refuse(field, "is not known; docs/speculative.md lists the fields");
}

Result<void> check(const SpeculativeConfig& config, bool names_model) {
  if (config.methods.empty())
    return refuse("method", fmt::format("is missing; it may be {}", kMethodNames));
  if (config.prompt_lookup_min > config.prompt_lookup_max)
    return refuse("prompt_lookup_min", "must not be more than prompt_lookup_max");
  if (config.uses(DraftMethod::draft_model) != names_model)
    return refuse("model", names_model
                               ? "is of the method draft_model alone"
                               : "is missing: a smaller model with the same tokens, as a file, "
                                 "a folder or a name");
  if (config.branching_factor > 1 && !config.uses(DraftMethod::suffix) &&
      !config.uses(DraftMethod::draft_model))
    return refuse("branching_factor", "is of the methods suffix and draft_model alone");
  if (config.uses(DraftMethod::early_exit)) return {};
  if (config.skip_layers) return refuse("skip_layers", "is of the method early_exit alone");
  if (config.draft_confidence_threshold)
    return refuse("draft_confidence_threshold", "is of the method early_exit alone");
  return {};
}

}  // namespace

std::string_view name(DraftMethod method) {
  switch (method) {
    case DraftMethod::ngram:
      return "ngram";
    case DraftMethod::suffix:
      return "suffix";
    case DraftMethod::draft_model:
      return "draft_model";
    case DraftMethod::early_exit:
      return "early_exit";
  }
  return "";
}

bool SpeculativeConfig::uses(DraftMethod method) const {
  return std::find(methods.begin(), methods.end(), method) != methods.end();
}

Result<SpeculativeConfig> parse_speculative_config(std::string_view text) {
  SpeculativeConfig config;
  if (text.empty()) return config;
  const StrictJson parsed = parse_strict_json(text, kMaxDepth);
  if (parsed.too_deep || !parsed.root.is_object())
    return fail(ErrorCode::invalid_argument,
                "--speculative-config must be a JSON object, for example "
                "'{\"method\": \"ngram\", \"num_speculative_tokens\": 5}'");
  if (parsed.repeated_key) return refuse(*parsed.repeated_key, "is there twice");
  for (const auto& [field, value] : parsed.root.items())
    OCTAVO_CHECK_OK(read_field(field, value, config));
  // vLLM takes a model without a method for one that drafts.
  if (!parsed.root.contains("method") && !config.model.empty())
    config.methods = {DraftMethod::draft_model};
  OCTAVO_CHECK_OK(check(config, !config.model.empty()));
  config.suffix.branching_factor = config.branching_factor;
  return config;
}

}  // namespace octavo
