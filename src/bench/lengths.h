// How long prompts or answers are: a distribution over numbers of tokens.
//
// As text, one of
//   N                                  always the same
//   LOW-HIGH                           all from LOW to HIGH alike
//   SHARE%:LOW-HIGH+SHARE%:LOW-HIGH    parts, whose shares add up to 100 %
//   lognormal:MEAN:MAX[:SIGMA]         many short, few long: MEAN is that of what is drawn, longer
//                                      than MAX becomes MAX, SIGMA (1) is the spread of logarithms
#pragma once

#include <string_view>
#include <vector>

#include "base/result.h"
#include "bench/draws.h"

namespace octavo {

inline constexpr int kMaxLength = 1 << 24;  // tokens; far above any context

struct LengthPart {
  double share = 1;  // of 1
  int low = 1;       // tokens, both included
  int high = 1;
};

class Lengths {
 public:
  // Errors, naming `key` and the text: invalid_argument.
  static Result<Lengths> parse(std::string_view key, std::string_view text);

  // REQUIRES: 1 <= tokens <= kMaxLength.
  static Lengths fixed(int tokens) { return Lengths({LengthPart{1, tokens, tokens}}, 0, 0); }
  // Messages of the errors of these two go on from "lengths, which".
  //
  // Errors: invalid_argument for an empty list, ranges outside 1 to kMaxLength or upside down, and
  // shares that are negative or do not add up to 1.
  static Result<Lengths> mixture(std::vector<LengthPart> parts);
  // Errors: invalid_argument unless 1 < mean < max <= kMaxLength and 0 < sigma <= 10.
  static Result<Lengths> lognormal(double mean, int max, double sigma = 1);

  int draw(Draws& draws) const;
  int max() const;

 private:
  Lengths(std::vector<LengthPart> parts, double mu, double sigma)
      : parts_(std::move(parts)), mu_(mu), sigma_(sigma) {}

  std::vector<LengthPart> parts_;  // log-normal: one, the range that is kept to
  double mu_, sigma_;              // of the logarithm; sigma 0: not log-normal
};

}  // namespace octavo
