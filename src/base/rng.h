// Randomness without state: every number is a function of (seed, choice, position) and of nothing
// else, so that a draw cannot depend on neighbours in a batch, on their order, or on what was drawn
// before.
#pragma once

#include <array>
#include <cstdint>

namespace octavo {

// The block function of Philox4x32 with 10 rounds (Salmon et al., "Parallel random numbers: as easy
// as 1, 2, 3", SC 2011). Equal to Random123's.
using PhiloxCounter = std::array<uint32_t, 4>;
using PhiloxKey = std::array<uint32_t, 2>;
PhiloxCounter philox4x32(PhiloxCounter counter, PhiloxKey key);

// What a number is for. Those of one place are independent of each other.
enum class RandomUse : uint32_t {
  draw,       // of a token
  guess,      // of what a drafter says it might be
  keep,       // whether the guess is kept
  otherwise,  // the draw of a token when no guess was
};

// A number in [0, 1) with 53 random bits. `choice` is the index of an answer when one prompt gets
// several; `position` is the place of the drawn token in its sequence; `index` counts the guesses
// for that place.
double uniform(uint64_t seed, uint32_t choice, uint64_t position, RandomUse use = RandomUse::draw,
               uint32_t index = 0);

// A seed that differs from call to call, for requests that give none. Below 2^53, so that the seed
// an answer reports survives JSON readers that hold numbers as doubles. Not for secrets.
uint64_t fresh_seed();

}  // namespace octavo
