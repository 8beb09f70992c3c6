// The bookkeeping of all sequences of an engine: who waits, who runs, which blocks they hold.
// Continuous batching: sequences come and go at every step. Who loses its blocks waits and is
// computed again (preemption by recomputation). The
// decisions are plan()'s; this class gathers what it looks at and carries out what it says.
//
// One thread. A step is begin_step(), then the forward, then commit().
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/hash.h"
#include "base/result.h"
#include "core/draft_tree.h"
#include "core/ids.h"
#include "kv/block_pool.h"
#include "kv/block_table.h"
#include "kv/prefix_tree.h"
#include "sched/plan.h"
#include "sched/step_model.h"

namespace octavo {

enum class KvCacheLayout : uint8_t {
  paged,       // blocks as they are needed, wherever they are free
  contiguous,  // max_model_len positions for each sequence, side by side, from the start
};

std::string_view name(KvCacheLayout layout);

struct SchedulerOptions {
  int max_num_seqs = 256;
  int max_num_batched_tokens = 512;
  int long_prefill_token_threshold = 0;  // tokens of one prompt in a step; 0: no limit
  SchedulingPolicy policy = SchedulingPolicy::fcfs;
  SchedulingMode mode = SchedulingMode::continuous;
  bool pad_finished = true;  // static_batch: who is done stays in the batch until it ends
  KvCacheLayout kv_layout = KvCacheLayout::paged;
  // A prompt is never computed in parts; max_model_len is at most max_num_batched_tokens then.
  bool whole_prompts = false;
  int max_model_len = 0;              // tokens of a sequence at most, prompt and answer
  bool enable_prefix_caching = true;  // paged only
  EvictionPolicy prefix_cache_policy = EvictionPolicy::lru;
  bool keep_kv = true;  // false: every token is computed with its whole context, for comparison
  double max_waiting_s = 30;  // see StepBudget
  double ageing_tokens_per_s = 500;
  double max_inter_token_s = 0;  // wish for the time between two tokens of an answer; 0: none
  double max_prefill_ratio = 1;  // see StepBudget; 0: no limit
};

// Errors: invalid_argument, naming the option and what to change it to.
Result<void> validate(const SchedulerOptions& options, int num_blocks, int block_size);

struct NewSequence {
  std::vector<TokenId> tokens;  // the prompt; not empty
  int max_new_tokens = 0;       // 0: only the prompt is computed
  PrefixKey key;
  double arrival_s = 0;
  int priority = 0;
  bool reads_prefix_cache = true;  // false: all of its prompt is computed
};

// Drafts of a chunk that leave the way of those before them, with blocks of their own.
struct DraftBranch {
  int first_draft = 0, num_drafts = 0;
  int first_position = 0;
  std::span<const BlockId> block_table;  // covers them
  // What comes before them from the chunk's last known token on: kRoot, that token, then drafts.
  // Their K and V are wanted in these blocks too.
  std::span<const int> ancestors;
};

// One sequence's part of a step.
struct StepChunk {
  SeqId id{};
  int first_position = 0;
  std::span<const TokenId> tokens;             // to compute
  std::span<const BlockId> block_table;        // covers them
  int num_drafts = 0;                          // the last of `tokens` are guesses
  std::span<const int> parents = {};           // of the drafts: see DraftTree
  std::span<const DraftBranch> branches = {};  // the last drafts, but for those of the table above
  bool completes = false;  // after it all known tokens are computed: the next one can be drawn
  bool padding = false;    // of a sequence that is done; computed for nothing
};

struct Step {
  std::vector<StepChunk> chunks;  // valid until the scheduler changes
  std::vector<BlockCopy> copies;  // to carry out before the forward, in order
  std::vector<SeqId> admitted, preempted;
  StepWork work;
  int num_chunks = 0;   // as many as chunks had at the start
  int num_padding = 0;  // of the sequences in `work`

  bool empty() const { return chunks.empty(); }
};

// What became of a sequence in a step.
struct StepOutcome {
  SeqId id{};
  std::span<const TokenId> tokens;  // appended to it, in order
  bool finished = false;
  int last_draft = kRoot;  // of the drafts that came true, which are those on the way to it
};

// Of one block of the pool.
struct BlockUse {
  static constexpr int64_t kFree = -1, kCached = -2, kShared = -3;

