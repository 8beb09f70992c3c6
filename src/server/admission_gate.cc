#include "server/admission_gate.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sched/plan.h"

namespace octavo {
namespace {

constexpr size_t kRememberedEnds = 64;

}  // namespace

std::optional<AdmissionGate::Refusal> AdmissionGate::enter(int num_seqs, int64_t prompt_tokens) {
  const std::lock_guard lock(mutex_);
  const double wait = wait_s();
  if (num_open_ + num_seqs > options_.max_queue_len && num_open_ > 0)
    return Refusal{"max_queue_len", wait};
  if (options_.max_queue_wait_s > 0 && wait > options_.max_queue_wait_s && num_open_ > 0)
    return Refusal{"max_queue_wait", wait - options_.max_queue_wait_s};
  num_open_ += num_seqs;
  num_waiting_ += num_seqs;
  waiting_tokens_ += prompt_tokens;
  return std::nullopt;
}

void AdmissionGate::start(int num_seqs, int64_t prompt_tokens) {
  const std::lock_guard lock(mutex_);
  num_waiting_ -= num_seqs;
  waiting_tokens_ -= prompt_tokens;
}

void AdmissionGate::leave(int num_seqs, int64_t prompt_tokens, std::optional<double> run_s) {
  if (!run_s) start(num_seqs, prompt_tokens);
  const std::lock_guard lock(mutex_);
  num_open_ -= num_seqs;
  if (!run_s) return;
  for (int i = 0; i < num_seqs; ++i) run_s_.push_back(*run_s);
  while (run_s_.size() > kRememberedEnds) run_s_.pop_front();
}

void AdmissionGate::on_step(const StepWork& work, int num_waiting,
                            const StepTimeModel& step_model) {
  const std::lock_guard lock(mutex_);
  step_model_ = step_model;
  decoding_ = work.num_seqs;
  decode_kv_tokens_ = work.kv_tokens;
  // A step that read no prompt although some waited had no room for more sequences.
  if (work.prefill_tokens == 0)
    num_places_ = num_waiting > 0 ? std::max(1, work.num_seqs) : options_.max_num_seqs;
}

int AdmissionGate::num_open() const {
  const std::lock_guard lock(mutex_);
  return num_open_;
}

int AdmissionGate::num_waiting() const {
  const std::lock_guard lock(mutex_);
  return num_waiting_;
}

double AdmissionGate::expected_wait_s(int64_t prompt_tokens) const {
  const std::lock_guard lock(mutex_);
  return wait_s() + prefill_s(prompt_tokens);
}

// Until work on it begins: the prompts before it are read while it waits for its place. How long
// its own takes is no wait.
double AdmissionGate::wait_s() const { return std::max(place_s(), prefill_s(waiting_tokens_)); }

// Steps that read so many tokens beside the answers that run.
double AdmissionGate::prefill_s(int64_t tokens) const {
  if (tokens == 0) return 0;
  const int room = std::max(1, options_.max_num_batched_tokens - decoding_);
  auto steps = static_cast<double>((tokens + room - 1) / room);
  StepWork work{.kv_tokens = decode_kv_tokens_, .num_seqs = decoding_};
  const double decode_s = decoding_ > 0 ? step_model_.predict(work) : 0;
  work.add_prefill(0, static_cast<int>(std::min<int64_t>(tokens, room)));
  const double prompts_s = steps * (step_model_.predict(work) - decode_s);
  const double ratio =
      prefill_ratio(options_.max_prefill_ratio, num_waiting_ + 1.0, std::max(decoding_, 1));
  const double most_s = ratio * decode_s;
  if (most_s > 0) steps = std::max(steps, std::ceil(prompts_s / most_s));
  return prompts_s + steps * decode_s;
}

// Until as many have ended as are before it in the queue. Each place is free again after as long as
// sequences have run of late; how often they end says less, since that is seldom on a quiet day.
double AdmissionGate::place_s() const {
  const int before = num_open_ - num_places_ + 1;
  if (before <= 0 || run_s_.empty()) return 0;
  const double run_s = std::accumulate(run_s_.begin(), run_s_.end(), 0.0);
  return before * run_s / static_cast<double>(std::ssize(run_s_) * num_places_);
}

}  // namespace octavo
