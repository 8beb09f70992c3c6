// What the next step computes: a pure function of what there is, chunked prefill and scheduling
// policies included. No threads, tensors, clock or
// I/O; equal arguments give equal plans, so that a plan can be tested, simulated and explained.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/ids.h"
#include "sched/step_model.h"

namespace octavo {

// Who is admitted next. Sequences that have been preempted come first, but for `priority`.
enum class SchedulingPolicy : uint8_t {
  fcfs,                    // first come, first served
  priority,                // lower number first, then as they came
  shortest_prefill_first,  // fewest tokens to compute, less what they gained by waiting
  longest_prefix_match,    // most tokens in the prefix cache
};

enum class SchedulingMode : uint8_t {
  continuous,    // sequences come and go at every step
  static_batch,  // a batch is filled, runs to the end of its longest, then comes the next
};

// As flags spell them.
std::string_view name(SchedulingPolicy policy);
std::string_view name(SchedulingMode mode);

struct RunningView {
  SeqId id{};
  int num_tokens = 0;    // known: prompt and what was generated
  int num_computed = 0;  // of them, K and V in the cache; fewer than num_tokens
  int num_blocks = 0;    // held
  int num_drafts = 0;    // guesses of what comes after them, wished to be verified
  bool copies = false;   // writing on needs a further block, because the last is shared
  int releases = 0;      // blocks that would be free or evictable without it; may be too few
  std::span<const uint64_t> block_hashes;  // of full blocks of known tokens, as far as known

  bool is_decode() const { return num_tokens - num_computed == 1; }
};

struct WaitingView {
  SeqId id{};
  int num_tokens = 0;
  int num_cached = 0;   // tokens of them that the prefix cache has; fewer than num_tokens
  int cached_only = 0;  // blocks of these that nobody else uses: not evictable once admitted
  double arrival_s = 0;
  int priority = 0;
  bool was_preempted = false;
  std::span<const uint64_t> block_hashes;
};

struct KvView {
  int block_size = 0;
  int num_free = 0;
  int num_cached = 0;  // in the prefix tree alone: evictable
};

struct SchedulerView {
  std::span<const RunningView> running;  // the first keeps its blocks longest
  std::span<const WaitingView> waiting;  // candidates, in any order
  KvView kv;
  int num_waiting = 0;  // all of them
};

struct StepBudget {
  int max_num_seqs = 0;                  // running at once
  int max_num_batched_tokens = 0;        // of a step; at least max_num_seqs
  int long_prefill_token_threshold = 0;  // of one sequence's prefill in a step; 0: none
  SchedulingPolicy policy = SchedulingPolicy::fcfs;
  bool whole_prompts = false;   // a prompt is computed in one step, or waits for a step of its own
  bool admits = true;           // false: a static batch is on its way
  bool reserves_blocks = true;  // false: a sequence has all blocks it can need (contiguous layout)
  double max_waiting_s = 0;     // who waited longer goes first under every policy, as they came
  double ageing_tokens_per_s = 0;  // of shortest_prefill_first
  // While others wait for their next token, prefill is cut so that the step is predicted to take
  // no longer; 0: no such limit.
  double max_step_s = 0;
  // While others wait for their next token, prefill is cut so that it is predicted to take no more
  // than so many times their part of the step; in proportion more where there is more than one
  // prompt for four of them. 0: no such limit.
  double max_prefill_ratio = 0;
  StepTimeModel step_model;
};

// How many times the time of the answers prompts get of a step: `most`, as max_prefill_ratio says.
// REQUIRES: num_answers > 0.
double prefill_ratio(double most, double num_prompts, int num_answers);

struct PlannedChunk {
  SeqId id{};
  int num_tokens = 0;  // the next ones that are not computed
  int num_drafts = 0;  // and so many guesses after them

  bool operator==(const PlannedChunk&) const = default;
};

struct StepPlan {
  std::vector<SeqId> preempted;        // lose their blocks and wait again
  std::vector<PlannedChunk> running;   // of sequences that run
  std::vector<PlannedChunk> admitted;  // that start, after what the prefix cache has of them
  StepWork work;
  bool wants_more = false;     // all candidates were taken and there is room for others
  bool out_of_tokens = false;  // the budget of tokens is spent: nobody else could be admitted

  void clear();
  bool empty() const { return running.empty() && admitted.empty(); }
};

// Decodes first, one token each, then chunks of prompts that have begun, then new sequences, as far
// as tokens, sequences and blocks reach.
//
// - Drafts take what is left of tokens when all decodes have theirs, and of free blocks; for them
//   nobody is preempted.
// - When blocks run out, the last of `running` are preempted. The first always goes on: since each
//   sequence could finish alone, all finish.
// - A sequence that cannot get a block, though none behind it is left, keeps what it has and waits.
// - Nobody is admitted in a step that preempts, nor without blocks for all of its tokens beside
//   what running prompts still need and one more block for each running sequence.
// - A sequence whose next block is being computed in this very step waits for it: the prefix cache
//   will have it. Others may pass it meanwhile, until it has waited too long.
//
// `reuse` lends its memory. REQUIRES: max_num_batched_tokens >= max_num_seqs >= running.size().
StepPlan plan(const SchedulerView& view, const StepBudget& budget, double now_s,
              StepPlan reuse = {});

}  // namespace octavo
