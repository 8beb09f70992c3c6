// The door to the step loop: a thread that runs it, a bounded queue in, events out. Requests may
// come from any thread.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include "base/result.h"
#include "engine/engine_core.h"
#include "engine/request.h"

namespace octavo {

class Engine {
 public:
  // Starts the thread. max_queue_len: requests that are not finished, at most. Errors: those of
  // EngineCore::create; resource_exhausted if the system gives no thread.
  static Result<std::unique_ptr<Engine>> create(Model& model, const Tokenizer& tokenizer,
                                                EngineCoreOptions options, int max_queue_len);
  // Ends the step on its way and every request with FinishReason::abort.
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Takes the request's rules first, if nobody has, which is the caller's time and not the
  // engine's. Errors, after which there will be no event: those of EngineCore::check;
  // resource_exhausted if the queue is full; cancelled if the engine is being closed.
  Result<RequestId> submit(Request request, RequestEvents events);

  // Takes effect before the next step. Harmless for a request that has ended, or never was.
  void cancel(RequestId id);

  // Submits and waits. The cancel token ends it early. An error of the request is returned as such.
  Result<RequestOutput> run(Request request, RequestEvents events = {},
                            std::stop_token cancel = {});

  // Those of submit(), without submitting.
  Result<void> check(const Request& request) const { return core_->check(request); }
  // Of all requests with these parameters: see EngineCore::take_rules().
  Result<std::shared_ptr<const AnswerRules>> take_rules(SamplingParams& params) const {
    return core_->take_rules(params);
  }

  // Calls `look` on the engine's thread between two steps, at the latest when the engine is closed.
  void post(std::function<void(EngineCore&)> look) { push(std::move(look)); }
  // The same, and waits for it.
  void inspect(const std::function<void(EngineCore&)>& look);

  int num_unfinished() const;
  const Heartbeat& heartbeat() const { return std::as_const(*core_).heartbeat(); }

 private:
  using Command = std::function<void(EngineCore&)>;

  Engine(std::unique_ptr<EngineCore> core, int max_queue_len)
      : core_(std::move(core)), max_queue_len_(max_queue_len) {}
  void run_loop(std::stop_token stop);
  bool take_commands(bool may_wait, std::stop_token stop);
  void run_commands();
  void push(Command command);

  std::unique_ptr<EngineCore> core_;
  int max_queue_len_;
  mutable std::mutex mutex_;  // of what follows
  std::condition_variable_any wake_;
  std::vector<Command> commands_;
  int64_t next_id_ = 0;
  int num_unfinished_ = 0;
  bool closing_ = false;
  std::deque<Command> taken_;  // of the engine's thread, which has not run them yet
  std::jthread thread_;
};

}  // namespace octavo
