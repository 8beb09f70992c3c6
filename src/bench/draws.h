// Random numbers for made-up requests: each series is a function of (seed, what it is for, index),
// so that ten requests are the first ten of twenty and a change of one setting leaves the rest as
// it was.
#pragma once

#include <cstdint>
#include <vector>

#include "core/ids.h"

namespace octavo {

enum class DrawFor : uint32_t {
  arrival,
  prompt_length,
  output_length,
  priority,
  own_tokens,
  shared_tokens,
  named_block,
};

// Ids that prompts are made of.
struct TokenRange {
  int first = 0;
  int last = 31999;  // included
};

class Draws {
 public:
  Draws(uint64_t seed, DrawFor what, uint32_t index) : seed_(seed), what_(what), index_(index) {}

  double uniform();                // in [0, 1)
  int between(int low, int high);  // both included. REQUIRES: low <= high
  double normal();                 // mean 0, deviation 1
  double gamma(double shape);      // mean and variance `shape`. REQUIRES: shape > 0
  void append_tokens(int count, TokenRange range, std::vector<TokenId>& out);

 private:
  double gamma_above_one(double shape);

  uint64_t seed_;
  DrawFor what_;
  uint32_t index_;
  uint32_t drawn_ = 0;
};

}  // namespace octavo
