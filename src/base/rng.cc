#include "base/rng.h"

#include <chrono>
#include <exception>
#include <random>

namespace octavo {
namespace {

constexpr int kRounds = 10;
constexpr uint32_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
// Weyl increments of the key: the golden ratio and the square root of 3, less 1.
constexpr uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;

constexpr uint32_t low(uint64_t x) { return static_cast<uint32_t>(x); }
constexpr uint32_t high(uint64_t x) { return static_cast<uint32_t>(x >> 32); }

PhiloxCounter one_round(const PhiloxCounter& c, const PhiloxKey& k) {
  const uint64_t product0 = uint64_t{kMultiplier0} * c[0];
  const uint64_t product1 = uint64_t{kMultiplier1} * c[2];
  return {high(product1) ^ c[1] ^ k[0], low(product1), high(product0) ^ c[3] ^ k[1], low(product0)};
}

// Where the system has no source of randomness, the clock still gives seeds that differ.
uint64_t entropy() {
  try {
    std::random_device device;
    return uint64_t{device()} << 32 | device();
  } catch (const std::exception&) {
    const auto ticks = std::chrono::system_clock::now().time_since_epoch().count();
    const PhiloxCounter mixed = philox4x32({low(ticks), high(ticks), 0, 0}, {0, 0});
    return uint64_t{mixed[0]} << 32 | mixed[1];
  }
}

}  // namespace

PhiloxCounter philox4x32(PhiloxCounter counter, PhiloxKey key) {
  for (int round = 0; round < kRounds; ++round) {
    counter = one_round(counter, key);
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return counter;
}

double uniform(uint64_t seed, uint32_t choice, uint64_t position, RandomUse use, uint32_t index) {
  constexpr uint32_t kUses = 4;
  const PhiloxCounter bits = philox4x32(
      {low(position), high(position), choice, index * kUses + static_cast<uint32_t>(use)},
      {low(seed), high(seed)});
  const uint64_t word = uint64_t{bits[0]} << 32 | bits[1];
  return static_cast<double>(word >> 11) * 0x1p-53;
}

uint64_t fresh_seed() { return entropy() >> 11; }

}  // namespace octavo
