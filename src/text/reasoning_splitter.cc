#include "text/reasoning_splitter.h"

#include <utility>

#include "text/json_pieces.h"

namespace octavo {

ReasoningSplitter::ReasoningSplitter(const ReasoningFormat& format, bool begins_inside)
    : format_(format), begins_inside_(begins_inside), close_(format.close) {}

void ReasoningSplitter::push(std::string_view text, std::string& reasoning, std::string& content) {
  for (const char byte : text) {
    ++num_bytes_;
    push(byte, reasoning, content);
  }
}

void ReasoningSplitter::push(char byte, std::string& reasoning, std::string& content) {
  switch (state_) {
    case State::before:
      return look_for_open(byte, reasoning, content);
    case State::inside:
      return push_inside(byte, reasoning);
    case State::gap:
      if (is_json_space(byte)) return;
      state_ = State::outside;
      [[fallthrough]];
    case State::outside:
      content += byte;
  }
}

void ReasoningSplitter::look_for_open(char byte, std::string& reasoning, std::string& content) {
  held_ += byte;
  if (num_spaces_ + 1 == held_.size() && is_json_space(byte)) {
    ++num_spaces_;
    return;
  }
  const std::string_view said = std::string_view(held_).substr(num_spaces_);
  if (!format_.open.starts_with(said)) return give_up_open(reasoning, content);
  if (said.size() < format_.open.size()) return;
  held_.clear();
  state_ = State::inside;
}

// All of it is something else.
void ReasoningSplitter::give_up_open(std::string& reasoning, std::string& content) {
  state_ = begins_inside_ ? State::inside : State::outside;
  for (const char byte : std::exchange(held_, {})) push(byte, reasoning, content);
}

void ReasoningSplitter::push_inside(char byte, std::string& reasoning) {
  std::string passed;
  const bool closed = close_.push(byte, passed);
  add_reasoning(passed, reasoning);
  if (!closed) return;
  held_.clear();
  block_end_ = num_bytes_;
  state_ = State::gap;
}

// Without white space at both ends.
void ReasoningSplitter::add_reasoning(std::string_view text, std::string& reasoning) {
  for (const char byte : text) {
    if (is_json_space(byte)) {
      if (has_reasoning_) held_ += byte;
      continue;
    }
    reasoning.append(std::exchange(held_, {})) += byte;
    has_reasoning_ = true;
  }
}

void ReasoningSplitter::finish(std::string& reasoning, std::string& content) {
  if (state_ == State::before) give_up_open(reasoning, content);
  if (state_ != State::inside) return;
  add_reasoning(close_.take(), reasoning);
  held_.clear();
}

size_t ReasoningSplitter::block_bytes() const {
  if (state_ == State::inside) return num_bytes_;
  return block_end_;
}

}  // namespace octavo
