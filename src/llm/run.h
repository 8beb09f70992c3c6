// Many requests through one engine, for one caller: requests are taken from a source as places
// become free, and what becomes of them is handed over by next(), on the caller's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <semaphore>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/engine.h"

namespace octavo {

// One request, or why there is none: it fails alone.
struct RunItem {
  Result<Request> request;
  std::optional<std::string> prompt = {};  // for RequestOutput::prompt
  int num_choices = 1;                     // entries of its output, whatever happens
  std::vector<std::string> warnings = {};  // for RequestOutput::warnings
};
// The next one; nothing: there are no more. Called by next().
using RunSource = std::function<std::optional<RunItem>()>;

// What a prompt gained, or its end. The events of one choice come in order, and the one with
// `output` is the last of its prompt. Between two calls the gains of a choice are joined.
struct StreamEvent {
  size_t prompt_index = 0;
  int choice = 0;
  std::string text = {};
  std::vector<TokenId> token_ids = {};
  std::vector<TokenLogprobs> logprobs = {};  // one per token, if asked for
  std::optional<RequestOutput> output = {};  // complete; the above is then empty
};

struct RunOptions {
  bool wants_deltas = false;  // else only the ends of prompts
  size_t window = SIZE_MAX;   // a prompt waits until the one so many before it has been handed over
  std::stop_token cancel = {};  // ends what is on its way and takes no more
};

class Run {
 public:
  // Requests that an engine takes at once, shared by all its runs; at most its max_queue_len.
  using Places = std::shared_ptr<std::counting_semaphore<>>;

  Run(Engine& engine, Places places, RunSource source, RunOptions options);
  // Cancels what is on its way and waits for its end.
  ~Run();
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  // Waits for the next event. Nothing: every request that was taken has ended, and there are no
  // more or the run was cancelled. An output has an entry for each choice, whatever happened.
  std::optional<StreamEvent> next();

  // From any thread, also more than once. Of a request that has not been taken: no effect.
  void cancel(size_t prompt_index);
  void cancel_all();

 private:
  struct Shared;

  bool may_take() const;
  bool take_one();
  void submit(size_t index, RunItem item);

  Engine& engine_;
  RunSource source_;
  RunOptions options_;
  std::shared_ptr<Shared> shared_;
  bool exhausted_ = false;
  size_t next_index_ = 0;
  std::set<size_t> open_;  // taken, and their end not yet handed over
  std::optional<std::stop_callback<std::function<void()>>> on_cancel_;
};

}  // namespace octavo
