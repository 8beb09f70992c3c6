// Finds names by binary search. Unlike a hash table it has no bad case that a hostile file could
// aim at.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace octavo {

class NameIndex {
 public:
  NameIndex() = default;

  // names[i] gets the number i. The texts must outlive the index.
  explicit NameIndex(const std::vector<std::string_view>& names) {
    sorted_.reserve(names.size());
    for (size_t i = 0; i < names.size(); ++i) sorted_.emplace_back(names[i], i);
    std::sort(sorted_.begin(), sorted_.end());
  }

  std::optional<size_t> find(std::string_view name) const {
    const auto it = std::lower_bound(sorted_.begin(), sorted_.end(), std::pair(name, size_t{0}));
    if (it == sorted_.end() || it->first != name) return std::nullopt;
    return it->second;
  }

  // A name that was given twice, if any.
  std::optional<std::string_view> duplicate() const {
    const auto same = [](const auto& a, const auto& b) { return a.first == b.first; };
    const auto it = std::adjacent_find(sorted_.begin(), sorted_.end(), same);
    if (it == sorted_.end()) return std::nullopt;
    return it->first;
  }

 private:
  std::vector<std::pair<std::string_view, size_t>> sorted_;
};

}  // namespace octavo
