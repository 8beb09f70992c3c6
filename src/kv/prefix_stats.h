// Counts of the prefix tree, for metrics: since it was made, never reset.
#pragma once

#include <array>
#include <cstdint>

namespace octavo {

// Why the rest of a prompt was not found.
enum class MissReason : uint8_t {
  none,      // all that could be reused was
  not_seen,  // no sequence had these tokens, or none of them left a full block to remember
  evicted,   // the next block was here, and had to go for others
  skipped,   // the caller did not ask
};
inline constexpr int kNumMissReasons = 4;

struct PrefixStats {
  struct Queries {
    int64_t lookups = 0;
    int64_t tokens = 0;      // that could have been found
    int64_t hit_tokens = 0;  // that were

    bool operator==(const Queries&) const = default;
  };
  Queries prompts;     // each request once, when it is first scheduled
  Queries recomputed;  // sequences that come back after preemption; says nothing about the prompts
  std::array<int64_t, kNumMissReasons> misses{};  // of `prompts` and skipped ones, by MissReason
  int64_t evicted_blocks = 0;
};

}  // namespace octavo
