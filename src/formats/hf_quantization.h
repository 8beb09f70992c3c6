// How the weights of a Hugging Face folder are packed: quantization_config of its config.json.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/result.h"

namespace octavo {

enum class PackingMethod : uint8_t { gptq, awq, compressed };  // the last: compressed-tensors

// Of 4 bits all of them.
struct HfQuantization {
  PackingMethod method = PackingMethod::gptq;
  int64_t group_size = 0;      // inputs that share a scale, a multiple of 32; 0: all of a row
  bool zero_plus_one = false;  // zero points are stored less one (GPTQ, but not its version 2)
};

std::string_view name(PackingMethod method);

// Errors: unsupported (another method, bits, or a field that is not known), corrupt_file; they name
// the file `name` and the field.
Result<HfQuantization> read_hf_quantization(const nlohmann::json& config, const std::string& name);

}  // namespace octavo
