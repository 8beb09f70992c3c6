// A string that remembers, byte by byte, whether the template or the conversation wrote it. Every
// operation of the interpreter that makes text makes it by appending pieces of such strings, so
// marks cannot get lost on the way.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "text/text_span.h"

namespace octavo::jinja {

class Text {
 public:
  Text() = default;
  Text(std::string_view bytes, bool is_template) { append(bytes, is_template); }

  std::string_view bytes() const { return bytes_; }
  size_t size() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }
  // HTML as Jinja has it (jinja_markup.h): slices of it are, too, and what is appended becomes it.
  bool is_markup() const { return is_markup_; }
  void set_markup(bool is_markup) { is_markup_ = is_markup; }
  // True if the conversation wrote any of it.
  bool has_content() const {
    return runs_.size() > 1 || (runs_.size() == 1 && !runs_[0].is_template);
  }
  // REQUIRES: position < size().
  bool is_template_at(size_t position) const { return runs_[run_at(position)].is_template; }

  void append(std::string_view bytes, bool is_template);
  void append(const Text& other) { append(other, 0, other.size()); }
  // Appends bytes [begin, end) of other, which is not *this. REQUIRES: begin <= end <=
  // other.size().
  void append(const Text& other, size_t begin, size_t end);
  Text slice(size_t begin, size_t end) const;

  std::vector<TextSpan> spans() const;  // neighbours differ in kind; none is empty

 private:
  struct Run {
    size_t end;  // where the next one begins
    bool is_template;
  };
  size_t run_at(size_t position) const;

  std::string bytes_;
  std::vector<Run> runs_;  // cover bytes_; neighbours differ
  bool is_markup_ = false;
};

}  // namespace octavo::jinja
