// The body of a request out of its framing: so many bytes, or chunks. Fed as the bytes come, cut
// anywhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace octavo::http {

class BodyDecoder {
 public:
  enum class State : uint8_t { open, done, malformed, too_large };

  // The body: `length` bytes. Memory is taken for what has come, not for what is promised.
  void expect_length(uint64_t length, uint64_t max_bytes);
  // Chunks, then header lines, which are dropped.
  void expect_chunks(uint64_t max_bytes);

  // Returns how many of the bytes were used: all, unless the body ends before or is refused.
  size_t feed(std::string_view bytes);
  State state() const { return state_; }
  std::string& body() { return body_; }
  size_t num_bytes() const { return body_.size(); }

 private:
  enum class Part : uint8_t {
    data,        // left_ bytes
    size,        // of a chunk: digits
    extension,   // what may follow the digits
    size_end,    // line feed
    data_cr,     // after a chunk's data
    data_lf,     //
    line_start,  // of a header line after the last chunk, or of the empty line
    line,        //
    line_end,    // line feed
    last_end,    // line feed of the empty line
  };

  size_t take_data(std::string_view bytes);
  void take(char c);
  void take_digit(char c);
  void end_size_line();
  void expect(char c, char wanted, Part next);

  State state_ = State::done;
  Part part_ = Part::data;
  bool in_chunks_ = false;
  uint64_t left_ = 0, max_bytes_ = 0;
  size_t num_digits_ = 0;
  size_t line_bytes_ = 0;  // of the chunk's first line; of all header lines at the end
  std::string body_;
};

}  // namespace octavo::http
