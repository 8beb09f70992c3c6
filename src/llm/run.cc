#include "llm/run.h"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <utility>

#include "llm/requests.h"

namespace octavo {
// What the engine's thread and the caller share. Held by both, because the engine may still be in
// a callback when the caller has seen its effect.
struct Run::Shared {
  struct OnItsWay {
    std::optional<RequestId> id;  // nothing: it is being submitted
    bool cancelled = false;
  };

  Places places;
  std::mutex mutex;  // of what follows
  std::condition_variable changed;
  std::deque<StreamEvent> events;
  // Events of `events` to which more can be joined.
  std::map<std::pair<size_t, int>, StreamEvent*> joinable;
  std::map<size_t, OnItsWay> on_their_way;
  bool stopped = false;

  void add_delta(size_t index, const ChoiceDelta& delta) {
    const std::lock_guard lock(mutex);
    StreamEvent*& event = joinable[{index, delta.index}];
    if (!event) event = &events.emplace_back(StreamEvent{index, delta.index});
    event->text += delta.text;
    event->token_ids.insert(event->token_ids.end(), delta.token_ids.begin(), delta.token_ids.end());
    event->logprobs.insert(event->logprobs.end(), delta.logprobs.begin(), delta.logprobs.end());
    changed.notify_one();
  }

  void add_end(size_t index, RequestOutput output) {
    places->release();
    const std::lock_guard lock(mutex);
    on_their_way.erase(index);
    events.push_back({.prompt_index = index, .output = std::move(output)});
    changed.notify_one();
  }

  std::optional<StreamEvent> take() {  // with the mutex held
    if (events.empty()) return std::nullopt;
    StreamEvent event = std::move(events.front());
    joinable.erase({event.prompt_index, event.choice});
    events.pop_front();
    return event;
  }
};

Run::Run(Engine& engine, Places places, RunSource source, RunOptions options)
    : engine_(engine),
      source_(std::move(source)),
      options_(std::move(options)),
      shared_(std::make_shared<Shared>()) {
  shared_->places = std::move(places);
  on_cancel_.emplace(options_.cancel, std::function<void()>([this] { cancel_all(); }));
}

Run::~Run() {
  on_cancel_.reset();
  cancel_all();
  std::unique_lock lock(shared_->mutex);
  shared_->changed.wait(lock, [&] { return shared_->on_their_way.empty(); });
}

std::optional<StreamEvent> Run::next() {
  for (;;) {
    const bool took = may_take() && take_one();
    std::unique_lock lock(shared_->mutex);
    const bool may_wait = !took && !shared_->on_their_way.empty();
    if (may_wait) shared_->changed.wait(lock, [&] { return !shared_->events.empty(); });
    if (auto event = shared_->take()) {
      if (event->output) open_.erase(event->prompt_index);
      return event;
    }
    if (!took && !may_wait && (exhausted_ || shared_->stopped)) return std::nullopt;
  }
}

bool Run::may_take() const {
  {
    const std::lock_guard lock(shared_->mutex);
    if (shared_->stopped) return false;
  }
  return !exhausted_ && (open_.empty() || next_index_ - *open_.begin() < options_.window);
}

// False: no place is free, or there are no more.
bool Run::take_one() {
  using namespace std::chrono_literals;
  // With nothing of our own on its way, only another run's end can bring a place.
  if (!(open_.empty() ? shared_->places->try_acquire_for(20ms) : shared_->places->try_acquire()))
    return false;
  std::optional<RunItem> item = source_();
  if (!item) {
    shared_->places->release();
    exhausted_ = true;
    return false;
  }
  open_.insert(next_index_);
  submit(next_index_++, std::move(*item));
  return true;
}

void Run::submit(size_t index, RunItem item) {
  const auto end = [shared = shared_, index, num_choices = item.num_choices,
                    prompt = std::move(item.prompt),
                    warnings = std::move(item.warnings)](RequestOutput output) {
    output.prompt = prompt;
    output.warnings = warnings;
    output.finished = true;
    fill_outputs(output, num_choices);
    shared->add_end(index, std::move(output));
  };
  const auto refuse = [&](const Error& error, std::vector<TokenId> ids) {
    RequestOutput output;
    output.prompt_token_ids = std::move(ids);
    output.error = error;
    end(std::move(output));
  };
  if (!item.request) return refuse(item.request.error(), {});
  RequestEvents events;
  if (options_.wants_deltas)
    events.on_delta = [shared = shared_, index](const ChoiceDelta& delta) {
      shared->add_delta(index, delta);
    };
  events.on_finish = end;
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->on_their_way[index].cancelled = shared_->stopped;
  }
  std::vector<TokenId> ids = item.request->prompt_token_ids;
  const auto id = engine_.submit(std::move(*item.request), std::move(events));
  if (!id) return refuse(id.error(), std::move(ids));
  bool cancelled = false;
  {
    const std::lock_guard lock(shared_->mutex);
    const auto found = shared_->on_their_way.find(index);
    if (found == shared_->on_their_way.end()) return;  // it has ended already
    found->second.id = *id;
    cancelled = found->second.cancelled;
  }
  if (cancelled) engine_.cancel(*id);
}

void Run::cancel(size_t prompt_index) {
  const std::lock_guard lock(shared_->mutex);
  const auto found = shared_->on_their_way.find(prompt_index);
  if (found == shared_->on_their_way.end()) return;
  found->second.cancelled = true;
  if (found->second.id) engine_.cancel(*found->second.id);
}

void Run::cancel_all() {
  const std::lock_guard lock(shared_->mutex);
  shared_->stopped = true;
  for (auto& [index, entry] : shared_->on_their_way) {
    entry.cancelled = true;
    if (entry.id) engine_.cancel(*entry.id);
  }
}

}  // namespace octavo
