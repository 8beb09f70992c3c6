#include "server/admission_gate.h"

#include <algorithm>
#include <cmath>

namespace octavo {
namespace {

constexpr size_t kRememberedEnds = 64;
constexpr size_t kEnoughEnds = 4;  // fewer say nothing about a rate

}  // namespace

std::optional<AdmissionGate::Refusal> AdmissionGate::enter(int num_seqs, int64_t prompt_tokens,
                                                           double now_s) {
  const std::lock_guard lock(mutex_);
  const double wait = wait_s(prompt_tokens, now_s);
  if (num_open_ + num_seqs > options_.max_queue_len && num_open_ > 0)
    return Refusal{"max_queue_len", wait};
  if (options_.max_queue_wait_s > 0 && wait > options_.max_queue_wait_s)
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

void AdmissionGate::leave(int num_seqs, int64_t prompt_tokens, bool started, double now_s) {
  if (!started) start(num_seqs, prompt_tokens);
  const std::lock_guard lock(mutex_);
  num_open_ -= num_seqs;
  if (!started) return;
  for (int i = 0; i < num_seqs; ++i) ends_.push_back(now_s);
  while (ends_.size() > kRememberedEnds) ends_.pop_front();
}

void AdmissionGate::on_step(const StepReport& report) {
  const std::lock_guard lock(mutex_);
  step_model_ = report.scheduler->step_model();
  decoding_ = report.step->work.num_seqs;
  decode_kv_tokens_ = report.step->work.kv_tokens;
}

int AdmissionGate::num_open() const {
  const std::lock_guard lock(mutex_);
  return num_open_;
}

int AdmissionGate::num_waiting() const {
  const std::lock_guard lock(mutex_);
  return num_waiting_;
}

double AdmissionGate::expected_wait_s(int64_t prompt_tokens, double now_s) const {
  const std::lock_guard lock(mutex_);
  return wait_s(prompt_tokens, now_s);
}

double AdmissionGate::wait_s(int64_t prompt_tokens, double now_s) const {
  return place_s(now_s) + prefill_s(waiting_tokens_ + prompt_tokens);
}

// Steps that read so many tokens beside the answers that run.
double AdmissionGate::prefill_s(int64_t tokens) const {
  const int room = std::max(1, options_.max_num_batched_tokens - decoding_);
  const auto steps = static_cast<double>((tokens + room - 1) / room);
  StepWork work{.kv_tokens = decode_kv_tokens_, .num_seqs = decoding_};
  work.add_prefill(0, static_cast<int>(std::min<int64_t>(tokens, room)));
  return steps * step_model_.predict(work);
}

// Until as many have ended as are before it in the queue, at the rate of late.
double AdmissionGate::place_s(double now_s) const {
  const int before = num_open_ - options_.max_num_seqs + 1;
  if (before <= 0 || ends_.size() < kEnoughEnds) return 0;
  const double span = std::max(now_s - ends_.front(), 1e-3);
  return before * span / static_cast<double>(ends_.size());
}

}  // namespace octavo
