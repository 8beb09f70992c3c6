#include "text/jinja_text.h"

#include <algorithm>

namespace octavo::jinja {

void Text::append(std::string_view bytes, bool is_template) {
  if (bytes.empty()) return;
  bytes_.append(bytes);
  if (!runs_.empty() && runs_.back().is_template == is_template)
    runs_.back().end = bytes_.size();
  else
    runs_.push_back({bytes_.size(), is_template});
}

void Text::append(const Text& other, size_t begin, size_t end) {
  const std::string_view bytes = other.bytes_;
  for (size_t run = begin < end ? other.run_at(begin) : 0; begin < end; ++run) {
    const size_t stop = std::min(end, other.runs_[run].end);
    append(bytes.substr(begin, stop - begin), other.runs_[run].is_template);
    begin = stop;
  }
}

Text Text::slice(size_t begin, size_t end) const {
  Text piece;
  piece.append(*this, begin, end);
  piece.is_markup_ = is_markup_;
  return piece;
}

std::vector<TextSpan> Text::spans() const {
  std::vector<TextSpan> spans;
  size_t begin = 0;
  for (const Run& run : runs_) {
    spans.push_back({bytes_.substr(begin, run.end - begin), run.is_template});
    begin = run.end;
  }
  return spans;
}

size_t Text::run_at(size_t position) const {
  const auto run = std::upper_bound(runs_.begin(), runs_.end(), position,
                                    [](size_t at, const Run& r) { return at < r.end; });
  return static_cast<size_t>(run - runs_.begin());
}

}  // namespace octavo::jinja
