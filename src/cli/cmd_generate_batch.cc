#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "base/hash.h"
#include "cli/batch_progress.h"
#include "cli/batch_run.h"
#include "cli/commands.h"
#include "cli/given_template.h"
#include "cli/model_loading.h"
#include "cli/openai_batch_run.h"
#include "cli/sampling_options.h"
#include "cli/stop_signals.h"
#include "engine/catalog.h"
#include "formats/quote.h"
#include "llm/sampling_params_json.h"
#include "server/local_calls.h"

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

// What both forms of lines share.
struct Job {
  const OptionValues& options;
  EngineOptions engine_options;
  SamplingParams defaults;
  std::string chat_template;  // its source, if one was given
  std::string input;
  bool goes_on;  // the same command may be given again
  Terminal& terminal;

  size_t window() const {
    return std::max<size_t>(256, 8 * static_cast<size_t>(engine_options.max_num_seqs));
  }
  BatchProgress progress() const {
    return {terminal, options.flag("quiet") ? std::nullopt : count_lines(input)};
  }
};

Result<void> run_own_lines(BatchLines& lines, Job job) {
  const size_t window = job.window();
  const int places = job.engine_options.max_queue_len;
  const auto start = Clock::now();
  OCTAVO_TRY(LoadedEngine engine, load_generator(std::move(job.engine_options), job.terminal));
  OCTAVO_CHECK_OK(use_template(engine, job.chat_template));
  const double load_s = seconds_since(start);

  const StopSignals interrupt;
  BatchProgress progress = job.progress();
  progress.show(lines.figures());
  const auto done = BatchRun(lines, std::move(job.defaults))
                        .run(engine, {.places = places,
                                      .window = window,
                                      .load_s = load_s,
                                      .stop = interrupt.first(),
                                      .on_result = [&] { progress.show(lines.figures()); }});
  progress.finish(lines.figures());
  OCTAVO_CHECK_OK(done);
  return verdict(lines.figures(), interrupt.came(), job.goes_on);
}

// The server, but for its network.
ServeOptions serve_options(const Job& job) {
  ServeOptions serve;
  for (const OptionValue& name : job.options.all_given("served_model_name"))
    serve.served_model_names.push_back(std::get<std::string>(name));
  serve.default_params = job.defaults;
  serve.max_logprobs = job.engine_options.max_logprobs;
  return serve;
}

Result<void> load_calls(LocalCalls& calls, const Job& job) {
  EngineOptions options = job.engine_options;
  calls.watch(options);
  OCTAVO_TRY(LoadedEngine engine, load_with_progress(options, job.terminal));
  OCTAVO_CHECK_OK(use_template(engine, job.chat_template));
  std::string source =
      job.chat_template.empty() ? engine.tokenizer->chat_template() : job.chat_template;
  calls.set_ready(std::move(engine), std::move(options), std::move(source));
  return {};
}

Result<void> run_openai_lines(BatchLines& lines, const Job& job, const std::string& model) {
  ServeOptions serve = serve_options(job);
  if (serve.served_model_names.empty()) serve.served_model_names = {model};
  LocalCalls calls(std::move(serve));
  OCTAVO_CHECK_OK(load_calls(calls, job));

  const StopSignals interrupt;
  BatchProgress progress = job.progress();
  progress.show(lines.figures());
  std::optional<int> max_tokens;
  if (job.options.is_given("max_tokens")) max_tokens = job.options.integer("max_tokens");
  const auto done = OpenAiBatchRun(lines, calls, max_tokens)
                        .run({.places = static_cast<size_t>(job.engine_options.max_queue_len),
                              .window = job.window(),
                              .stop = interrupt.first(),
                              .on_result = [&] { progress.show(lines.figures()); }});
  progress.finish(lines.figures());
  OCTAVO_CHECK_OK(done);
  return verdict(lines.figures(), interrupt.came(), job.goes_on);
}

// A line that is no JSON, or neither form's, fails alone: those behind it tell the form.
Result<bool> are_openai_lines(BatchLines& lines) {
  constexpr size_t kMaxLooked = 8;
  for (size_t i = 0; i < kMaxLooked; ++i) {
    OCTAVO_TRY(const ScannedLine* line, lines.peek(i));
    if (!line) break;
    if (const auto is_openai = is_openai_batch_line(line->text)) return *is_openai;
  }
  return false;
}

}  // namespace

Result<void> run_generate_batch(const Invocation& invocation, Terminal& terminal) {
  const OptionValues& options = invocation.options;
  OCTAVO_CHECK_OK(check_flags(options));
  Job job{options, read_engine_options(options), {}, {}, options.text("input"), false, terminal};
  OCTAVO_TRY(job.defaults, read_sampling_params(options));
  OCTAVO_TRY(job.engine_options.model, find_model(invocation.positionals[0], terminal));
  use_model_defaults(job.defaults, options, find_in_catalog(job.engine_options.model));

  OCTAVO_TRY(job.chat_template, read_template(options.text("chat_template")));
  OCTAVO_TRY(LineScanner input, LineScanner::open(job.input, kMaxLineBytes));
  OCTAVO_TRY(std::optional<ResultFile> output, open_output(options, input));
  job.goes_on = output && job.input != "-";
  BatchLines lines(std::move(input), std::move(output),
                   hash_of_settings(job.engine_options.model, job.chat_template, job.defaults),
                   terminal);
  OCTAVO_TRY(const bool is_openai, are_openai_lines(lines));
  OCTAVO_CHECK_OK(lines.resume(is_openai ? kOpenAiFormat : kOwnFormat));
  if (lines.figures().done > 0)
    terminal.remark(fmt::format("{} lines have a result already.", lines.figures().done));
  OCTAVO_TRY(const ScannedLine* next, lines.peek());
  if (!next) return verdict(lines.figures(), false, job.goes_on);
  if (is_openai) return run_openai_lines(lines, job, invocation.positionals[0]);
  return run_own_lines(lines, std::move(job));
}

}  // namespace octavo::cli
