// Server-sent events out of bytes, however they are cut.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace octavo::http {

struct SseEvent {
  std::string type;  // of "event:"; empty: none was named
  std::string data;  // lines of "data:", joined by newlines
};

// As the HTML standard has it: lines end with LF, CR or CRLF, comments are dropped, an event ends
// with a blank line and is one only if it has data. What stands after the last blank line is none.
class SseParser {
 public:
  explicit SseParser(size_t max_event_bytes = size_t{8} << 20) : max_bytes_(max_event_bytes) {}

  // Calls `on_event` for each event that `bytes` complete. False, now and ever after: an event is
  // larger than the bound.
  bool feed(std::string_view bytes, const std::function<void(const SseEvent&)>& on_event);

 private:
  void end_line(const std::function<void(const SseEvent&)>& on_event);
  void read_field(std::string_view line);

  size_t max_bytes_;
  std::string line_;       // begun, not ended
  SseEvent event_;         // of the lines so far
  bool has_data_ = false;  // an empty line of data is data
  bool first_line_ = true;
  bool after_cr_ = false;  // an LF that comes next belongs to the CR before
  bool too_large_ = false;
};

}  // namespace octavo::http
