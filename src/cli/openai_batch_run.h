// octavo generate --input with lines in OpenAI's form: each is answered as the server would.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <stop_token>

#include "cli/batch_lines.h"
#include "cli/openai_batch_line.h"
#include "server/local_calls.h"

namespace octavo::cli {

class OpenAiBatchRun {
 public:
  // default_max_tokens: of lines that say nothing of it.
  OpenAiBatchRun(BatchLines& lines, LocalCalls& calls, std::optional<int> default_max_tokens)
      : lines_(lines), calls_(calls), default_max_tokens_(default_max_tokens) {}

  struct Options {
    size_t places = 1;     // lines that are asked at once
    size_t window = 1;     // results that wait for an earlier one, at most
    std::stop_token stop;  // what is done until then is written
    std::function<void()> on_result = {};
  };
  // Until the end of the input, or an error of a file (io_error). That of a line is in its result.
  Result<void> run(const Options& options);

 private:
  struct Asked {
    ResultHead head;
    nlohmann::ordered_json custom_id;
    OpenAiLine line;
    std::optional<OpenAiResult> result;
  };

  Result<void> answer_all(const Options& options);
  bool may_take(const Options& options) const;
  Result<void> take_one(const Options& options);
  void ask(size_t index);
  void wait_for_answers(const std::stop_token& stop);
  void note(size_t index, const http::Response& response, bool stopping);
  Result<void> write_ready(const Options& options);

  BatchLines& lines_;
  LocalCalls& calls_;
  std::optional<int> default_max_tokens_;
  std::map<size_t, Asked> asked_;  // by their order, until they are written
  std::deque<size_t> refused_;     // the server's queue was full: to be asked again
  bool is_full_ = false;           // it still is, as far as is known
  size_t next_index_ = 0, next_written_ = 0;
  size_t num_open_ = 0;          // with the server
  std::optional<size_t> alone_;  // the one that is, and no other was since it was asked
  bool exhausted_ = false;

  std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  std::deque<std::pair<size_t, http::Response>> answers_;
};

}  // namespace octavo::cli