  int64_t owner = kFree;  // the SeqId of the one sequence that holds it; or one of the above
  int filled_tokens = 0;
};

struct SchedulerStats {
  int num_running = 0, num_waiting = 0;
  int64_t num_preemptions = 0;
  int64_t num_steps = 0;
  int64_t recomputed_tokens = 0;  // computed again after a preemption
  int64_t num_candidates = 0;     // looked at by all plans, of those who waited
  int num_blocks = 0, num_free_blocks = 0, num_cached_blocks = 0;
  int64_t reserved_tokens = 0;  // positions in blocks that running sequences hold
  int64_t stored_tokens = 0;    // of these with K and V in them
  double step_model_error = 0;  // StepTimeModel::relative_error()
};

class Scheduler {
 public:
  static Result<std::unique_ptr<Scheduler>> create(const SchedulerOptions& options, int num_blocks,
                                                   int block_size);

  // A further sequence, which waits. resource_exhausted if it could not finish though it were
  // alone: the error names its tokens and those of the cache.
  Result<SeqId> add(NewSequence sequence);

  // Plans the next step and takes blocks for it. Empty: nobody can do anything, because there is
  // nobody.
  const Step& begin_step(double now_s);

  // Running sequences that have one token to compute, in an order that depends on nothing else.
  const std::vector<SeqId>& decoding();

  // Guesses of what comes after the tokens of a sequence, for the next step alone, as far as there
  // is room. commit() says how many of them came true. REQUIRES: one of decoding(); fewer than it
  // may still append; keep_kv.
  void set_drafts(SeqId id, const DraftTree& drafts);

  // Before begin_step(), which takes them back: the blocks of a sequence with room for the K and V
  // of num_tokens positions from its last token on, to be written at will; what is there then is
  // computed again before anybody reads it. Empty: the last block is shared, or blocks are missing;
  // nobody is preempted for them. REQUIRES: one of decoding(), as for set_drafts().
  std::span<const BlockId> lend_blocks(SeqId id, int num_tokens);

  // After the forward of the step and before commit(): a further sequence with the same tokens and
  // the same blocks, which goes on from here. It runs if there is a place for it; else it waits.
  // REQUIRES: the chunk of `parent` completes.
  SeqId fork(SeqId parent);

  // The end of a step: its chunks are computed, these tokens drawn. Every sequence whose chunk
  // completes, and every fork, has an outcome, or will be removed. Of a chunk with drafts, an
  // outcome of n tokens says that the first n - 1 drafts came true. seconds: what the step took; 0:
  // unknown.
  void commit(std::span<const StepOutcome> outcomes, double seconds);

  // The step came to nothing; what it would have computed is still to do.
  void abandon_step();

  // Forgets a sequence between two steps, whatever it is doing. No-op if there is none, or if it is
  // finished and stays as padding.
  void remove(SeqId id);

  // Keeps what the prefix cache has of these tokens from being evicted; returns how many of them
  // that are. resource_exhausted if the longest sequence would have no room beside all that is
  // pinned.
  Result<int> pin(const PrefixKey& key, std::span<const TokenId> tokens);
  void unpin_all();

  bool has_work() const { return !running_.empty() || !by_rank_.empty(); }
  int num_waiting() const { return static_cast<int>(by_rank_.size()); }
  int num_running() const { return static_cast<int>(running_.size()); }
  bool is_running(SeqId id) const;
  // Positions of its prompt that were in the prefix cache when it was first admitted.
  int num_cached_tokens(SeqId id) const;
  std::span<const TokenId> tokens(SeqId id) const;  // during a step with its drafts behind them
  // That it holds; 0 of one that is finished or unknown.
  int num_blocks(SeqId id) const;

  const SchedulerOptions& options() const { return options_; }
  const StepTimeModel& step_model() const { return step_model_; }
  PrefixTree& prefix_tree() { return tree_; }
  const PrefixTree& prefix_tree() const { return tree_; }
  const BlockPool& pool() const { return *pool_; }
  SchedulerStats stats() const;
  void map_blocks(std::vector<BlockUse>& blocks) const;  // all of the pool, by id

  // I2, over pool, tree and tables. An error is a bug of this program.
  Result<void> check() const;

