#include "cli/batch_run.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "base/hash.h"
#include "llm/requests.h"

namespace octavo::cli {
namespace {

bool is_blank(const ScannedLine& line) {
  return !line.too_long && line.text.find_first_not_of(" \t\r") == std::string::npos;
}

RunItem without_settings(const LoadedEngine& engine, BatchLine& line) {
  if (const auto* messages = std::get_if<nlohmann::ordered_json>(&line.content)) {
    return request_of(
        engine, *messages, line.chat, line.params,
        {.kwargs = std::move(line.chat_template_kwargs), .tools = std::move(line.tools)});
  }
  auto* text = std::get_if<std::string>(&line.content);
  const Prompt prompt = text ? Prompt(std::move(*text))
                             : Prompt(std::move(std::get<std::vector<TokenId>>(line.content)));
  return request_of(engine, prompt, line.params);
}

RunItem to_item(const LoadedEngine& engine, Result<BatchLine> parsed) {
  if (!parsed) return {tl::make_unexpected(parsed.error())};
  BatchLine& line = *parsed;
  RunItem item = without_settings(engine, line);
  if (!item.request) return item;
  item.request->priority = line.priority;
  item.request->cache_salt = std::move(line.cache_salt);
  item.request->num_speculative_tokens = line.num_speculative_tokens;
  return item;
}

bool is_cut_off(const RequestOutput& output) {
  return std::any_of(
      output.outputs.begin(), output.outputs.end(),
      [](const CompletionOutput& choice) { return choice.finish_reason == FinishReason::abort; });
}

// The head first, as ResultFile wants it, then the members of `rest`.
std::string result_line(const ResultHead& head, const Json& rest) {
  return to_text(head) + "," + dump_line(rest).substr(1);
}

}  // namespace

BatchRun::BatchRun(LineScanner input, std::optional<ResultFile> output, SamplingParams defaults,
                   uint64_t settings, Terminal& terminal)
    : input_(std::move(input)),
      output_(std::move(output)),
      defaults_(std::move(defaults)),
      settings_(settings),
      terminal_(terminal) {}

Result<void> BatchRun::resume() {
  if (!output_) return {};
  std::optional<ScannedLine> last;
  OCTAVO_TRY(const ResumedResults found,
             output_->resume([&]() -> Result<std::optional<ResultHead>> {
               OCTAVO_TRY(last, next_line());
               return last ? std::optional(head_of(*last)) : std::nullopt;
             }));
  if (found.unfinished) pending_ = std::move(last);
  figures_.done = found.done;
  figures_.failed = found.failed;
  figures_.first_error = found.first_error;
  figures_.first_failed_line = found.first_failed_line;
  return {};
}

Result<bool> BatchRun::has_more() {
  OCTAVO_TRY(pending_, next_line());
  return pending_.has_value();
}

Result<std::optional<ScannedLine>> BatchRun::next_line(std::stop_token stop) {
  if (pending_) return std::exchange(pending_, std::nullopt);
  for (;;) {
    OCTAVO_TRY(std::optional<ScannedLine> line, input_.next(stop));
    if (!line || !is_blank(*line)) return line;
  }
}

ResultHead BatchRun::head_of(const ScannedLine& line) const {
  Hasher hasher;
  hasher.add_value(settings_);
  hasher.add_value(line.hash);
  return {line.number, hasher.result64()};
}

Result<void> BatchRun::run(const LoadedEngine& engine, const Options& options) {
  Run run(*engine.engine, std::make_shared<std::counting_semaphore<>>(options.places),
          [&] { return next_item(engine, options); },
          {.wants_deltas = false, .window = options.window, .cancel = options.stop});
  while (auto event = run.next()) {
    // An end that the stop brought about is none: the line is asked again next time.
    if (!options.stop.stop_requested() || !is_cut_off(*event->output))
      ready_.emplace(event->prompt_index, std::move(*event->output));
    OCTAVO_CHECK_OK(write_ready(engine, options));
    if (!terminal_.can_write()) break;  // who read the results is gone
  }
  return input_status_;
}

std::optional<RunItem> BatchRun::next_item(const LoadedEngine& engine, const Options& options) {
  auto line = next_line(options.stop);
  if (!line) input_status_ = tl::make_unexpected(line.error());
  if (!line || !*line) return std::nullopt;
  ParsedLine parsed =
      (*line)->too_long
          ? ParsedLine{fail(
                ErrorCode::resource_exhausted,
                fmt::format("longer than {} bytes, the most that a line may have", kMaxLineBytes))}
          : parse_batch_line((*line)->text, defaults_);
  Asked asked{head_of(**line), std::move(parsed.echo), {}};
  if (parsed.line)
    asked.shown = {.prompt = {},
                   .logprobs = parsed.line->params.logprobs.has_value(),
                   .prompt_logprobs = parsed.line->params.prompt_logprobs.has_value(),
                   .load_s = options.load_s};
  asked_.push_back(std::move(asked));
  return to_item(engine, std::move(parsed.line));
}

Result<void> BatchRun::write_ready(const LoadedEngine& engine, const Options& options) {
  while (!ready_.empty() && ready_.begin()->first == first_asked_) {
    OCTAVO_CHECK_OK(write(asked_.front(), std::move(ready_.begin()->second), *engine.tokenizer));
    ready_.erase(ready_.begin());
    asked_.pop_front();
    ++first_asked_;
    if (options.on_result) options.on_result(figures_);
  }
  return {};
}

Result<void> BatchRun::write(const Asked& asked, RequestOutput output, const Tokenizer& tokenizer) {
  Json rest = Json::object();
  if (output.error)
    rest["error"] = {
        {"code", error_name(output.error->code)},
        {"message", fmt::format("line {}: {}", asked.head.line, output.error->message)}};
  rest.update(asked.echo);
  if (!output.error) {
    ShownOutput shown = asked.shown;
    shown.prompt = std::move(output.prompt);
    rest.update(request_json(output, shown, tokenizer));
  }
  const std::string line = result_line(asked.head, rest);
  if (output_) {
    OCTAVO_CHECK_OK(output_->append(line));
  } else {
    terminal_.write(line);
  }
  count(asked, output);
  return {};
}

void BatchRun::count(const Asked& asked, const RequestOutput& output) {
  ++figures_.done;
  ++figures_.computed;
  for (const CompletionOutput& choice : output.outputs)
    figures_.tokens += std::ssize(choice.token_ids);
  if (!output.error || figures_.failed++ > 0) return;
  figures_.first_error = output.error->code;
  figures_.first_failed_line = asked.head.line;
}

std::optional<int64_t> count_lines(const std::string& path) {
  constexpr size_t kEnoughToSee = 4096;
  auto scanner = LineScanner::open(path, kEnoughToSee);
  struct stat facts = {};
  if (!scanner || ::fstat(scanner->fd(), &facts) != 0 || !S_ISREG(facts.st_mode))
    return std::nullopt;
  int64_t count = 0;
  for (;;) {
    const auto line = scanner->next();
    if (!line) return std::nullopt;
    if (!*line) return count;
    count += !is_blank(**line);
  }
}

}  // namespace octavo::cli
