// The fields of a config.json that a reader does not ask for. One that may change what the model
// computes is refused, unless its value is the one that changes nothing.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "formats/json_section.h"

namespace octavo {

// A field of which this value alone is supported: the one that asks for nothing, or for what the
// family does anyway.
struct HfFixedField {
  std::string_view field;
  std::string_view value;  // JSON
};

// Each field that is neither in `read` nor in `fixed`, nor known to be without effect in every
// model. unsupported: one whose value, or whose name, is not known; it is named. notes: what a name
// tells to be about training or another program, and is passed over.
Result<void> check_hf_fields(const JsonSection& section, std::span<const std::string_view> read,
                             std::span<const HfFixedField> fixed, std::vector<std::string>& notes);

}  // namespace octavo
