#include "sched/plan.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "kv/block_size.h"

namespace octavo {
namespace {

// More prompts than 1 / kManyPrompts of the answers that run get more of a step.
constexpr double kManyPrompts = 4;
// The least prefill of a step that has a time limit.
constexpr int kLeastPrefill = 8;
// Of max_step_s, because a prediction is no promise: less what it was wrong by of late.
double usable_share(const StepTimeModel& model) {
  return std::clamp(1 - model.relative_error(), 0.8, 0.95);
}

bool is_overdue(const WaitingView& w, const StepBudget& budget, double now_s) {
  return budget.max_waiting_s > 0 && now_s - w.arrival_s > budget.max_waiting_s;
}

// Smaller goes first.
auto waiting_order(const WaitingView& w, const StepBudget& budget, double now_s) {
  const bool overdue = is_overdue(w, budget, now_s);
  double rank = 0;
  if (budget.policy == SchedulingPolicy::priority)
    rank = w.priority;
  else if (w.was_preempted)
    rank = std::numeric_limits<double>::lowest();
  else if (budget.policy == SchedulingPolicy::shortest_prefill_first)
    rank = w.num_tokens - w.num_cached + budget.ageing_tokens_per_s * w.arrival_s;
  else if (budget.policy == SchedulingPolicy::longest_prefix_match)
    rank = -w.num_cached;
  return std::tuple(!overdue, overdue ? 0.0 : rank, w.arrival_s, raw(w.id));
}

class Planner {
 public:
  Planner(const SchedulerView& view, const StepBudget& budget, double now_s, StepPlan& plan)
      : view_(view), budget_(budget), now_s_(now_s), plan_(plan) {}

  void run() {
    count();
    for (size_t i = 0; i < end_; ++i) schedule(view_.running[i], i);
    add_drafts();
    if (may_admit()) admit();
    plan_.out_of_tokens = prefill_left_ <= 0;
  }

 private:
  void count() {
    end_ = view_.running.size();
    available_ = int64_t{view_.kv.num_free} + view_.kv.num_cached;
    decodes_ = static_cast<int>(std::count_if(view_.running.begin(), view_.running.end(),
                                              [](const RunningView& r) { return r.is_decode(); }));
    prefill_left_ = budget_.max_num_batched_tokens - decodes_;
    // Decodes are in the step whatever prefill is added.
    for (const RunningView& r : view_.running)
      if (r.is_decode()) plan_.work.add_decode(r.num_computed);
    limit_s_ = step_limit();
  }

  // Seconds that a step with prefill may take; infinite: no limit.
  double step_limit() const {
    double limit = std::numeric_limits<double>::infinity();
    if (decodes_ == 0 || budget_.whole_prompts) return limit;
    if (budget_.max_step_s > 0) limit = usable_share(budget_.step_model) * budget_.max_step_s;
    const StepTimeModel& model = budget_.step_model;
    if (budget_.max_prefill_ratio <= 0 || model.num_observed() == 0) return limit;
    const auto prompts =
        static_cast<double>(std::ssize(view_.running) - decodes_ + view_.num_waiting);
    const double ratio = prefill_ratio(budget_.max_prefill_ratio, prompts, decodes_);
    return std::min(limit, (1 + ratio) * model.predict(plan_.work));
  }

  int64_t blocks(int64_t tokens) const { return blocks_for(tokens, view_.kv.block_size); }

  int64_t blocks_needed(const RunningView& r, int num_tokens) const {
    if (!budget_.reserves_blocks) return 0;
    return std::max<int64_t>(blocks(int64_t{r.num_computed} + num_tokens) - r.num_blocks, 0) +
           (r.copies ? 1 : 0);
  }

