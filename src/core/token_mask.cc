#include "core/token_mask.h"

namespace octavo {

std::vector<uint64_t> allowed_after(const TokenMask* mask, std::span<const TokenId> answer,
                                    int num_tokens) {
  std::vector<uint64_t> allowed;
  if (!mask || !*mask) return allowed;
  allowed.resize((static_cast<size_t>(num_tokens) + 63) / 64, ~uint64_t{0});
  (*mask)(answer, allowed);
  return allowed;
}

}  // namespace octavo
