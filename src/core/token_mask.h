// Which tokens may come next, where that depends on the answer so far.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/ids.h"

namespace octavo {

// Clears the bits of tokens that must not follow `answer`; none are set where they were cleared.
// Bit i % 64 of word i / 64 is token i's; bits beyond the last token mean nothing. Part of the
// answer may be a guess that comes to nothing: it may be shorter than in the call before, and go on
// after its end. It never holds a token that was barred. Called by several threads at once.
using TokenMask = std::function<void(std::span<const TokenId> answer, std::span<uint64_t> allowed)>;

// What `mask` leaves of all tokens; empty if there is no mask, which may be nullptr.
std::vector<uint64_t> allowed_after(const TokenMask* mask, std::span<const TokenId> answer,
                                    int num_tokens);

}  // namespace octavo
