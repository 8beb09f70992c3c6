// The normal forms of Unicode, for model families whose tokenizer applies one.
#pragma once

#include <string>
#include <string_view>

#include "core/token_pipeline_spec.h"

namespace octavo {

// O(n log n), also for long runs of combining marks. REQUIRES: text is valid UTF-8.
std::string normalize(std::string_view text, NormalForm form);
std::string normalize_nfc(std::string_view text);

}  // namespace octavo
