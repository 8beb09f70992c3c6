// How one vector is made of the hidden states of a sequence's tokens.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace octavo {

enum class PoolingType : uint8_t {
  mean,  // of all tokens
  cls,   // the first token's
  last,  // the last token's
};
std::string_view name(PoolingType type);                              // "mean", "cls", "last"
std::optional<PoolingType> pooling_from_name(std::string_view name);  // nothing: not known

struct PoolingParams {
  PoolingType type = PoolingType::last;
  bool normalize = true;  // to length 1, after it has been cut
  int dimensions = 0;     // only the first so many; 0: all
};

}  // namespace octavo
