#include "engine/text_stream.h"

#include <algorithm>
#include <utility>

namespace octavo {

std::string TextStream::push(std::string_view text) {
  for (const char byte : text) {
    pending_ += byte;
    const std::string* stop = stops_.advance(state_, byte);
    if (!stop) continue;
    stopped_ = *stop;
    if (!include_stop_) pending_.resize(pending_.size() - stop->size());
    return std::exchange(pending_, {});
  }
  const size_t shown = pending_.size() - held_back();
  std::string out = pending_.substr(0, shown);
  pending_.erase(0, shown);
  return out;
}

std::string TextStream::pass(std::string_view text) {
  state_ = stops_.start();
  return std::exchange(pending_, {}).append(text);
}

std::string TextStream::finish() { return std::exchange(pending_, {}); }

// Length of the longest end of the text that begins a stop string.
size_t TextStream::held_back() const {
  return state_.empty() ? 0 : *std::max_element(state_.begin(), state_.end());
}

}  // namespace octavo
