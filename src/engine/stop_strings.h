// Texts that end an answer, made ready for looking at a stream of text byte by byte: each byte
// costs about a step per stop string, whatever they hold.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace octavo {

class StopStrings {
 public:
  StopStrings() = default;
  // None is empty.
  explicit StopStrings(std::vector<std::string> stops);

  // How much of each stop string the end of the text spells, which is less than all of it.
  using State = std::vector<uint32_t>;
  State start() const { return State(stops_.size(), 0); }

  // One more byte of text; the longest stop string that it completes, nullptr if none.
  const std::string* advance(State& state, char byte) const;

 private:
  struct Stop {
    std::string text;
    std::vector<uint32_t> borders;  // of each beginning: the longest other one that it ends in
  };

  std::vector<Stop> stops_;
};

}  // namespace octavo
