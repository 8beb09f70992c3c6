#include "cli/batch_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "llm/requests.h"

namespace octavo::cli {
namespace {

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
  return kOwnFormat.head(head) + "," + dump_line(rest).substr(1);
}

}  // namespace

Result<void> BatchRun::run(const LoadedEngine& engine, const Options& options) {
  Run run(*engine.engine, std::make_shared<std::counting_semaphore<>>(options.places),
          [&] { return next_item(engine, options); },
          {.wants_deltas = false, .window = options.window, .cancel = options.stop});
  while (auto event = run.next()) {
    // An end that the stop brought about is none: the line is asked again next time.
    if (!options.stop.stop_requested() || !is_cut_off(*event->output))
      ready_.emplace(event->prompt_index, std::move(*event->output));
    OCTAVO_CHECK_OK(write_ready(engine, options));
    if (!lines_.can_write()) break;  // who read the results is gone
  }
  return input_status_;
}

std::optional<RunItem> BatchRun::next_item(const LoadedEngine& engine, const Options& options) {
  auto line = lines_.next(options.stop);
  if (!line) input_status_ = tl::make_unexpected(line.error());
  if (!line || !*line) return std::nullopt;
  ParsedLine parsed =
      (*line)->too_long
          ? ParsedLine{fail(
                ErrorCode::resource_exhausted,
                fmt::format("longer than {} bytes, the most that a line may have", kMaxLineBytes))}
          : parse_batch_line((*line)->text, defaults_);
  Asked asked{lines_.head_of(**line), std::move(parsed.echo), {}};
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
    if (options.on_result) options.on_result();
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
  int64_t tokens = 0;
  for (const CompletionOutput& choice : output.outputs) tokens += std::ssize(choice.token_ids);
  return lines_.write(asked.head, result_line(asked.head, rest), tokens,
                      output.error ? std::optional(output.error->code) : std::nullopt);
}

}  // namespace octavo::cli
