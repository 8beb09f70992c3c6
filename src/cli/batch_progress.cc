#include "cli/batch_progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

namespace octavo::cli {
namespace {

double steady_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double rate(int64_t count, double seconds) {
  return static_cast<double>(count) / std::max(seconds, 1e-3);
}

std::string bar(int64_t done, int64_t total) {
  constexpr int64_t kWidth = 20;
  const auto full =
      static_cast<size_t>(kWidth * std::min(done, total) / std::max<int64_t>(total, 1));
  return fmt::format("[{}{}] ", std::string(full, '#'), std::string(kWidth - full, '-'));
}

std::string left(double seconds) {
  const auto s = static_cast<int64_t>(std::max(seconds, 0.0));
  return fmt::format(", {}:{:02}:{:02} left", s / 3600, s / 60 % 60, s % 60);
}

}  // namespace

std::string batch_progress_text(const BatchFigures& figures, std::optional<int64_t> total,
                                double elapsed_s) {
  std::string text =
      total ? fmt::format("{} of {}", figures.done, *total) : fmt::format("{}", figures.done);
  text += fmt::format(" lines, {:.1f} tokens/s", rate(figures.tokens, elapsed_s));
  if (total && figures.computed > 0)
    text += left(static_cast<double>(*total - figures.done) / rate(figures.computed, elapsed_s));
  return text;
}

std::string batch_summary(const BatchFigures& figures, double elapsed_s) {
  return fmt::format("[{} lines, {} failed; {} tokens in {:.2f} s, {:.1f} tokens/s]",
                     figures.computed, figures.failed, figures.tokens, elapsed_s,
                     rate(figures.tokens, elapsed_s));
}

BatchProgress::BatchProgress(Terminal& terminal, std::optional<int64_t> total)
    : terminal_(terminal), total_(total), start_s_(steady_s()) {}

double BatchProgress::elapsed_s() const { return steady_s() - start_s_; }

void BatchProgress::show(const BatchFigures& figures) {
  const std::string text = batch_progress_text(figures, total_, elapsed_s());
  const bool has_bar = terminal_.error_is_terminal() && total_;
  terminal_.long_progress(has_bar ? bar(figures.done, *total_) + text : "octavo: " + text);
}

void BatchProgress::finish(const BatchFigures& figures) {
  terminal_.clear_progress();
  terminal_.conclude(batch_summary(figures, elapsed_s()));
}

}  // namespace octavo::cli
