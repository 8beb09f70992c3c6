// What a plan looks at: the scheduler's state as plain numbers.
#include <algorithm>
#include <utility>

#include "kv/block_size.h"
#include "sched/scheduler.h"

namespace octavo {
namespace {

// Candidates that a plan looks at first; more only if it has room for more. The longest match is
// looked for among more of them.
constexpr size_t kCandidates = 4;
constexpr size_t kMatchCandidates = 64;

}  // namespace

void Scheduler::make_plan(double now_s) {
  view_running();
  const StepBudget step_budget = budget();
  size_t count =
      options_.policy == SchedulingPolicy::longest_prefix_match ? kMatchCandidates : kCandidates;
  // Of very many that all wait for one block it is enough to have asked some.
  const size_t most = kMatchCandidates + 2 * static_cast<size_t>(options_.max_num_seqs);
  for (;; count *= 4) {
    view_waiting(count, now_s);
    num_candidates_ += std::ssize(waiting_view_);
    const SchedulerView view{running_view_,
                             waiting_view_,
                             {pool_->block_size(), pool_->num_free(), pool_->num_cached()},
                             num_waiting()};
    plan_ = plan(view, step_budget, now_s, std::move(plan_));
    if (!plan_.wants_more || waiting_view_.size() >= by_rank_.size() || count >= most) return;
  }
}

StepBudget Scheduler::budget() const {
  return {.max_num_seqs = options_.max_num_seqs,
          .max_num_batched_tokens = options_.max_num_batched_tokens,
          .long_prefill_token_threshold = options_.long_prefill_token_threshold,
          .policy = options_.policy,
          .whole_prompts = options_.whole_prompts,
          .admits = fills_batch_,
          .reserves_blocks = options_.kv_layout == KvCacheLayout::paged,
          .max_waiting_s = options_.max_waiting_s,
          .ageing_tokens_per_s = options_.ageing_tokens_per_s,
          .max_step_s = options_.max_inter_token_s,
          .max_prefill_ratio = options_.max_prefill_ratio,
          .step_model = step_model_};
}

void Scheduler::view_running() {
  running_view_.clear();
  for (const Sequence* s : running_)
    running_view_.push_back({.id = s->id,
                             .num_tokens = static_cast<int>(s->tokens.size()),
                             .num_computed = s->num_computed,
                             .num_blocks = s->table.num_blocks(),
                             .num_drafts = static_cast<int>(s->drafts.size()),
                             .copies = writes_shared_block(*s),
                             .releases = 0,
                             .block_hashes = s->block_hashes});
  if (!is_tight()) return;
  // Counting them looks at every block, and only who preempts asks.
  for (size_t i = 0; i < running_.size(); ++i)
    running_view_[i].releases = running_[i]->table.num_unshared();
}

// Whether writing on takes a further block. A block shared with the prefix tree alone can be taken
// out of the tree instead, when there is no further block.
bool Scheduler::writes_shared_block(const Sequence& s) const {
  const int filled = s.table.num_tokens();
  return filled % pool_->block_size() != 0 && s.table.blocks_to_reserve(filled + 1) > 0 &&
         !tree_can_forget(s);
}

bool Scheduler::tree_can_forget(const Sequence& s) const {
  if (s.table.num_tokens() % pool_->block_size() == 0) return false;
  const int last = s.table.num_blocks() - 1;
  return tree_.contains(s.table.block_ids().back()) && s.table.is_last_user(last);
}

// A prefix that ends inside a block is copied, for which both blocks are held at once. A sequence
// that may need all there are does without.
bool Scheduler::only_whole_blocks(const Sequence& s) const {
  return blocks_for(std::ssize(s.tokens), pool_->block_size()) + 1 >
         int64_t{pool_->num_blocks()} - num_pinned_;
}

// Whether all running sequences may not get the blocks of this step.
bool Scheduler::is_tight() const {
  int64_t needed = options_.max_num_batched_tokens / pool_->block_size() + 1;
  needed += 2 * std::ssize(running_);
  return needed > int64_t{pool_->num_free()} + pool_->num_cached();
}

// Those that waited too long, as they came; if that is not enough, the first ones by rank.
void Scheduler::view_waiting(size_t count, double now_s) {
  waiting_view_.clear();
  if (!fills_batch_) return;
  if (std::cmp_greater_equal(running_.size(), options_.max_num_seqs)) return;
  const auto is_overdue = [&](const Sequence* s) {
    return options_.max_waiting_s > 0 && now_s - s->given.arrival_s > options_.max_waiting_s;
  };
  for (const Sequence* s : by_arrival_) {
    if (!is_overdue(s)) break;
    if (waiting_view_.size() == count) return;
    waiting_view_.push_back(view_of(*s));
  }
  for (const Sequence* s : by_rank_) {
    if (count-- == 0) return;
    if (!is_overdue(s)) waiting_view_.push_back(view_of(*s));
  }
}

WaitingView Scheduler::view_of(const Sequence& s) const {
  WaitingView view{.id = s.id,
                   .num_tokens = static_cast<int>(s.tokens.size()),
                   .arrival_s = s.given.arrival_s,
                   .priority = s.given.priority,
                   .was_preempted = s.was_preempted,
                   .block_hashes = s.block_hashes};
  if (!reads_cache(s)) return view;
  const PrefixTree::Lookup found = tree_.lookup(s.given.key, s.tokens);
  view.num_cached = found.num_tokens;
  view.cached_only = found.num_cached_only;
  const int in_last = found.num_tokens % pool_->block_size();
  if (in_last == 0 || !only_whole_blocks(s)) return view;
  view.num_cached -= in_last;
  view.cached_only = std::max(view.cached_only - 1, 0);  // where any is, the last is
  return view;
}

}  // namespace octavo
