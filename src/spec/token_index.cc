#include "spec/token_index.h"

#include <algorithm>
#include <cmath>

namespace octavo {

uint64_t TokenIndex::key(const TokenId* last) {
  return static_cast<uint64_t>(static_cast<uint32_t>(raw(last[-1]))) << 32 |
         static_cast<uint32_t>(raw(last[0]));
}

void TokenIndex::append(TokenId token) {
  tokens_.push_back(token);
  previous_.push_back(kNone);
  const size_t end = tokens_.size();
  if (end < kRun || tokens_[end - 2] == kEnd) return;
  // The place after the run has no token yet; it is compared when there is one.
  const auto [found, fresh] = latest_.try_emplace(key(&tokens_.back()), static_cast<uint32_t>(end));
  if (fresh) return;
  previous_.back() = found->second;
  found->second = static_cast<uint32_t>(end);
}

void TokenIndex::end_text() {
  tokens_.push_back(kEnd);
  previous_.push_back(kNone);
}

void TokenIndex::clear() {
  tokens_.clear();
  previous_.clear();
  latest_.clear();
}

size_t TokenIndex::match_length(std::span<const TokenId> context, size_t at, size_t most) const {
  most = std::min({most, at, context.size()});
  size_t length = 0;
  while (length < most && tokens_[at - 1 - length] == context[context.size() - 1 - length])
    ++length;
  return length;
}

// Those with the longest match, the latest first.
void TokenIndex::find_places(std::span<const TokenId> context, int max_depth) const {
  places_.clear();
  length_ = 0;
  if (context.size() < kRun) return;
  const auto found = latest_.find(key(&context.back()));
  uint32_t at = found == latest_.end() ? kNone : found->second;
  for (int looked = 0; at != kNone && looked < kMaxPlaces; at = previous_[at - 1], ++looked) {
    if (at >= tokens_.size() || tokens_[at] == kEnd) continue;  // nothing follows
    const size_t length = match_length(context, at, static_cast<size_t>(max_depth));
    if (length < length_) continue;
    if (length > length_) places_.clear();
    length_ = length;
    places_.push_back(at);
  }
}

// What most of places_ have `offset` tokens on; kEnd: none of them has anything.
TokenId TokenIndex::most_frequent(size_t offset, size_t& count) const {
  TokenId best = kEnd;
  count = 0;
  for (const uint32_t place : places_) {
    const size_t at = place + offset;
    if (at >= tokens_.size() || tokens_[at] == kEnd || tokens_[at] == best) continue;
    const auto same =
        static_cast<size_t>(std::count_if(places_.begin(), places_.end(), [&](uint32_t other) {
          return other + offset < tokens_.size() && tokens_[other + offset] == tokens_[at];
        }));
    if (same > count) best = tokens_[at], count = same;
  }
  return best;
}

Continuation TokenIndex::continuation(std::span<const TokenId> context,
                                      const ContinuationLimits& limits) const {
  find_places(context, limits.max_depth);
  Continuation result{.probability = 1, .match_length = static_cast<int>(length_)};
  const double allowed = std::floor(limits.tokens_per_match * static_cast<double>(length_));
  const auto most = static_cast<size_t>(std::clamp(allowed, 0.0, double(limits.max_tokens)));
  for (size_t offset = 0; offset < most && !places_.empty(); ++offset) {
    size_t count = 0;
    const TokenId next = most_frequent(offset, count);
    if (next == kEnd) break;
    const double probability =
        result.probability * static_cast<double>(count) / static_cast<double>(places_.size());
    if (probability < limits.min_probability) break;
    result.probability = probability;
    result.tokens.push_back(next);
    std::erase_if(places_, [&](uint32_t place) {
      return place + offset >= tokens_.size() || tokens_[place + offset] != next;
    });
  }
  return result;
}

}  // namespace octavo
