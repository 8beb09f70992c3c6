#include "http/body_decoder.h"

#include <algorithm>

#include "http/hex.h"

namespace octavo::http {
namespace {

constexpr size_t kMaxSizeDigits = 15;
constexpr size_t kMaxLineBytes = 16 << 10;

bool is_control(char c) { return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f; }

}  // namespace

void BodyDecoder::expect_length(uint64_t length, uint64_t max_bytes) {
  part_ = Part::data;
  left_ = length;
  state_ = length > max_bytes ? State::too_large : length > 0 ? State::open : State::done;
}

void BodyDecoder::expect_chunks(uint64_t max_bytes) {
  in_chunks_ = true;
  max_bytes_ = max_bytes;
  part_ = Part::size;
  state_ = State::open;
}

size_t BodyDecoder::feed(std::string_view bytes) {
  size_t used = 0;
  while (used < bytes.size() && state_ == State::open) {
    if (part_ == Part::data)
      used += take_data(bytes.substr(used));
    else
      take(bytes[used++]);
  }
  return used;
}

size_t BodyDecoder::take_data(std::string_view bytes) {
  const size_t n = std::min<uint64_t>(bytes.size(), left_);
  body_.append(bytes.substr(0, n));
  left_ -= n;
  if (left_ > 0) return n;
  if (in_chunks_)
    part_ = Part::data_cr;
  else
    state_ = State::done;
  return n;
}

void BodyDecoder::take(char c) {
  const bool in_line = part_ == Part::extension || part_ == Part::line;
  if (in_line && ((is_control(c) && c != '\r') || ++line_bytes_ > kMaxLineBytes)) {
    state_ = State::malformed;
    return;
  }
  switch (part_) {
    case Part::size:
      return take_digit(c);
    case Part::extension:
      if (c == '\r') part_ = Part::size_end;
      return;
    case Part::size_end:
      return c == '\n' ? end_size_line() : expect(c, '\n', part_);
    case Part::data_cr:
      return expect(c, '\r', Part::data_lf);
    case Part::data_lf:
      return expect(c, '\n', Part::size);
    case Part::line_start:
      part_ = c == '\r' ? Part::last_end : Part::line;
      if (is_control(c) && c != '\r') state_ = State::malformed;
      return;
    case Part::line:
      if (c == '\r') part_ = Part::line_end;
      return;
    case Part::line_end:
      return expect(c, '\n', Part::line_start);
    case Part::last_end:
      expect(c, '\n', Part::last_end);
      if (state_ == State::open) state_ = State::done;
      return;
    case Part::data:
      return;
  }
}

void BodyDecoder::take_digit(char c) {
  const int digit = hex_digit(c);
  if (digit >= 0 && num_digits_ < kMaxSizeDigits) {
    left_ = left_ * 16 + static_cast<uint64_t>(digit);
    ++num_digits_;
  } else if (num_digits_ > 0 && c == '\r') {
    part_ = Part::size_end;
  } else if (num_digits_ > 0 && (c == ';' || c == ' ' || c == '\t')) {
    part_ = Part::extension;
  } else {
    state_ = State::malformed;
  }
}

void BodyDecoder::end_size_line() {
  num_digits_ = 0;
  line_bytes_ = 0;
  if (left_ > max_bytes_ - body_.size())
    state_ = State::too_large;
  else
    part_ = left_ > 0 ? Part::data : Part::line_start;
}

void BodyDecoder::expect(char c, char wanted, Part next) {
  if (c == wanted)
    part_ = next;
  else
    state_ = State::malformed;
}

}  // namespace octavo::http
