// What the KV cache gains: the same greedy tokens, generated with it and without it, at growing
// contexts.
#pragma once

#include <functional>
#include <vector>

#include "base/result.h"
#include "engine/load.h"

namespace octavo {

struct KvCacheCompareOptions {
  std::vector<int> contexts;  // prompt lengths, tokens
  int gen_tokens = 5;         // the first comes out of the prefill and is not timed; at least 2
  int runs = 3;               // of which the median is taken
  std::function<void(int done, int total)> on_progress;  // may be empty
};

struct KvCacheComparison {
  int context = 0;
  double with_cache_s = 0;  // for gen_tokens - 1 tokens
  double without_cache_s = 0;
  double with_cache_tokens_per_s = 0;
  double without_cache_tokens_per_s = 0;
  bool same_tokens = false;  // both ways must give the same answer

  double ratio() const { return without_cache_s / with_cache_s; }
};

// Errors: context_overflow before anything is measured; those of Engine::run.
Result<std::vector<KvCacheComparison>> compare_kv_cache(const LoadedEngine& engine,
                                                        const KvCacheCompareOptions& options);

}  // namespace octavo
