// The file that octavo generate --output writes: a line for each line of the input, in its order,
// and never half a line. A run that was interrupted, however, goes on after the last whole one.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/file_descriptor.h"
#include "base/result.h"

namespace octavo::cli {

// What every result line begins with: which line of the input it answers, and a hash by which that
// line is known again.
struct ResultHead {
  int64_t line = 0;
  uint64_t input_hash = 0;
};
// How a result line is written: its head, and what an earlier run's line says of a failure.
struct ResultFormat {
  std::string (*head)(const ResultHead& head);  // the line's beginning
  // Of what follows the head, of which the first bytes are there. Nothing: it is no failed one.
  std::optional<ErrorCode> (*error_of)(std::string_view after_head);
};
// `{"line":3,"input_hash":"0123456789abcdef"`, to be followed by further members; of a failed line
// `"error":{"code":...}` is the next.
extern const ResultFormat kOwnFormat;

// What an earlier run left.
struct ResumedResults {
  int64_t done = 0;  // lines
  int64_t failed = 0;
  std::optional<ErrorCode> first_error;
  int64_t first_failed_line = 0;
  bool unfinished = false;  // the last one was, and has been dropped
};

class ResultFile {
 public:
  // Created if it is not there, and locked, so that two runs never write to one file. overwrite:
  // what is in it is dropped. Errors: io_error, not_found (its folder), invalid_argument (another
  // run writes it).
  static Result<ResultFile> open(const std::string& path, bool overwrite);

  // Calls `next_input` for each result that is there, whole or not, and compares; then drops an
  // unfinished last line, whose input is to be answered again. Nothing is changed on an error:
  // invalid_argument if the file holds anything but results of this input.
  Result<ResumedResults> resume(
      const ResultFormat& format,
      const std::function<Result<std::optional<ResultHead>>()>& next_input);

  // One line with its end. After an error the file is as it was before. Errors: io_error.
  Result<void> append(std::string_view line);

 private:
  ResultFile(FileDescriptor file, std::string path, bool is_regular)
      : file_(std::move(file)), path_(std::move(path)), is_regular_(is_regular) {}
  tl::unexpected<Error> foreign(int64_t line) const;

  FileDescriptor file_;
  std::string path_;
  bool is_regular_;
  int64_t size_ = 0;
};

}  // namespace octavo::cli
