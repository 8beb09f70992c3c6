// The distribution that a token is drawn from when all of a request's settings have been applied,
// and the test by which a guess from another distribution is kept without changing it.
#pragma once

#include <span>
#include <vector>

#include "core/ids.h"

namespace octavo {

// Only tokens that can be drawn, by id; the probabilities are positive and sum to 1.
struct Distribution {
  struct Entry {
    TokenId id;
    double probability;
  };
  std::vector<Entry> entries;

  double of(TokenId id) const;  // 0 if it cannot be drawn
  // Inverts the cumulative distribution. REQUIRES: 0 <= u < 1, not empty.
  TokenId draw(double u) const;
};

// max(p - q, 0), normalised: what is left of p when a guess from q has been refused. p itself if
// nothing is left, which happens by rounding alone.
Distribution residual(const Distribution& p, const Distribution& q);

// Whether a guess that was drawn from q is kept as one from p: with min(1, p / q). u as in draw().
bool keeps_guess(const Distribution& p, const Distribution& q, TokenId guess, double u);

struct Chosen {
  TokenId token;
  int guess = -1;  // whose token it is; -1: none of them came true
};

// A token of p, preferably one of the guesses: whatever q is, the tokens have the probabilities p.
// `guesses` were drawn from q one after the other, none twice, and are tried in this order; what q
// had no more left for is as good as certain. q empty: all of them are certain, each is kept with
// its probability in p. `uniforms`: one number for each guess and one more, independent of each
// other and of the guesses.
Chosen choose_among(Distribution p, std::span<const TokenId> guesses, Distribution q,
                    std::span<const double> uniforms);

}  // namespace octavo
