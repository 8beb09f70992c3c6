// Which rotary embedding a GGUF file asks for.
#pragma once

#include "base/result.h"
#include "model/config_reader.h"
#include "model/rope.h"

namespace octavo {

// Of a model with heads of head_dim dims that was made for context_length positions.
// Errors: corrupt_file (a number or a tensor of divisors is missing or absurd), unsupported (a kind
// of scaling that is not known).
Result<RopeConfig> read_rope_config(const ConfigReader& reader, int head_dim, int context_length);

// Whether it is the name of a tensor of divisors, which read_rope_config() uses.
bool is_rope_divisors(std::string_view tensor);

}  // namespace octavo
