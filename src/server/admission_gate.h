// Admission control: whether a request is let in, or told to come back and when: a short refusal
// now is worth more than a late answer.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>

#include "sched/step_model.h"

namespace octavo {

struct GateOptions {
  int max_queue_len = 0;        // sequences that wait or run, at most
  double max_queue_wait_s = 0;  // a request that would wait longer is refused; 0: no limit
  int max_num_seqs = 1;
  int max_num_batched_tokens = 1;
  double max_prefill_ratio = 0;  // of a step's time beside answers; 0: no limit
};

class AdmissionGate {
 public:
  struct Refusal {
    std::string_view reason;  // "max_queue_len" | "max_queue_wait"
    double wait_s = 0;        // until it is worth to try again
  };

  explicit AdmissionGate(GateOptions options)
      : options_(options), num_places_(options.max_num_seqs) {}

  // Of a request with so many sequences and prompt tokens: takes its place, or says why not. Who
  // finds nobody before it is let in, whatever was predicted: what it takes is news.
  std::optional<Refusal> enter(int num_seqs, int64_t prompt_tokens);
  // Work on it has begun: it waits no longer.
  void start(int num_seqs, int64_t prompt_tokens);
  // It has ended, so many seconds after start(), if that was called.
  void leave(int num_seqs, int64_t prompt_tokens, std::optional<double> run_s);

  // On the engine's thread, after each step. num_waiting: sequences it could not begin with.
  void on_step(const StepWork& work, int num_waiting, const StepTimeModel& step_model);

  // Seconds until a request that comes now would be worked on to its first token.
  double expected_wait_s(int64_t prompt_tokens) const;
  int num_open() const;
  int num_waiting() const;
  int max_queue_len() const { return options_.max_queue_len; }

 private:
  double prefill_s(int64_t tokens) const;
  double place_s() const;
  double wait_s() const;

  const GateOptions options_;
  mutable std::mutex mutex_;  // of what follows
  int num_open_ = 0;          // sequences
  int num_waiting_ = 0;
  int64_t waiting_tokens_ = 0;
  int num_places_;            // for sequences that run; fewer than allowed if blocks are short
  std::deque<double> run_s_;  // of the last sequences that ended
  StepTimeModel step_model_;
  int decoding_ = 0;  // sequences of the last step that brought a single token
  int64_t decode_kv_tokens_ = 0;
};

}  // namespace octavo
