#include "text/merge.h"

#include <algorithm>

namespace octavo {
namespace {

constexpr uint32_t kEnd = UINT32_MAX;

}  // namespace

void MergeEngine::run(std::vector<Symbol>& symbols, MergeRules& rules, EncodeStats& stats) {
  link(symbols.size());
  heap_.clear();
  for (uint32_t i = 1; i < symbols.size(); ++i) {
    if (const auto found = candidate(symbols, i - 1, i, rules, stats)) heap_.push_back(*found);
  }
  std::make_heap(heap_.begin(), heap_.end(), after);
  while (!heap_.empty()) {
    std::pop_heap(heap_.begin(), heap_.end(), after);
    const Candidate best = heap_.back();
    heap_.pop_back();
    ++stats.heap_steps;
    const auto left = static_cast<uint32_t>(best.order);
    if (symbols[left].size == 0 || symbols[best.right].size == 0 ||
        symbols[left].size + symbols[best.right].size != best.size) {
      continue;
    }
    join(symbols, left, best);
    push(candidate(symbols, links_[left].previous, left, rules, stats));
    push(candidate(symbols, left, links_[left].next, rules, stats));
  }
  std::erase_if(symbols, [](const Symbol& symbol) { return symbol.size == 0; });
}

void MergeEngine::link(size_t count) {
  links_.resize(count);
  for (uint32_t i = 0; i < count; ++i) links_[i] = {i - 1, i + 1 == count ? kEnd : i + 1};
}

std::optional<MergeEngine::Candidate> MergeEngine::candidate(const std::vector<Symbol>& symbols,
                                                             uint32_t left, uint32_t right,
                                                             MergeRules& rules,
                                                             EncodeStats& stats) const {
  if (left == kEnd || right == kEnd) return std::nullopt;
  ++stats.lookups;
  const auto merge = rules.find(symbols[left], symbols[right]);
  if (!merge) return std::nullopt;
  return Candidate{uint64_t{merge->priority} << 32 | left, right,
                   symbols[left].size + symbols[right].size, merge->id};
}

void MergeEngine::push(std::optional<Candidate> found) {
  if (!found) return;
  heap_.push_back(*found);
  std::push_heap(heap_.begin(), heap_.end(), after);
}

void MergeEngine::join(std::vector<Symbol>& symbols, uint32_t left, const Candidate& merged) {
  symbols[left].size = merged.size;
  symbols[left].id = merged.id;
  symbols[merged.right].size = 0;
  const uint32_t next = links_[merged.right].next;
  links_[left].next = next;
  if (next != kEnd) links_[next].previous = left;
}

}  // namespace octavo
