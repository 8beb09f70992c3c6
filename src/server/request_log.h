// The server's log: one line for each request, and what happens to the server itself. A reader that
// stops reading costs lines, never answers (LineWriter).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/line_writer.h"

namespace octavo {

enum class LogLevel : uint8_t { debug, info, warning, error, off };
enum class LogFormat : uint8_t { text, json };

struct LogOptions {
  LogLevel level = LogLevel::info;
  LogFormat format = LogFormat::text;
  int file_descriptor = 2;
};

struct RequestLine {
  std::string request_id, remote_address, method, path;
  int status = 0;
  bool stream = false;
  bool is_quiet = false;  // of debug only
  double seconds = 0;     // from its first byte to the end of its answer
  // Of those that reached the engine.
  int num_prompts = 0;
  int64_t prompt_tokens = 0, cached_tokens = 0, completion_tokens = 0;
  std::optional<int64_t> draft_tokens = {}, accepted_tokens = {};  // where tokens may be guessed
  double queue_s = 0, ttft_s = 0;
  std::string finish_reason = {};
  std::string error = {};
  std::vector<std::string> warnings = {};  // what the request asked for to no effect
  std::string prompt = {};                 // only if asked for
};

class Log {
 public:
  explicit Log(LogOptions options);

  void request(const RequestLine& line);
  void say(LogLevel level, std::string_view message);

  int64_t num_dropped() const { return lines_.num_dropped(); }

 private:
  const LogOptions options_;
  LineWriter lines_;
};

}  // namespace octavo
