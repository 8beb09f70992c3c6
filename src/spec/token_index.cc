#include "spec/token_index.h"

#include <algorithm>
#include <cmath>
#include <utility>

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

// A token that may come, where it stands, and what it follows.
struct TokenIndex::Way {
  TokenId token = kEnd;
  int parent = kRoot;  // among the drafts
  int draft = kRoot;   // its number, once it is one
  size_t depth = 0;    // tokens before it
  double probability = 1;
  std::vector<uint32_t> places = {};  // with it at `depth`
};

// What most of the places have `offset` tokens on; kEnd: none of them has anything.
TokenId TokenIndex::most_frequent(const std::vector<uint32_t>& places, size_t offset,
                                  size_t& count) const {
  TokenId best = kEnd;
  count = 0;
  for (const uint32_t place : places) {
    const size_t at = place + offset;
    if (at >= tokens_.size() || tokens_[at] == kEnd || tokens_[at] == best) continue;
    const auto same =
        static_cast<size_t>(std::count_if(places.begin(), places.end(), [&](uint32_t other) {
          return other + offset < tokens_.size() && tokens_[other + offset] == tokens_[at];
        }));
    if (same > count) best = tokens_[at], count = same;
  }
  return best;
}

void TokenIndex::add_ways(const Way& from, const ContinuationLimits& limits,
                          std::vector<Way>& open) const {
  const size_t depth = from.draft == kRoot ? 0 : from.depth + 1;
  const double allowed = limits.tokens_per_match * static_cast<double>(length_);
  if (static_cast<double>(depth + 1) > allowed) return;
  std::vector<uint32_t> left = from.places;
  const auto total = static_cast<double>(left.size());
  for (int i = 0; i < limits.branching_factor && !left.empty(); ++i) {
    size_t count = 0;
    Way way{.token = most_frequent(left, depth, count), .parent = from.draft, .depth = depth};
    way.probability = from.probability * static_cast<double>(count) / total;
    if (way.token == kEnd || way.probability < limits.min_probability) return;
    const auto others = std::stable_partition(left.begin(), left.end(), [&](uint32_t place) {
      return place + depth < tokens_.size() && tokens_[place + depth] == way.token;
    });
    way.places.assign(left.begin(), others);
    left.erase(left.begin(), others);
    open.push_back(std::move(way));
  }
}

Continuation TokenIndex::continuation(std::span<const TokenId> context,
                                      const ContinuationLimits& limits) const {
  find_places(context, limits.max_depth);
  Continuation result{.probability = 1, .match_length = static_cast<int>(length_)};
  std::vector<Way> open;
  add_ways({.places = places_}, limits, open);
  while (std::cmp_less(result.tokens.size(), limits.max_tokens) && !open.empty()) {
    const auto best = std::max_element(open.begin(), open.end(), [](const Way& a, const Way& b) {
      return a.probability < b.probability;
    });
    Way way = std::move(*best);
    open.erase(best);
    way.draft = add_draft(result.tokens, result.parents, way.token, way.parent);
    result.probability = std::min(result.probability, way.probability);
    add_ways(way, limits, open);
  }
  order_depth_first(result.tokens, result.parents);
  return result;
}

}  // namespace octavo