 private:
  enum class State : uint8_t { waiting, running, padding };
  struct Sequence {
    SeqId id{};
    NewSequence given;
    std::vector<TokenId> tokens;  // prompt and answer so far
    int prompt_tokens = 0;
    int num_computed = 0;
    int planned = 0;  // tokens of the step that is on its way, without drafts
    // Wished for the next step; of the one that is on its way the first num_drafts of them, which
    // stand at the end of `tokens`.
    std::vector<TokenId> drafts;
    std::vector<int> draft_parents;
    int num_drafts = 0;
    std::vector<DraftBranch> branches;  // of these
    std::vector<BlockTable> branch_tables;
    std::vector<std::vector<int>> branch_ancestors;
    int num_cached = -1;  // when first admitted; -1: not yet
    State state = State::waiting;
    bool was_preempted = false;
    BlockTable table;
    std::vector<uint64_t> block_hashes;
    double rank = 0;

    Sequence(SeqId sequence, BlockPool& pool) : id(sequence), table(pool) {}
  };
  // Orders of those who wait. Times and ranks do not change while somebody waits.
  struct ByRank {
    bool operator()(const Sequence* a, const Sequence* b) const;
  };
  struct ByArrival {
    bool operator()(const Sequence* a, const Sequence* b) const;
  };
  struct RunsBefore {
    SchedulingPolicy policy;
    bool operator()(const Sequence* a, const Sequence* b) const;
  };

  Scheduler(const SchedulerOptions& options, std::unique_ptr<BlockPool> pool);

  bool caches_prefixes() const;
  bool reads_cache(const Sequence& sequence) const;
  bool writes_shared_block(const Sequence& sequence) const;
  bool tree_can_forget(const Sequence& sequence) const;
  bool only_whole_blocks(const Sequence& sequence) const;
  int64_t blocks_for_whole(const Sequence& sequence) const;
  Sequence& at(SeqId id) { return *sequences_.at(id); }
  const Sequence& at(SeqId id) const { return *sequences_.at(id); }

  void enqueue(Sequence& sequence);
  void dequeue(Sequence& sequence);
  void start_running(Sequence& sequence);
  void stop_running(Sequence& sequence);
  void hash_blocks(Sequence& sequence);

  void make_plan(double now_s);
  void view_running();
  bool is_tight() const;
  void view_waiting(size_t count, double now_s);
  WaitingView view_of(const Sequence& sequence) const;
  StepBudget budget() const;

  void preempt(Sequence& sequence);
  void admit(Sequence& sequence);
  void make_room(Sequence& sequence);
  void take_prefix(Sequence& sequence);
  void add_chunk(Sequence& sequence, const PlannedChunk& planned);
  bool reserve(Sequence& sequence, int num_tokens);
  bool reserve(BlockTable& table, int num_tokens);
  void make_free(int num_blocks);

  bool branch_out(Sequence& sequence, const DraftSegment& segment);
  void add_branches(StepChunk& chunk);
  void take_branch(Sequence& sequence, int last_draft);
  void take_back_blocks();
  void drop_drafts(Sequence& sequence);
  void finish_chunk(Sequence& sequence);
  void remember_blocks(Sequence& sequence, int num_computed);
  void append(Sequence& sequence, std::span<const TokenId> tokens);
  void finish(Sequence& sequence);
  void end_static_batch();
  void release_blocks(Sequence& sequence);
  void erase(Sequence& sequence);

  SchedulerOptions options_;
  std::unique_ptr<BlockPool> pool_;
  PrefixTree tree_;
  std::vector<PrefixTree::Pin> pins_;
  int num_pinned_ = 0;  // blocks
  StepTimeModel step_model_;
  std::unordered_map<SeqId, std::unique_ptr<Sequence>> sequences_;
  bool fills_batch_ = true;         // a static batch still takes sequences
  std::vector<Sequence*> running_;  // the first keeps its blocks longest
  std::set<Sequence*, ByRank> by_rank_;
  std::set<Sequence*, ByArrival> by_arrival_;
  int64_t next_id_ = 0;
  Step step_;
  StepPlan plan_;
  std::vector<SeqId> decoding_;
  std::vector<SeqId> borrowers_;
  std::vector<RunningView> running_view_;
  std::vector<WaitingView> waiting_view_;
  int64_t num_preemptions_ = 0, num_steps_ = 0, recomputed_tokens_ = 0, num_candidates_ = 0;
};

}  // namespace octavo
