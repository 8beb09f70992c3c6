#include "engine/engine.h"

#include <fmt/format.h>

#include <chrono>
#include <future>
#include <iterator>
#include <system_error>
#include <utility>

namespace octavo {
namespace {

constexpr std::chrono::seconds kIdleBeat{1};
// For commands before the next step, so that answers do not wait for many that come at once.
constexpr std::chrono::milliseconds kCommandTime{5};

}  // namespace

Result<std::unique_ptr<Engine>> Engine::create(Model& model, const Tokenizer& tokenizer,
                                               EngineCoreOptions options, int max_queue_len) {
  OCTAVO_TRY(std::unique_ptr<EngineCore> core,
             EngineCore::create(model, tokenizer, std::move(options)));
  std::unique_ptr<Engine> engine(new Engine(std::move(core), max_queue_len));
  try {
    engine->thread_ = std::jthread(
        [raw = engine.get()](std::stop_token stop) { raw->run_loop(std::move(stop)); });
  } catch (const std::system_error& error) {
    return fail(ErrorCode::resource_exhausted,
                fmt::format("the engine's thread cannot be started: {}", error.what()));
  }
  return engine;
}

Engine::~Engine() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  thread_.request_stop();
}

Result<RequestId> Engine::submit(Request request, RequestEvents events) {
  OCTAVO_CHECK_OK(core_->prepare(request));
  const double arrival_s = core_->now();
  const std::lock_guard lock(mutex_);
  if (closing_) return fail(ErrorCode::cancelled, "the engine is being closed");
  if (num_unfinished_ >= max_queue_len_)
    return fail(ErrorCode::resource_exhausted,
                fmt::format("{} requests wait or run already, which is max_queue_len; try again "
                            "when some are done",
                            num_unfinished_));
  events.on_finish = [this, told = std::move(events.on_finish)](RequestOutput output) {
    {
      const std::lock_guard place(mutex_);
      --num_unfinished_;
    }
    told(std::move(output));
  };
  const RequestId id{next_id_++};
  // Shared, because commands are std::function, which copies.
  auto handed =
      std::make_shared<std::pair<Request, RequestEvents>>(std::move(request), std::move(events));
  commands_.push_back([id, handed, arrival_s](EngineCore& core) {
    core.add(id, std::move(handed->first), std::move(handed->second), arrival_s);
  });
  ++num_unfinished_;  // nothing fails from here on
  wake_.notify_one();
  return id;
}

int Engine::num_unfinished() const {
  const std::lock_guard lock(mutex_);
  return num_unfinished_;
}

void Engine::cancel(RequestId id) {
  push([id](EngineCore& core) { core.cancel(id); });
}

void Engine::push(Command command) {
  const std::lock_guard lock(mutex_);
  commands_.push_back(std::move(command));
  wake_.notify_one();
}

Result<RequestOutput> Engine::run(Request request, RequestEvents events, std::stop_token cancel) {
  std::promise<RequestOutput> promise;
  auto finished = promise.get_future();
  events.on_finish = [&, told = std::move(events.on_finish)](RequestOutput output) {
    if (told) told(output);
    promise.set_value(std::move(output));
  };
  OCTAVO_TRY(const RequestId id, submit(std::move(request), std::move(events)));
  const std::stop_callback on_cancel(std::move(cancel), [this, id] { this->cancel(id); });
  RequestOutput output = finished.get();
  if (output.error) return tl::make_unexpected(*output.error);
  return output;
}

void Engine::inspect(const std::function<void(EngineCore&)>& look) {
  std::promise<void> looked;
  push([&](EngineCore& core) {
    look(core);
    looked.set_value();
  });
  looked.get_future().wait();
}

void Engine::run_loop(std::stop_token stop) {
  Heartbeat& heartbeat = core_->heartbeat();
  bool busy = false;
  while (take_commands(!busy, stop)) {
    run_commands();
    busy = core_->step(stop) || !taken_.empty();
  }
  while (!taken_.empty()) run_commands();  // nothing comes after `closing_`
  core_->cancel_all();
  heartbeat.beat(EnginePhase::ended);
}

// False: it is time to end; what was asked until then has been taken.
bool Engine::take_commands(bool may_wait, std::stop_token stop) {
  std::unique_lock lock(mutex_);
  while (may_wait && commands_.empty() && !stop.stop_requested()) {
    core_->heartbeat().beat(EnginePhase::idle);
    wake_.wait_for(lock, stop, kIdleBeat, [&] { return !commands_.empty(); });
  }
  std::move(commands_.begin(), commands_.end(), std::back_inserter(taken_));
  commands_.clear();
  return !stop.stop_requested();
}

// In order, one at least, until it is time for a step.
void Engine::run_commands() {
  const auto end = std::chrono::steady_clock::now() + kCommandTime;
  while (!taken_.empty()) {
    core_->heartbeat().beat(EnginePhase::commands);
    taken_.front()(*core_);
    taken_.pop_front();
    if (std::chrono::steady_clock::now() >= end) return;
  }
}

}  // namespace octavo
