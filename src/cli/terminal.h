// Standard output, and what is said beside it on standard error.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "cli/progress_pace.h"

namespace octavo::cli {

class Terminal {
 public:
  Terminal();  // looks at the three standard streams
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;
  ~Terminal() { clear_progress(); }

  bool input_is_terminal() const { return input_is_terminal_; }
  bool output_is_terminal() const { return output_is_terminal_; }
  bool error_is_terminal() const { return error_is_terminal_; }
  bool understands_escapes() const { return understands_escapes_; }  // by the variable TERM

  // To standard output, at once. On a terminal, control characters other than newline and tab
  // become U+FFFD: text of models and files must not command it. After a failed write nothing more
  // is written.
  void write(std::string_view text);

  // False once a write failed: whoever makes text may stop.
  bool can_write() const { return write_error_ == 0; }

  // io_error if a write failed. A reader who went away (EPIPE) is no error.
  Result<void> status() const;

  // One line on standard error, whatever the text holds: names from files get into messages. say:
  // always. remark: only if it is a terminal.
  void say(std::string_view line);
  void remark(std::string_view line);

  // Shows, in place of the line before, how far a long work is; only if standard error is a
  // terminal.
  void progress(std::string_view line);
  // Of work that may take minutes or hours: where it is no terminal, a line of its own now and
  // then, so that whoever waits there hears of it, too.
  void long_progress(std::string_view line);
  // What came of it, where progress was shown.
  void conclude(std::string_view line);
  void clear_progress();

  // From now on there is neither progress nor are there remarks.
  void be_quiet() { is_quiet_ = true; }

 private:
  bool input_is_terminal_, output_is_terminal_, error_is_terminal_;
  bool understands_escapes_;
  bool is_quiet_ = false;
  ProgressPace pace_;           // of lines of progress
  bool told_progress_ = false;  // in such lines
  std::string progress_;        // the line that stands there, or empty
  int write_error_ = 0;         // errno
};

// `text` with control characters, C1 included, as U+FFFD; newline and tab stay. REQUIRES: whole
// characters of UTF-8.
std::string without_controls(std::string_view text);

// Valid UTF-8 on one line: other bytes, control characters and newlines become U+FFFD.
std::string one_line(std::string_view text);

}  // namespace octavo::cli
