#include "cli/openai_batch_run.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "cli/batch_line.h"

namespace octavo::cli {
namespace {

constexpr std::chrono::milliseconds kLookForStop{50};
constexpr int kBusy = 429, kStopped = 503;

ParsedOpenAiLine parse(const ScannedLine& line, std::optional<int> default_max_tokens) {
  if (!line.too_long) return parse_openai_line(line.text, default_max_tokens);
  return {fail(ErrorCode::resource_exhausted,
               fmt::format("longer than {} bytes, the most that a line may have", kMaxLineBytes))};
}

}  // namespace

Result<void> OpenAiBatchRun::run(const Options& options) {
  const Result<void> done = answer_all(options);
  while (num_open_ > 0) {  // nobody may be left who calls back
    calls_.cut_all();
    wait_for_answers(options.stop);
  }
  return done;
}

Result<void> OpenAiBatchRun::answer_all(const Options& options) {
  while (lines_.can_write()) {  // else who read the results is gone
    while (may_take(options)) OCTAVO_CHECK_OK(take_one(options));
    OCTAVO_CHECK_OK(write_ready(options));
    const bool nothing_left = (exhausted_ && refused_.empty()) || options.stop.stop_requested();
    if (num_open_ == 0 && nothing_left) break;
    if (num_open_ > 0) wait_for_answers(options.stop);
  }
  return {};
}

bool OpenAiBatchRun::may_take(const Options& options) const {
  const bool has_one = !refused_.empty() || !exhausted_;
  return has_one && !is_full_ && num_open_ < options.places &&
         next_index_ - next_written_ < options.window && !options.stop.stop_requested();
}

Result<void> OpenAiBatchRun::take_one(const Options& options) {
  if (!refused_.empty()) {
    const size_t index = refused_.front();
    refused_.pop_front();
    ask(index);
    return {};
  }
  OCTAVO_TRY(const std::optional<ScannedLine> line, lines_.next(options.stop));
  exhausted_ = !line;
  if (!line) return {};
  ParsedOpenAiLine parsed = parse(*line, default_max_tokens_);
  const size_t index = next_index_++;
  Asked& asked = asked_[index];
  asked.head = lines_.head_of(*line);
  asked.custom_id = std::move(parsed.custom_id);
  if (!parsed.line) {
    asked.result = openai_result(asked.head, asked.custom_id, parsed.line.error());
    return write_ready(options);
  }
  asked.line = std::move(*parsed.line);
  ask(index);
  return {};
}

void OpenAiBatchRun::ask(size_t index) {
  Asked& asked = asked_[index];
  // Of two, the later may come to the server first.
  alone_ = num_open_++ == 0 ? std::optional(index) : std::nullopt;
  calls_.post(asked.line.url, asked.line.body, openai_result_id(asked.head),
              [this, index](http::Response response) {
                const std::lock_guard lock(mutex_);
                answers_.emplace_back(index, std::move(response));
                changed_.notify_one();
              });
}

void OpenAiBatchRun::wait_for_answers(const std::stop_token& stop) {
  std::deque<std::pair<size_t, http::Response>> answers;
  {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kLookForStop, [this] { return !answers_.empty(); });
    answers.swap(answers_);
  }
  for (const auto& [index, response] : answers) note(index, response, stop.stop_requested());
  // Again and again, since a request may just be on its way to the engine.
  if (stop.stop_requested()) calls_.cut_all();
}

// An end that the stop brought about is none: the line is asked again next time.
void OpenAiBatchRun::note(size_t index, const http::Response& response, bool stopping) {
  --num_open_;
  if (stopping && response.status == kStopped) return;
  Asked& asked = asked_[index];
  const bool is_refused = response.status == kBusy && alone_ != index;
  is_full_ = is_refused && num_open_ > 0;
  if (is_refused)
    refused_.push_back(index);
  else
    asked.result = openai_result(asked.head, asked.custom_id, response);
}

Result<void> OpenAiBatchRun::write_ready(const Options& options) {
  for (auto first = asked_.begin(); first != asked_.end() && first->second.result;
       first = asked_.erase(first), ++next_written_) {
    const auto& [text, error, tokens] = *first->second.result;
    OCTAVO_CHECK_OK(lines_.write(first->second.head, text, tokens, error));
    if (options.on_result) options.on_result();
  }
  return {};
}

}  // namespace octavo::cli
