#include "sim/simulator.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/rng.h"

namespace octavo {
namespace {

enum Randomness : uint32_t { kNoise, kAbandoned };

Result<void> check(const SimRequest& request, size_t index) {
  if (request.prompt.empty() || request.output_tokens < 0 || request.n < 1)
    return fail(ErrorCode::invalid_argument,
                fmt::format("request {} needs a prompt, no less than 0 tokens of output and a "
                            "choice",
                            index));
  return {};
}

// Of an answer: no two places have the same, and no prompt has it.
TokenId made_up_token(size_t request, int choice, size_t position) {
  const uint64_t mixed = (request * 1024 + static_cast<size_t>(choice)) * 0x9e3779b97f4a7c15 +
                         position * 0xbf58476d1ce4e5b9;
  return TokenId{-1 - static_cast<int32_t>(mixed >> 33)};
}

}  // namespace

Result<std::unique_ptr<Simulator>> Simulator::create(SimOptions options,
                                                     std::span<const SimRequest> requests) {
  for (size_t i = 0; i < requests.size(); ++i) OCTAVO_CHECK_OK(check(requests[i], i));
  OCTAVO_TRY(std::unique_ptr<Scheduler> scheduler,
             Scheduler::create(options.scheduler, options.num_blocks, options.block_size));
  return std::unique_ptr<Simulator>(
      new Simulator(std::move(options), requests, std::move(scheduler)));
}

Simulator::Simulator(SimOptions options, std::span<const SimRequest> requests,
                     std::unique_ptr<Scheduler> scheduler)
    : options_(std::move(options)),
      requests_(requests),
      scheduler_(std::move(scheduler)),
      records_(requests.size()),
      states_(requests.size()) {}

bool Simulator::run() {
  for (;;) {
    const Outcome outcome = step();
    if (outcome == Outcome::ended) return true;
    if (outcome == Outcome::stalled) return false;
  }
}

// --- coming and going -----------------------------------------------------------------------

bool Simulator::may_hand_over() const {
  return next_ < requests_.size() &&
         (options_.max_concurrency == 0 || num_live_ < options_.max_concurrency);
}

void Simulator::hand_over() {
  while (may_hand_over() && requests_[next_].arrival_s <= now_) start(next_++);
}

// A request that had to wait for its turn arrives when it is handed over.
void Simulator::start(size_t index) {
  const SimRequest& request = requests_[index];
  SimRecord& record = records_[index];
  record.arrival_s = options_.max_concurrency > 0 ? now_ : request.arrival_s;
  ++num_live_;
  const int64_t length =
      static_cast<int64_t>(request.prompt.size()) + std::max(request.output_tokens, 0);
  if (length > options_.scheduler.max_model_len) {
    end(index, SimEnd::refused);
    return finish_ended();
  }
  const auto id = scheduler_->add({.tokens = {request.prompt.begin(), request.prompt.end()},
                                   .max_new_tokens = request.output_tokens,
                                   .key = {.salt = request.salt, .adapter = {}},
                                   .arrival_s = record.arrival_s,
                                   .priority = request.priority});
  if (!id) {
    end(index, SimEnd::refused);
    return finish_ended();
  }
  State& state = states_[index];
  state.ids.push_back(*id);
  state.given.assign(static_cast<size_t>(request.n), 0);
  state.num_unfinished = request.n;
  places_.emplace(*id, SimPlace{index, 0});
  if (request.cancel_s) cancels_.emplace(*request.cancel_s, index);
}

void Simulator::cancel_due() {
  while (!cancels_.empty() && cancels_.top().first <= now_) {
    const size_t index = cancels_.top().second;
    cancels_.pop();
    end(index, SimEnd::cancelled);
    finish_ended();
  }
}

void Simulator::end(size_t index, SimEnd how) {
  if (std::exchange(states_[index].ended, true)) return;
  records_[index].end = how;
  ended_.push_back(index);
}

// In the order in which an engine does it: the prefix tree remembers who came last.
void Simulator::finish_ended() {
  while (!ended_.empty()) {
    const size_t index = ended_.back();
    ended_.pop_back();
    State& state = states_[index];
    for (const SeqId id : state.ids) {
      scheduler_->remove(id);
      places_.erase(id);
    }
    records_[index].end_s = now_;
    state.ids = {};
    state.given = {};
    --num_live_;
  }
}

// --- one step -------------------------------------------------------------------------------

Simulator::Outcome Simulator::step() {
  hand_over();
  cancel_due();
  while (!scheduler_->has_work() && next_ < requests_.size()) {
    now_ = std::max(now_, requests_[next_].arrival_s);
    hand_over();
    cancel_due();
  }
  if (!scheduler_->has_work()) return Outcome::ended;

  SimStep report{.start_s = now_};
  const Step& step = scheduler_->begin_step(now_);
  note_plan(step);
  if (step.empty()) return Outcome::stalled;
  ++num_steps_;
  const double seconds = duration(step.work);
  if (uniform(options_.seed, kAbandoned, num_steps_) < options_.abandoned_share) {
    now_ += seconds / 2;
    scheduler_->abandon_step();
    report.abandoned = true;
  } else {
    now_ += seconds;
    list_draws(step);
    draw_all();
    scheduler_->commit(outcomes_, now_ - report.start_s);
    finish_ended();
  }
  if (options_.on_step) {
    report.step_s = now_ - report.start_s;
    report.admitted = admitted_;
    report.step = &step;
    report.scheduler = scheduler_.get();
    options_.on_step(report);
  }
  return report.abandoned ? Outcome::abandoned : Outcome::worked;
}

double Simulator::duration(const StepWork& work) const {
  const double spread = 2 * uniform(options_.seed, kNoise, num_steps_) - 1;
  return options_.cost.seconds(work) * (1 + options_.noise * spread);
}

void Simulator::note_plan(const Step& step) {
  admitted_.clear();
  for (const SeqId id : step.admitted) {
    admitted_.push_back(places_.at(id));
    SimRecord& record = records_[admitted_.back().request];
    if (record.scheduled_s) continue;
    record.scheduled_s = now_;
    record.cached_tokens = scheduler_->num_cached_tokens(id);
  }
  for (const SeqId id : step.preempted) ++records_[places_.at(id).request].preemptions;
}

// The choices of a request draw their first tokens together.
void Simulator::list_draws(const Step& step) {
  jobs_.clear();
  only_prompt_.clear();
  for (const StepChunk& chunk : step.chunks) {
    if (chunk.padding || !chunk.completes) continue;
    const SimPlace place = places_.at(chunk.id);
    const SimRequest& request = requests_[place.request];
    if (request.output_tokens == 0) {
      only_prompt_.push_back(place.request);
      continue;
    }
    const int last = states_[place.request].started ? place.choice + 1 : request.n;
    for (int choice = place.choice; choice < last; ++choice)
      jobs_.push_back({place.request, choice});
  }
}

void Simulator::draw_all() {
  outcomes_.clear();
  drawn_.resize(jobs_.size());
  for (size_t i = 0; i < jobs_.size(); ++i)
    if (!states_[jobs_[i].request].ended) draw(i);
  for (const size_t request : only_prompt_) end(request, SimEnd::length);
}

void Simulator::draw(size_t job) {
  const auto [index, choice_number] = jobs_[job];
  const SimRequest& request = requests_[index];
  SimRecord& record = records_[index];
  State& state = states_[index];
  const auto num_given = static_cast<int>(record.token_s.size());
  if (request.fails_at_token == num_given) return end(index, SimEnd::failed);
  const auto choice = static_cast<size_t>(choice_number);
  if (choice >= state.ids.size()) {
    state.ids.push_back(scheduler_->fork(state.ids[0]));
    places_.emplace(state.ids[choice], SimPlace{index, choice_number});
  }
  state.started = true;
  drawn_[job] = made_up_token(index, choice_number, static_cast<size_t>(state.given[choice]));
  record.token_s.push_back(now_);
  const bool finished = ++state.given[choice] == request.output_tokens;
  outcomes_.push_back({state.ids[choice], {&drawn_[job], 1}, finished});
  if (num_given + 1 == request.cancel_after_tokens) cancels_.emplace(now_, index);
  if (!finished) return;
  places_.erase(state.ids[choice]);
  if (--state.num_unfinished == 0) end(index, SimEnd::length);
}

}  // namespace octavo
