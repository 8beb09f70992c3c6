#include "engine/stop_strings.h"

#include <utility>

namespace octavo {
namespace {

// Knuth, Morris and Pratt: how much of `text` is spelled by what spelled `matched` of it, and
// `byte`. borders[i]: of its first i + 1 bytes.
uint32_t next_match(const std::string& text, const std::vector<uint32_t>& borders, uint32_t matched,
                    char byte) {
  while (matched > 0 && text[matched] != byte) matched = borders[matched - 1];
  return text[matched] == byte ? matched + 1 : 0;
}

}  // namespace

StopStrings::StopStrings(std::vector<std::string> stops) {
  for (std::string& text : stops) {
    std::vector<uint32_t> borders = {0};
    borders.reserve(text.size());
    for (size_t i = 1; i < text.size(); ++i)
      borders.push_back(next_match(text, borders, borders.back(), text[i]));
    stops_.push_back({std::move(text), std::move(borders)});
  }
}

const std::string* StopStrings::advance(State& state, char byte) const {
  const std::string* complete = nullptr;
  for (size_t i = 0; i < stops_.size(); ++i) {
    const auto& [text, borders] = stops_[i];
    state[i] = next_match(text, borders, state[i], byte);
    if (state[i] < text.size()) continue;
    state[i] = borders.back();
    if (!complete || text.size() > complete->size()) complete = &text;
  }
  return complete;
}

}  // namespace octavo