  void schedule(const RunningView& r, size_t i) {
    int tokens = r.is_decode() ? 1 : chunk_of(r.num_computed, r.num_tokens);
    while (blocks_needed(r, tokens) > available_ && end_ > i + 1) preempt(view_.running[--end_]);
    tokens = tokens_within(r, tokens);
    if (budget_.whole_prompts && r.num_computed + tokens < r.num_tokens) tokens = 0;
    set_aside(r, tokens);
    if (tokens == 0) return drop_decode(r);
    available_ -= blocks_needed(r, tokens);
    plan_.running.push_back({r.id, tokens});
    if (!r.is_decode()) take_prefill(r.num_computed, tokens, r.block_hashes);
  }

  // Last, with what the others have left. plan_.running has the order of the view, with gaps.
  void add_drafts() {
    auto chunk = plan_.running.begin();
    for (size_t i = 0; i < end_ && chunk != plan_.running.end(); ++i) {
      const RunningView& r = view_.running[i];
      if (r.id != chunk->id) continue;
      if (r.num_drafts > 0) add_drafts(r, *chunk);
      ++chunk;
    }
  }

  void add_drafts(const RunningView& r, PlannedChunk& chunk) {
    const int64_t has = blocks_needed(r, 1);
    available_ += has;
    chunk.num_drafts = tokens_within(r, 1 + std::min(r.num_drafts, std::max(prefill_left_, 0))) - 1;
    available_ -= blocks_needed(r, 1 + chunk.num_drafts);
    prefill_left_ -= chunk.num_drafts;
    plan_.work.draft_tokens += chunk.num_drafts;
  }

  void preempt(const RunningView& r) {
    plan_.preempted.push_back(r.id);
    available_ += r.releases;
    drop_decode(r);
  }

  void drop_decode(const RunningView& r) {
    if (!r.is_decode()) return;
    --decodes_;
    --plan_.work.num_seqs;
    plan_.work.kv_tokens -= r.num_computed + 1;
  }

  // As many of the tokens as there are blocks for.
  int tokens_within(const RunningView& r, int tokens) const {
    if (blocks_needed(r, tokens) <= available_) return tokens;
    const int64_t fresh = available_ - (r.copies ? 1 : 0);
    if (fresh < 0) return 0;
    const int64_t reach = (r.num_blocks + fresh) * view_.kv.block_size;
    return static_cast<int>(std::clamp<int64_t>(reach - r.num_computed, 0, tokens));
  }

  // How many of a prompt's tokens to compute now; 0: none.
  int chunk_of(int num_computed, int num_tokens) const {
    int most = std::min(num_tokens - num_computed, prefill_left_);
    if (budget_.whole_prompts) return most < num_tokens - num_computed ? 0 : most;
    if (budget_.long_prefill_token_threshold > 0)
      most = std::min(most, budget_.long_prefill_token_threshold);
    if (most <= 0 || std::isinf(limit_s_)) return std::max(most, 0);
    return within_time(num_computed, most);
  }

  // The most that is predicted to keep the step within its time; the first prompt of a step gets
  // a little in any case, so that it moves on.
  int within_time(int num_computed, int most) const {
    const int least = plan_.work.prefill_tokens == 0 ? std::min(kLeastPrefill, most) : 0;
    if (budget_.step_model.num_observed() == 0) return least;
    int low = least, high = most;
    while (low < high) {
      const int middle = (low + high + 1) / 2;
      if (fits_time(num_computed, middle))
        low = middle;
      else
        high = middle - 1;
    }
    return low;
  }

  bool fits_time(int num_computed, int tokens) const {
    StepWork work = plan_.work;
    work.add_prefill(num_computed, tokens);
    return budget_.step_model.predict(work) <= limit_s_;
  }

  void take_prefill(int num_computed, int tokens, std::span<const uint64_t> hashes) {
    prefill_left_ -= tokens;
    plan_.work.add_prefill(num_computed, tokens);
    const int size = view_.kv.block_size;
    for (int b = num_computed / size; b < (num_computed + tokens) / size; ++b)
      if (static_cast<size_t>(b) < hashes.size())
        computing_.push_back(hashes[static_cast<size_t>(b)]);
  }

