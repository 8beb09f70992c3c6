#include "text/merge.h"

#include <algorithm>

namespace octavo {
namespace {

constexpr uint32_t kEnd = UINT32_MAX;

}  // namespace

void MergeEngine::run(std::vector<Symbol>& symbols, MergeRules& rules, EncodeStats& stats) {
  link(symbols.size());
  heap_.clear();
  heap_.reserve(symbols.size() + symbols.size() / 2);  // grown by doubling a long piece takes twice
  for (uint32_t i = 0; i + 1 < symbols.size(); ++i) {
    if (const auto found = candidate(symbols, i, rules, stats)) heap_.push_back(*found);
  }
  std::make_heap(heap_.begin(), heap_.end(), after);
  while (!heap_.empty() && !stats.stop.stop_requested()) {
    std::pop_heap(heap_.begin(), heap_.end(), after);
    const Candidate best = heap_.back();
    heap_.pop_back();
    ++stats.heap_steps;
    const auto left = static_cast<uint32_t>(best.order);
    if (is_stale(symbols, left, best.size)) continue;
    join(symbols, left, best);
    push(candidate(symbols, links_[left].previous, rules, stats));
    push(candidate(symbols, left, rules, stats));
  }
  std::erase_if(symbols, [](const Symbol& symbol) { return symbol.size == 0; });
}

void MergeEngine::link(size_t count) {
  links_.resize(count);
  for (uint32_t i = 0; i < count; ++i) links_[i] = {i - 1, i + 1 == count ? kEnd : i + 1};
}

// The left symbol changes its neighbour only by taking it in, and then is larger.
bool MergeEngine::is_stale(const std::vector<Symbol>& symbols, uint32_t left, uint32_t size) const {
  const uint32_t right = links_[left].next;
  return symbols[left].size == 0 || right == kEnd ||
         symbols[left].size + symbols[right].size != size;
}

std::optional<MergeEngine::Candidate> MergeEngine::candidate(const std::vector<Symbol>& symbols,
                                                             uint32_t left, MergeRules& rules,
                                                             EncodeStats& stats) const {
  if (left == kEnd || links_[left].next == kEnd) return std::nullopt;
  const Symbol& right = symbols[links_[left].next];
  ++stats.lookups;
  const auto merge = rules.find(symbols[left], right);
  if (!merge) return std::nullopt;
  return Candidate{uint64_t{merge->priority} << 32 | left, symbols[left].size + right.size,
                   merge->id};
}

void MergeEngine::push(std::optional<Candidate> found) {
  if (!found) return;
  heap_.push_back(*found);
  std::push_heap(heap_.begin(), heap_.end(), after);
}

void MergeEngine::join(std::vector<Symbol>& symbols, uint32_t left, const Candidate& merged) {
  const uint32_t right = links_[left].next;
  symbols[left].size = merged.size;
  symbols[left].id = merged.id;
  symbols[right].size = 0;
  const uint32_t next = links_[right].next;
  links_[left].next = next;
  if (next != kEnd) links_[next].previous = left;
}

}  // namespace octavo
