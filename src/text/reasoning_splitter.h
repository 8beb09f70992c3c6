// Splits an answer into the model's reasoning and the rest, byte by byte, so that the parts do not
// depend on how the text was cut.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "text/answer_format.h"
#include "text/marker_finder.h"

namespace octavo {

// There is one block, at the start of the answer. White space around its markers belongs to them. A
// block that is never closed lasts to the end.
class ReasoningSplitter {
 public:
  // begins_inside: the prompt has opened the block. Then the answer may open it again.
  ReasoningSplitter(const ReasoningFormat& format, bool begins_inside);

  void push(std::string_view text, std::string& reasoning, std::string& content);
  void finish(std::string& reasoning, std::string& content);  // what was held back

  // Bytes of the answer so far up to the end of the block, markers included.
  size_t block_bytes() const;

 private:
  enum class State : uint8_t { before, inside, gap, outside };

  void push(char byte, std::string& reasoning, std::string& content);
  void look_for_open(char byte, std::string& reasoning, std::string& content);
  void give_up_open(std::string& reasoning, std::string& content);
  void push_inside(char byte, std::string& reasoning);
  void add_reasoning(std::string_view text, std::string& reasoning);

  ReasoningFormat format_;
  bool begins_inside_;
  State state_ = State::before;
  std::string held_;       // before: all so far. inside: white space that may be the last
  size_t num_spaces_ = 0;  // before: at the start
  MarkerFinder close_;
  bool has_reasoning_ = false;
  size_t num_bytes_ = 0, block_end_ = 0;
};

}  // namespace octavo
