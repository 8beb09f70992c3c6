#pragma once

#include <bit>
#include <cstdint>

namespace octavo {

// e^x for -87 <= x <= 0, within 2e-7 of it. Without branches and calls, so that loops over a
// vocabulary are vectorised: e^x is 2^n e^r with |r| <= log(2) / 2, and n goes into the exponent.
inline float exp_of(float x) {
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it leaves the nearest integer
  const float shifted = x * 1.44269504f + kRound;
  const float n = shifted - kRound;
  const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  const float r2 = r * r;
  const float power = 1 + r +
                      r2 * (0.5f + r * 0.166666655f + r2 * (0.0416657962f + r * 0.00833345f) +
                            r2 * r2 * 0.00139819f);
  return std::bit_cast<float>(std::bit_cast<uint32_t>(power) +
                              (std::bit_cast<uint32_t>(shifted) << 23));
}

}  // namespace octavo
