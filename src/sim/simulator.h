// An engine without a model: the real scheduler, KV pool and prefix tree, driven by requests given
// as data, a clock that only steps move, and a formula for how long a step takes.
//
// What an engine does with the same requests, policy, limits and step times, this does too: the
// same steps, in the same order.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <queue>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "sched/scheduler.h"
#include "sim/step_cost.h"

namespace octavo {

struct SimRequest {
  double arrival_s = 0;
  std::span<const TokenId> prompt = {};  // not owned
  int output_tokens = 1;                 // of each choice; 0: only the prompt is computed
  int priority = 0;
  std::string salt = {};
  int n = 1;  // choices

  // What befalls it.
  std::optional<double> cancel_s = {};          // given up at this time
  std::optional<int> cancel_after_tokens = {};  // given up when it has so many, of all choices
  std::optional<int> fails_at_token = {};       // ends with an error in place of this one
};

enum class SimEnd : uint8_t { length, cancelled, failed, refused };

struct SimRecord {
  double arrival_s = 0;
  std::optional<double> scheduled_s = {};
  std::vector<double> token_s = {};  // of all choices
  double end_s = 0;
  int cached_tokens = 0;
  int preemptions = 0;
  std::optional<SimEnd> end = {};  // nothing: it is on its way
};

// What a sequence is: a choice of a request.
struct SimPlace {
  size_t request = 0;  // its index
  int choice = 0;
};

// One step, after it.
struct SimStep {
  double start_s = 0;
  double step_s = 0;
  bool abandoned = false;
  std::span<const SimPlace> admitted = {};
  const Step* step = nullptr;
  const Scheduler* scheduler = nullptr;
};

struct SimOptions {
  SchedulerOptions scheduler;  // with a max_model_len
  int num_blocks = 0;
  int block_size = 32;
  StepCostFormula cost;
  double noise = 0;            // share by which a step may be longer or shorter; below 1
  double abandoned_share = 0;  // of the steps that come to nothing; below 1
  uint64_t seed = 0;           // of both
  int max_concurrency = 0;     // requests handed over at once, at most; 0: as they arrive
  std::function<void(const SimStep&)> on_step = {};  // may be empty
};

class Simulator {
 public:
  // `requests` are by arrival and outlive the simulator. Errors: those of Scheduler::create;
  // invalid_argument for a request without a prompt or with numbers that cannot hold.
  static Result<std::unique_ptr<Simulator>> create(SimOptions options,
                                                   std::span<const SimRequest> requests);

  enum class Outcome : uint8_t {
    worked,
    abandoned,
    ended,    // nobody is left and nobody comes
    stalled,  // there is work and nobody could do any: a bug of the scheduler
  };
  Outcome step();
  // All steps that are left. False: stalled.
  bool run();

  double now_s() const { return now_; }
  Scheduler& scheduler() { return *scheduler_; }
  const Scheduler& scheduler() const { return *scheduler_; }
  std::span<const SimRecord> records() const { return records_; }
  int num_live() const { return num_live_; }  // requests
  // Every sequence that has not ended.
  const std::unordered_map<SeqId, SimPlace>& sequences() const { return places_; }

 private:
  struct State {
    std::vector<SeqId> ids;  // of the choices
    std::vector<int> given;  // tokens of each
    int num_unfinished = 0;
    bool started = false, ended = false;
  };
  using Cancel = std::pair<double, size_t>;

  Simulator(SimOptions options, std::span<const SimRequest> requests,
            std::unique_ptr<Scheduler> scheduler);
  bool may_hand_over() const;
  void hand_over();
  void start(size_t index);
  void cancel_due();
  void note_plan(const Step& step);
  void list_draws(const Step& step);
  void draw_all();
  void draw(size_t job);
  void end(size_t index, SimEnd how);
  void finish_ended();
  double duration(const StepWork& work) const;

  SimOptions options_;
  std::span<const SimRequest> requests_;
  std::unique_ptr<Scheduler> scheduler_;
  std::vector<SimRecord> records_;
  std::vector<State> states_;
  std::unordered_map<SeqId, SimPlace> places_;
  std::priority_queue<Cancel, std::vector<Cancel>, std::greater<>> cancels_;
  double now_ = 0;
  size_t next_ = 0;  // to be handed over
  int num_live_ = 0;
  uint64_t num_steps_ = 0;
  // Of the current step; kept for their memory.
  std::vector<SimPlace> admitted_;
  std::vector<size_t> ended_, only_prompt_;
  std::vector<SimPlace> jobs_;
  std::vector<TokenId> drawn_;  // of each job
  std::vector<StepOutcome> outcomes_;
};

}  // namespace octavo
