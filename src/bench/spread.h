// Whether two runs that were made several times, in turns, differ by more than noise.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace octavo {

enum class Call : uint8_t {
  unknown,  // one round: nothing is known of the noise
  noise,    // no difference beyond it
  differs,
};

// The rule, for readers. Logarithms, because half and twice as much are equally far from the same.
inline constexpr std::string_view kNoiseRule =
    "Rounds alternate between the runs, and a ratio is the median of the ratios within each round. "
    "It is called a difference where the 99 % interval of its mean over the rounds (Student's, of "
    "the logarithms) leaves out 1 and it is at least 1 %; everything else is no difference beyond "
    "noise.";

// A figure of one run, in parts of the baseline's.
struct Change {
  double ratio = 1;          // median over the rounds
  double low = 1, high = 1;  // of the rounds
  int rounds = 0;
  Call call = Call::unknown;

  bool operator==(const Change&) const = default;
};

// One ratio for each round. REQUIRES: not empty, all above 0.
Change change_of(const std::vector<double>& ratios);

// "3.1 x (2.9 to 3.3 in 5 rounds)"; "no difference beyond noise (ratio 0.97 to 1.04 in 5 rounds)".
std::string change_text(const Change& change);

// How much more or less alone: "3.1 x", "19 % more", "4 % less", "8.2 x less".
std::string ratio_text(double ratio);

}  // namespace octavo
