// Unicode normalisation form C, for model families whose tokenizer applies it.
#pragma once

#include <string>
#include <string_view>

namespace octavo {

// O(n log n), also for long runs of combining marks. REQUIRES: text is valid UTF-8.
std::string normalize_nfc(std::string_view text);

}  // namespace octavo
