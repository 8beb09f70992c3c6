// Lines that a person types on a terminal: editing keys, as in a shell, and a history of this run.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace octavo::cli {

// The user's ~/.editrc counts. One at a time, on the thread that made it: it sets that thread's
// locale to UTF-8, whatever the environment says, as all text here is.
class LineEditor {
 public:
  LineEditor();
  ~LineEditor();
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  // Waits for Enter. Alt-Enter begins a new line of the same text, pasted text keeps its lines, and
  // Ctrl-C drops what has been typed. Nothing: the end of input, or Ctrl-C where nothing was typed.
  std::optional<std::string> read(std::string_view prompt);
  // Adds to the history what arrow keys and Ctrl-R find again.
  void remember(const std::string& text);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace octavo::cli
