// A file or standard input, line by line, with bounded memory.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "base/file_descriptor.h"
#include "base/result.h"

namespace octavo::cli {

struct ScannedLine {
  int64_t number = 0;     // from 1
  int64_t offset = 0;     // of its first byte
  std::string text = {};  // without its end; cut to max_bytes
  bool too_long = false;  // it was cut
  bool complete = true;   // false: the file ended before a newline came
  uint64_t hash = 0;      // of all its bytes
};

class LineScanner {
 public:
  // "-" is standard input. Errors: not_found, io_error.
  static Result<LineScanner> open(const std::string& path, size_t max_bytes);
  // Reads `file` from its present position; `name` is for messages.
  LineScanner(FileDescriptor file, std::string name, size_t max_bytes);

  // Nothing: at the end, or `stop` came while it waited for input.
  Result<std::optional<ScannedLine>> next(std::stop_token stop = {});

  int fd() const { return file_ ? file_.get() : 0; }
  const std::string& name() const { return name_; }

 private:
  Result<bool> fill(const std::stop_token& stop);

  FileDescriptor file_;  // none: standard input
  std::string name_;
  size_t max_bytes_;
  std::string buffer_;
  size_t begin_ = 0;  // of what is not taken yet, in buffer_
  int64_t offset_ = 0;
  int64_t number_ = 0;
};

}  // namespace octavo::cli
