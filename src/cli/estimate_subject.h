// What `octavo estimate` knows of a model file, and the options that all of its forms read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "cli/json_output.h"
#include "cli/option_values.h"
#include "kv/kv_type.h"
#include "model/kv_facts.h"

namespace octavo::cli {

inline constexpr double kGiB = 1024.0 * 1024 * 1024;

// Weights and activations are known of models that this program runs.
struct EstimateSubject {
  KvFacts kv;
  std::optional<int64_t> weight_bytes, activation_bytes;
};

// Of a GGUF file, a short name or a Hugging Face config.json.
Result<EstimateSubject> read_estimate_subject(const std::string& model, int max_num_batched_tokens);

KvType kv_type(const OptionValues& options);
std::optional<int64_t> memory_bytes(const OptionValues& options);  // of --memory

// Layers, heads, type and block size: what every form begins with.
Json model_json(const EstimateSubject& subject, const OptionValues& options);
std::string describe_model(const EstimateSubject& subject, const OptionValues& options);

Json number_or_null(const std::optional<int64_t>& number);

}  // namespace octavo::cli