  bool may_admit() const { return plan_.preempted.empty() && budget_.admits; }

  void admit() {
    order_.assign(view_.waiting.begin(), view_.waiting.end());
    std::sort(order_.begin(), order_.end(), [&](const WaitingView& a, const WaitingView& b) {
      return waiting_order(a, budget_, now_s_) < waiting_order(b, budget_, now_s_);
    });
    for (const WaitingView& w : order_) {
      if (!has_room()) return;
      if (!is_overdue(w, budget_, now_s_) && is_being_computed(w)) continue;
      if (!try_admit(w)) return;
    }
    plan_.wants_more = has_room();
  }

  bool has_room() const {
    return prefill_left_ > 0 && std::ssize(view_.running) + std::ssize(plan_.admitted) <
                                    std::ptrdiff_t{budget_.max_num_seqs};
  }

  // For the rest of a prompt that has begun, and for growth; not for the chunk itself.
  void set_aside(const RunningView& r, int tokens) {
    if (!budget_.reserves_blocks) return;
    const int64_t held = std::max<int64_t>(r.num_blocks, blocks(int64_t{r.num_computed} + tokens));
    set_aside_ += std::max<int64_t>(blocks(r.num_tokens) - held, 0) + 1;
  }

  bool is_being_computed(const WaitingView& w) const {
    const auto next = static_cast<size_t>(w.num_cached / view_.kv.block_size);
    return next < w.block_hashes.size() && std::find(computing_.begin(), computing_.end(),
                                                     w.block_hashes[next]) != computing_.end();
  }

  bool try_admit(const WaitingView& w) {
    const int64_t fresh = blocks(w.num_tokens) - w.num_cached / view_.kv.block_size;
    if (budget_.reserves_blocks && fresh + w.cached_only + set_aside_ > available_) return false;
    const int tokens = chunk_of(w.num_cached, w.num_tokens);
    if (tokens == 0) return false;
    if (budget_.reserves_blocks) available_ -= fresh + w.cached_only;
    plan_.admitted.push_back({w.id, tokens});
    if (w.num_tokens - w.num_cached == 1)
      plan_.work.add_decode(w.num_cached), --prefill_left_;
    else
      take_prefill(w.num_cached, tokens, w.block_hashes);
    return true;
  }

  const SchedulerView& view_;
  const StepBudget& budget_;
  double now_s_;
  StepPlan& plan_;
  size_t end_ = 0;         // running sequences from here on are preempted
  int64_t available_ = 0;  // blocks
  int64_t set_aside_ = 0;  // of these not for new sequences
  int decodes_ = 0;
  int prefill_left_ = 0;
  double limit_s_ = 0;
  std::vector<uint64_t> computing_;  // hashes of blocks that this step fills
  std::vector<WaitingView> order_;
};

}  // namespace

double prefill_ratio(double most, double num_prompts, int num_answers) {
  return most * std::max(kManyPrompts * num_prompts / num_answers, 1.0);
}

std::string_view name(SchedulingPolicy policy) {
  switch (policy) {
    case SchedulingPolicy::fcfs:
      return "fcfs";
    case SchedulingPolicy::priority:
      return "priority";
    case SchedulingPolicy::shortest_prefill_first:
      return "shortest-prefill-first";
    case SchedulingPolicy::longest_prefix_match:
      return "longest-prefix-match";
  }
  return "";
}

std::string_view name(SchedulingMode mode) {
  return mode == SchedulingMode::continuous ? "continuous" : "static";
}

void StepPlan::clear() {
  preempted.clear();
  running.clear();
  admitted.clear();
  work = {};
  wants_more = out_of_tokens = false;
}

StepPlan plan(const SchedulerView& view, const StepBudget& budget, double now_s, StepPlan reuse) {
  reuse.clear();
  Planner(view, budget, now_s, reuse).run();
  return reuse;
}

}  // namespace octavo
