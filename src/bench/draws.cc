#include "bench/draws.h"

#include <cmath>
#include <numbers>

#include "base/rng.h"

namespace octavo {

double Draws::uniform() {
  const uint64_t position = uint64_t{index_} << 32 | drawn_++;
  return octavo::uniform(seed_, static_cast<uint32_t>(what_), position);
}

int Draws::between(int low, int high) {
  const double values = static_cast<double>(high) - low + 1;
  return static_cast<int>(low + std::floor(uniform() * values));
}

// Box and Muller; the second number of the pair is not kept.
double Draws::normal() {
  const double radius = std::sqrt(-2 * std::log1p(-uniform()));
  return radius * std::cos(2 * std::numbers::pi * uniform());
}

// Marsaglia and Tsang, "A simple method for generating gamma variables", 2000.
double Draws::gamma_above_one(double shape) {
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double x = normal();
    const double v = std::pow(1 + c * x, 3);
    const double u = 1 - uniform();
    if (v > 0 && std::log(u) < x * x / 2 + d - d * v + d * std::log(v)) return d * v;
  }
}

double Draws::gamma(double shape) {
  if (shape >= 1) return gamma_above_one(shape);
  const double larger = gamma_above_one(shape + 1);
  return larger * std::pow(1 - uniform(), 1 / shape);
}

void Draws::append_tokens(int count, TokenRange range, std::vector<TokenId>& out) {
  for (int i = 0; i < count; ++i) out.push_back(TokenId{between(range.first, range.last)});
}

}  // namespace octavo
