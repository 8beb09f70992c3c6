#include "sampling/logprobs.h"

#include <fmt/format.h>

#include <algorithm>

#include "sampling/logits.h"

namespace octavo {
namespace {

using Ids = std::vector<int32_t>;

struct MoreProbable {
  std::span<const float> logits;
  bool operator()(int32_t a, int32_t b) const {
    return logits[a] > logits[b] || (logits[a] == logits[b] && a < b);
  }
};

// The k first ids by `before`, in its order. One pass with a heap whose top is the worst id kept:
// for the small k of requests nearly every token costs one comparison.
Ids first_k(int count, size_t k, const MoreProbable& before) {
  Ids kept;
  for (int32_t id = 0; id < count && k > 0; ++id) {
    if (kept.size() == k) {
      if (!before(id, kept.front())) continue;
      std::pop_heap(kept.begin(), kept.end(), before);
      kept.pop_back();
    }
    kept.push_back(id);
    std::push_heap(kept.begin(), kept.end(), before);
  }
  std::sort_heap(kept.begin(), kept.end(), before);
  return kept;
}

int rank_of(int32_t chosen, int count, const MoreProbable& before) {
  int rank = 1;
  for (int32_t id = 0; id < count; ++id) rank += before(id, chosen);
  return rank;
}

}  // namespace

Result<TokenLogprobs> logprobs_of(std::span<const float> logits, TokenId chosen, int top_k) {
  OCTAVO_CHECK_OK(check_finite(logits));
  const int count = static_cast<int>(logits.size());
  if (raw(chosen) < 0 || raw(chosen) >= count)
    return fail(ErrorCode::invalid_argument,
                fmt::format("token {} is outside the vocabulary of {} tokens", raw(chosen), count));

  const double log_total = log_sum_exp(logits);
  const auto entry = [&](int32_t id, int rank) {
    const double logprob = std::max<double>(logits[id] - log_total, kLogprobFloor);
    return LogprobEntry{TokenId{id}, static_cast<float>(logprob), rank};
  };
  const MoreProbable before{logits};
  TokenLogprobs result{chosen, {}};
  const size_t wanted = top_k < 0 ? logits.size() : std::min<size_t>(top_k, logits.size());
  for (int32_t id : first_k(count, wanted, before))
    result.entries.push_back(entry(id, static_cast<int>(result.entries.size()) + 1));
  const int rank = rank_of(raw(chosen), count, before);
  if (rank > static_cast<int>(wanted)) result.entries.push_back(entry(raw(chosen), rank));
  return result;
}

}  // namespace octavo
