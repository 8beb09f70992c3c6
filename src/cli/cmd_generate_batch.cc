#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "base/hash.h"
#include "cli/batch_run.h"
#include "cli/commands.h"
#include "cli/given_template.h"
#include "cli/model_loading.h"
#include "cli/sampling_options.h"
#include "cli/stop_signals.h"
#include "engine/catalog.h"
#include "formats/quote.h"
#include "llm/sampling_params_json.h"

namespace octavo::cli {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::string output_name(const OptionValues& options) {
  return options.find<std::string>("output").value_or("-");
}

bool is_same_file(int a, int b) {
  struct stat one = {}, other = {};
  return ::fstat(a, &one) == 0 && ::fstat(b, &other) == 0 && S_ISREG(one.st_mode) &&
         one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

Result<void> check_flags(const OptionValues& options) {
  for (const std::string_view name : {"prompt", "prompt_token_ids", "chat", "system"})
    if (options.is_given(name))
      return fail(
          ErrorCode::invalid_argument,
          fmt::format("{} does not go with --input, whose lines say what is asked", flag_of(name)));
  if (options.flag("overwrite") && output_name(options) == "-")
    return fail(ErrorCode::invalid_argument, "--overwrite needs --output FILE");
  return check_engine_flags(options);
}

// What decides about the answers beside the lines themselves.
uint64_t hash_of_settings(const std::string& model, const std::string& chat_template,
                          const SamplingParams& defaults) {
  const std::string text = std::filesystem::path(model).filename().string() + "\n" +
                           to_json(defaults).dump(-1, ' ', false, Json::error_handler_t::replace) +
                           chat_template;
  return hash64(std::as_bytes(std::span(text.data(), text.size())));
}

Result<std::optional<ResultFile>> open_results(const std::string& path,
                                               const OptionValues& options) {
  OCTAVO_TRY(ResultFile file, ResultFile::open(path, options.flag("overwrite")));
  return std::optional(std::move(file));
}

Result<std::optional<ResultFile>> open_output(const OptionValues& options,
                                              const LineScanner& input) {
  const std::string path = output_name(options);
  if (path == "-") return std::nullopt;
  // Before anything of it is dropped. A pipe would wait for somebody to write.
  std::error_code ignored;
  const bool is_file = std::filesystem::is_regular_file(path, ignored);
  if (!is_file) return open_results(path, options);
  if (const auto same = LineScanner::open(path, 1); same && is_same_file(same->fd(), input.fd()))
    return fail(ErrorCode::invalid_argument,
                fmt::format("--output {} is the input; name another file", quote(path)));
  return open_results(path, options);
}

// How far a batch is, on one line.
class ProgressBar {
 public:
  ProgressBar(Terminal& terminal, std::optional<int64_t> total)
      : terminal_(terminal), total_(total) {}

  void show(const BatchFigures& figures) {
    const double elapsed = seconds_since(start_);
    const double tokens_per_s = static_cast<double>(figures.tokens) / std::max(elapsed, 1e-3);
    std::string text = total_ ? bar(figures.done) + fmt::format("{} of {}", figures.done, *total_)
                              : fmt::format("{}", figures.done);
    text += fmt::format(" lines, {:.1f} tokens/s", tokens_per_s);
    if (total_ && figures.computed > 0)
      text += ", " + left(elapsed / static_cast<double>(figures.computed) *
                          static_cast<double>(*total_ - figures.done));
    terminal_.progress(text);
  }

 private:
  std::string bar(int64_t done) const {
    constexpr int64_t kWidth = 20;
    const auto full = static_cast<size_t>(kWidth * done / std::max<int64_t>(*total_, 1));
    return fmt::format("[{}{}] ", std::string(full, '#'), std::string(kWidth - full, '-'));
  }
  static std::string left(double seconds) {
    const auto s = static_cast<int64_t>(std::max(seconds, 0.0));
    return fmt::format("{}:{:02}:{:02} left", s / 3600, s / 60 % 60, s % 60);
  }

  Terminal& terminal_;
  std::optional<int64_t> total_;
  Clock::time_point start_ = Clock::now();
};

Result<void> verdict(const BatchFigures& figures, bool interrupted, bool goes_on) {
  if (interrupted)
    return fail(ErrorCode::cancelled,
                fmt::format("stopped by Ctrl-C; {} lines have a result{}", figures.done,
                            goes_on ? ", and the same command goes on from there" : ""));
  if (figures.failed == 0) return {};
  return fail(*figures.first_error,
              fmt::format("{} of {} lines failed, the first is line {}; their results say why",
                          figures.failed, figures.done, figures.first_failed_line));
}

Result<void> run_batch(BatchRun& batch, EngineOptions engine_options,
                       const std::string& chat_template, const std::string& input, bool goes_on,
                       Terminal& terminal) {
  const size_t window = std::max<size_t>(256, 8 * static_cast<size_t>(engine_options.max_num_seqs));
  const int places = engine_options.max_queue_len;
  const auto start = Clock::now();
  OCTAVO_TRY(LoadedEngine engine, load_generator(std::move(engine_options), terminal));
  OCTAVO_CHECK_OK(use_template(engine, chat_template));
  const double load_s = seconds_since(start);

  StopSignals interrupt;
  ProgressBar progress(terminal, terminal.error_is_terminal() ? count_lines(input) : std::nullopt);
  progress.show(batch.figures());
  const auto generating = Clock::now();
  const auto done = batch.run(
      engine, {.places = places,
               .window = window,
               .load_s = load_s,
               .stop = interrupt.first(),
               .on_result = [&](const BatchFigures& figures) { progress.show(figures); }});
  terminal.clear_progress();
  OCTAVO_CHECK_OK(done);
  const BatchFigures& figures = batch.figures();
  const double elapsed = seconds_since(generating);
  terminal.remark(fmt::format("[{} lines, {} failed; {} tokens in {:.2f} s, {:.1f} tokens/s]",
                              figures.computed, figures.failed, figures.tokens, elapsed,
                              static_cast<double>(figures.tokens) / std::max(elapsed, 1e-3)));
  return verdict(figures, interrupt.came(), goes_on);
}

}  // namespace

Result<void> run_generate_batch(const Invocation& invocation, Terminal& terminal) {
  const OptionValues& options = invocation.options;
  OCTAVO_CHECK_OK(check_flags(options));
  OCTAVO_TRY(SamplingParams defaults, read_sampling_params(options));
  EngineOptions engine_options = read_engine_options(options);
  OCTAVO_TRY(engine_options.model, find_model(invocation.positionals[0], terminal));
  use_model_defaults(defaults, options, find_in_catalog(engine_options.model));

  OCTAVO_TRY(const std::string chat_template, read_template(options.text("chat_template")));
  const std::string input_name = options.text("input");
  OCTAVO_TRY(LineScanner input, LineScanner::open(input_name, kMaxLineBytes));
  OCTAVO_TRY(std::optional<ResultFile> output, open_output(options, input));
  const bool goes_on = output && input_name != "-";
  const uint64_t settings = hash_of_settings(engine_options.model, chat_template, defaults);
  BatchRun batch(std::move(input), std::move(output), std::move(defaults), settings, terminal);
  OCTAVO_CHECK_OK(batch.resume());
  if (batch.figures().done > 0)
    terminal.remark(fmt::format("{} lines have a result already.", batch.figures().done));
  OCTAVO_TRY(const bool has_more, batch.has_more());
  if (!has_more) return verdict(batch.figures(), false, goes_on);
  return run_batch(batch, std::move(engine_options), chat_template, input_name, goes_on, terminal);
}

}  // namespace octavo::cli
