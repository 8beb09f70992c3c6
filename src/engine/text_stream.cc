#include "engine/text_stream.h"

#include <algorithm>
#include <utility>

namespace octavo {

std::string TextStream::push(std::string_view text) {
  pending_ += text;
  size_t best_end = std::string::npos;
  const std::string* best = nullptr;
  for (const std::string& stop : stops_) {
    const size_t at = pending_.find(stop);
    if (at == std::string::npos) continue;
    const size_t end = at + stop.size();
    if (!best || end < best_end || (end == best_end && stop.size() > best->size())) {
      best = &stop;
      best_end = end;
    }
  }
  if (best) {
    stopped_ = *best;
    pending_.resize(include_stop_ ? best_end : best_end - best->size());
    return std::exchange(pending_, {});
  }
  const size_t shown = pending_.size() - held_back();
  std::string out = pending_.substr(0, shown);
  pending_.erase(0, shown);
  return out;
}

std::string TextStream::pass(std::string_view text) {
  return std::exchange(pending_, {}).append(text);
}

std::string TextStream::finish() { return std::exchange(pending_, {}); }

// Length of the longest end of pending_ that begins a stop string.
size_t TextStream::held_back() const {
  size_t longest = 0;
  for (const std::string& stop : stops_)
    for (size_t n = std::min(stop.size() - 1, pending_.size()); n > longest; --n)
      if (pending_.compare(pending_.size() - n, n, stop, 0, n) == 0) {
        longest = n;
        break;
      }
  return longest;
}

}  // namespace octavo
