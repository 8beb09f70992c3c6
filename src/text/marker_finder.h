// Finds a marker in a stream of bytes, for splitters of answers.
#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace octavo {

class MarkerFinder {
 public:
  // Not empty; outlives this.
  explicit MarkerFinder(std::string_view marker) : marker_(marker) {}

  // True: the marker is complete. Bytes that turn out to be no part of it are added to `passed`.
  bool push(char byte, std::string& passed) {
    held_ += byte;
    while (!marker_.starts_with(held_)) {
      passed += held_.front();
      held_.erase(0, 1);
    }
    if (held_.size() < marker_.size()) return false;
    held_.clear();
    return true;
  }

  // What may become the marker, when nothing more comes.
  std::string take() { return std::exchange(held_, {}); }
  bool holds_nothing() const { return held_.empty(); }

 private:
  std::string_view marker_;
  std::string held_;
};

}  // namespace octavo
