// How far a batch is: a bar on a terminal, a line now and then elsewhere.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/batch_lines.h"
#include "cli/terminal.h"

namespace octavo::cli {

// "12 of 40 lines, 35.2 tokens/s, 0:01:10 left": after elapsed_s of this run. total: lines of the
// input, if that is known.
std::string batch_progress_text(const BatchFigures& figures, std::optional<int64_t> total,
                                double elapsed_s);
// The same after all: "[40 lines, 1 failed; 810 tokens in 23.01 s, 35.2 tokens/s]".
std::string batch_summary(const BatchFigures& figures, double elapsed_s);

class BatchProgress {
 public:
  // total: as above.
  BatchProgress(Terminal& terminal, std::optional<int64_t> total);

  void show(const BatchFigures& figures);
  void finish(const BatchFigures& figures);

 private:
  double elapsed_s() const;

  Terminal& terminal_;
  std::optional<int64_t> total_;
  double start_s_;
};

}  // namespace octavo::cli
