#include "sched/scheduler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <limits>
#include <tuple>

#include "kv/block_size.h"

namespace octavo {

bool Scheduler::ByRank::operator()(const Sequence* a, const Sequence* b) const {
  return std::tuple(a->rank, a->given.arrival_s, a->id) <
         std::tuple(b->rank, b->given.arrival_s, b->id);
}

bool Scheduler::ByArrival::operator()(const Sequence* a, const Sequence* b) const {
  return std::tuple(a->given.arrival_s, a->id) < std::tuple(b->given.arrival_s, b->id);
}

bool Scheduler::RunsBefore::operator()(const Sequence* a, const Sequence* b) const {
  if (policy == SchedulingPolicy::priority && a->given.priority != b->given.priority)
    return a->given.priority < b->given.priority;
  return ByArrival()(a, b);
}

std::string_view name(KvCacheLayout layout) {
  return layout == KvCacheLayout::paged ? "paged" : "contiguous";
}

Result<void> validate(const SchedulerOptions& options, int num_blocks, int block_size) {
  const auto refuse = [](std::string message) {
    return fail(ErrorCode::invalid_argument, std::move(message));
  };
  OCTAVO_CHECK_OK(check_block_size(block_size));
  if (options.max_num_seqs < 1) return refuse("max_num_seqs must be at least 1");
  if (options.max_num_batched_tokens < options.max_num_seqs)
    return refuse(
        fmt::format("max_num_batched_tokens is {} and max_num_seqs {}: each running "
                    "sequence needs a token of every step; raise the first or lower "
                    "the second",
                    options.max_num_batched_tokens, options.max_num_seqs));
  if (options.max_model_len < 1) return refuse("max_model_len must be at least 1");
  if (options.whole_prompts && options.max_model_len > options.max_num_batched_tokens)
    return refuse(
        fmt::format("the model computes a whole sequence in one step, so that "
                    "max_model_len ({}) may be at most max_num_batched_tokens ({}); "
                    "lower the first or raise the second",
                    options.max_model_len, options.max_num_batched_tokens));
  const int64_t needed = blocks_for(options.max_model_len, block_size);
  if (options.kv_layout == KvCacheLayout::contiguous && needed > num_blocks)
    return refuse(fmt::format(
        "a contiguous sequence of max_model_len {} takes {} KV blocks of {} "
        "tokens and there are {}; lower max_model_len to {}",
        options.max_model_len, needed, block_size, num_blocks, int64_t{num_blocks} * block_size));
  return {};
}

Result<std::unique_ptr<Scheduler>> Scheduler::create(const SchedulerOptions& options,
                                                     int num_blocks, int block_size) {
  OCTAVO_CHECK_OK(validate(options, num_blocks, block_size));
  OCTAVO_TRY(std::unique_ptr<BlockPool> pool, BlockPool::create(num_blocks, block_size));
  return std::unique_ptr<Scheduler>(new Scheduler(options, std::move(pool)));
}

Scheduler::Scheduler(const SchedulerOptions& options, std::unique_ptr<BlockPool> pool)
    : options_(options), pool_(std::move(pool)), tree_(*pool_, options.prefix_cache_policy) {
  if (options_.kv_layout == KvCacheLayout::contiguous) {
    const int64_t run = blocks_for(options_.max_model_len, pool_->block_size());
    options_.max_num_seqs =
        std::min(options_.max_num_seqs, static_cast<int>(pool_->num_blocks() / run));
  }
}

bool Scheduler::caches_prefixes() const {
  return options_.enable_prefix_caching && options_.keep_kv &&
         options_.kv_layout == KvCacheLayout::paged;
}

// The last token of an answer is never computed.
int64_t Scheduler::blocks_for_whole(const Sequence& s) const {
  return blocks_for(s.prompt_tokens + std::max(s.given.max_new_tokens - 1, 0), pool_->block_size());
}

Result<SeqId> Scheduler::add(NewSequence given) {
  auto sequence = std::make_unique<Sequence>(SeqId{next_id_}, *pool_);
  sequence->tokens = std::move(given.tokens);
  sequence->given = std::move(given);
  sequence->prompt_tokens = static_cast<int>(sequence->tokens.size());
  const int64_t blocks = blocks_for_whole(*sequence);
  if (blocks > pool_->num_blocks())
    return fail(ErrorCode::resource_exhausted,
                fmt::format("{} prompt tokens and {} to generate need {} KV blocks of {} tokens, "
                            "but the cache has {} ({} tokens); shorten the prompt, lower "
                            "max_tokens, or give the cache more memory",
                            sequence->prompt_tokens, sequence->given.max_new_tokens, blocks,
                            pool_->block_size(), pool_->num_blocks(),
                            int64_t{pool_->num_blocks()} * pool_->block_size()));
  ++next_id_;
  Sequence& added = *sequences_.emplace(sequence->id, std::move(sequence)).first->second;
  enqueue(added);
  return added.id;
}

void Scheduler::enqueue(Sequence& s) {
  s.state = State::waiting;
  hash_blocks(s);
  s.rank = 0;
  if (options_.policy == SchedulingPolicy::priority)
    s.rank = s.given.priority;
  else if (s.was_preempted)
    s.rank = std::numeric_limits<double>::lowest();
  else if (options_.policy == SchedulingPolicy::shortest_prefill_first)
    s.rank = static_cast<double>(std::ssize(s.tokens) - view_of(s).num_cached) +
             options_.ageing_tokens_per_s * s.given.arrival_s;
  by_rank_.insert(&s);
  by_arrival_.insert(&s);
}

void Scheduler::dequeue(Sequence& s) {
  by_rank_.erase(&s);
  by_arrival_.erase(&s);
}

void Scheduler::start_running(Sequence& s) {
  s.state = State::running;
  running_.insert(
      std::upper_bound(running_.begin(), running_.end(), &s, RunsBefore{options_.policy}), &s);
}

void Scheduler::stop_running(Sequence& s) {
  drop_drafts(s);
  running_.erase(std::find(running_.begin(), running_.end(), &s));
}

void Scheduler::hash_blocks(Sequence& s) {
  if (!caches_prefixes()) return;
  s.block_hashes.clear();
  for (const Hash128& hash : block_hashes(s.given.key, s.tokens, pool_->block_size()))
    s.block_hashes.push_back(hash.low);
}

// --- planning -------------------------------------------------------------------------------

const Step& Scheduler::begin_step(double now_s) {
  take_back_blocks();
  step_.chunks.clear();
  step_.copies.clear();
  step_.admitted.clear();
  step_.preempted.clear();
  // Blocks that a preempted one shared with the first need no copy any more, which a plan cannot
  // foresee: if all it does is to preempt, the next one does more.
  if (running_.empty()) fills_batch_ = true;
  do {
    make_plan(now_s);
    for (const SeqId id : plan_.preempted) preempt(at(id));
  } while (plan_.empty() && !plan_.preempted.empty());
  // A static batch is closed when it has all it can have, not when a step has.
  if (options_.mode == SchedulingMode::static_batch)
    fills_batch_ = plan_.out_of_tokens && !plan_.empty();
  step_.work = plan_.work;
  step_.num_chunks = step_.num_padding = 0;
  // All of them before any block is taken, so that none of what they found is evicted.
  for (const PlannedChunk& chunk : plan_.admitted) admit(at(chunk.id));
  for (const PlannedChunk& chunk : plan_.running) add_chunk(at(chunk.id), chunk);
  for (const PlannedChunk& chunk : plan_.admitted) add_chunk(at(chunk.id), chunk);
  for (StepChunk& chunk : step_.chunks) add_branches(chunk);  // with what blocks are left
  return step_;
}

// --- carrying it out ------------------------------------------------------------------------

void Scheduler::preempt(Sequence& s) {
  stop_running(s);
  if (s.state == State::padding) return erase(s);
  release_blocks(s);
  ++num_preemptions_;
  step_.preempted.push_back(s.id);
  s.was_preempted = true;
  enqueue(s);
}

void Scheduler::admit(Sequence& s) {
  dequeue(s);
  make_room(s);
  take_prefix(s);
  if (s.num_cached < 0) s.num_cached = s.num_computed;
  // Of what is known all but the last token had been computed before.
  if (s.was_preempted) recomputed_tokens_ += std::ssize(s.tokens) - 1 - s.num_computed;
  start_running(s);
  step_.admitted.push_back(s.id);
}

// So that no step after this one allocates for it; those who wait take no more than their prompts.
void Scheduler::make_room(Sequence& s) {
  const int64_t room = int64_t{s.prompt_tokens} + s.given.max_new_tokens;
  s.tokens.reserve(static_cast<size_t>(room));
  s.table.make_room(room);
}

bool Scheduler::reads_cache(const Sequence& s) const {
  return caches_prefixes() && s.given.reads_prefix_cache;
}

void Scheduler::take_prefix(Sequence& s) {
  if (options_.kv_layout == KvCacheLayout::contiguous) {
    // There is a run for each place: all of them are equally long.
    const auto taken = s.table.reserve_run(options_.max_model_len);
    assert(taken);
    (void)taken;
  }
  if (!caches_prefixes()) return;
  if (!s.given.reads_prefix_cache) {
    if (!s.was_preempted) tree_.record_skipped();  // each request once
    return;
  }
  PrefixMatch match =
      tree_.acquire(s.given.key, s.tokens,
                    s.was_preempted ? PrefixTree::Purpose::recompute : PrefixTree::Purpose::prompt);
  if (const int in_last = match.num_tokens % pool_->block_size();
      in_last != 0 && only_whole_blocks(s)) {
    match.blocks.pop_back();
    match.num_tokens -= in_last;
  }
  s.num_computed = match.num_tokens;
  if (match.num_tokens > 0) s.table.adopt(std::move(match.blocks), match.num_tokens);
}

void Scheduler::add_chunk(Sequence& s, const PlannedChunk& planned) {
  const int num_tokens = planned.num_tokens + planned.num_drafts;
  const DraftTree tree = {std::span(s.drafts).first(static_cast<size_t>(planned.num_drafts)),
                          s.draft_parents};
  const int straight = tree.empty() ? 0 : segments(tree).front().last;
  if (!reserve(s, s.num_computed + planned.num_tokens + straight)) return;
  s.planned = planned.num_tokens;
  s.num_drafts = planned.num_drafts;
  const bool completes = s.num_computed + s.planned == static_cast<int>(s.tokens.size());
  s.tokens.insert(s.tokens.end(), s.drafts.begin(), s.drafts.begin() + planned.num_drafts);
  if (s.state == State::padding) ++step_.num_padding;
  ++step_.num_chunks;
  const auto first = static_cast<size_t>(s.num_computed);
  step_.chunks.push_back(
      {.id = s.id,
       .first_position = s.num_computed,
       .tokens = std::span(s.tokens).subspan(first, static_cast<size_t>(num_tokens)),
       .block_table = s.table.block_ids(),
       .num_drafts = planned.num_drafts,
       .parents = s.draft_parents,
       .completes = completes,
       .padding = s.state == State::padding});
}

// False: the plan counted on blocks that are not there; the sequence waits a step.
bool Scheduler::reserve(Sequence& s, int num_tokens) {
  int missing = s.table.blocks_to_reserve(num_tokens) - pool_->num_free();
  if (missing > 0) missing -= tree_.evict(missing);
  if (missing > 0 && tree_can_forget(s)) tree_.forget(s.table.block_ids().back());
  const bool reserved = reserve(s.table, num_tokens);
  assert(reserved);
  return reserved;
}

bool Scheduler::reserve(BlockTable& table, int num_tokens) {
  auto copies = table.reserve(num_tokens);
  if (!copies) return false;
  step_.copies.insert(step_.copies.end(), copies->begin(), copies->end());
  return true;
}

SeqId Scheduler::fork(SeqId parent_id) {
  Sequence& parent = at(parent_id);
  // The prefix tree takes no block that others share before it has it.
  remember_blocks(parent, parent.num_computed + parent.planned);
  auto child = std::make_unique<Sequence>(SeqId{next_id_++}, *pool_);
  child->given = parent.given;
  child->tokens = parent.tokens;
  child->prompt_tokens = parent.prompt_tokens;
  child->num_cached = parent.num_cached;
  Sequence& added = *sequences_.emplace(child->id, std::move(child)).first->second;
  const bool runs = options_.kv_layout == KvCacheLayout::paged &&
                    std::cmp_less(running_.size(), options_.max_num_seqs);
  if (runs) {
    added.table = parent.table.fork();
    make_room(added);
    added.num_computed = parent.num_computed + parent.planned;
    added.block_hashes = parent.block_hashes;
    start_running(added);
  } else {
    added.was_preempted = true;
    enqueue(added);
  }
  return added.id;
}

// --- the end of a step ----------------------------------------------------------------------

void Scheduler::commit(std::span<const StepOutcome> outcomes, double seconds) {
  ++num_steps_;
  if (seconds > 0) step_model_.observe(step_.work, seconds);
  for (const StepOutcome& outcome : outcomes) take_branch(at(outcome.id), outcome.last_draft);
  for (const StepChunk& chunk : step_.chunks) drop_drafts(at(chunk.id));
  for (const StepOutcome& outcome : outcomes) append(at(outcome.id), outcome.tokens);
  for (const StepChunk& chunk : step_.chunks) finish_chunk(at(chunk.id));
  for (const StepOutcome& outcome : outcomes)
    if (outcome.finished) finish(at(outcome.id));
  step_.chunks.clear();
  end_static_batch();
}

void Scheduler::finish_chunk(Sequence& s) {
  const int size = pool_->block_size();
  const int before = s.num_computed;
  s.num_computed += std::exchange(s.planned, 0);
  if (s.table.num_tokens() > s.num_computed) (void)s.table.truncate(s.num_computed);
  if (s.state == State::padding) return append(s, std::span(s.tokens).last(1));
  if (s.num_computed / size > before / size) remember_blocks(s, s.num_computed);
}

void Scheduler::remember_blocks(Sequence& s, int num_computed) {
  if (caches_prefixes())
    tree_.insert(s.given.key, std::span(s.tokens).first(static_cast<size_t>(num_computed)), s.table,
                 false);
}

void Scheduler::append(Sequence& s, std::span<const TokenId> tokens) {
  for (const TokenId token : tokens) s.tokens.push_back(token);
  if (tokens.empty()) return;
  // Of a decode: the drafts that came true are computed.
  if (s.planned > 0) s.planned += static_cast<int>(tokens.size()) - 1;
  if (options_.keep_kv) return;
  s.num_computed = s.planned = 0;
  (void)s.table.truncate(0);
}

void Scheduler::finish(Sequence& s) {
  const bool stays = options_.mode == SchedulingMode::static_batch && options_.pad_finished &&
                     s.state == State::running &&
                     std::cmp_less(s.tokens.size(), options_.max_model_len);
  if (stays)
    s.state = State::padding;
  else
    remove(s.id);
}

// Padding goes with the last that is not, or when it would outgrow the context.
void Scheduler::end_static_batch() {
  if (options_.mode != SchedulingMode::static_batch) return;
  const bool ended = std::all_of(running_.begin(), running_.end(),
                                 [](const Sequence* s) { return s->state == State::padding; });
  for (size_t i = running_.size(); i-- > 0;) {
    Sequence& s = *running_[i];
    if (s.state == State::padding &&
        (ended || std::cmp_greater_equal(s.tokens.size(), options_.max_model_len))) {
      stop_running(s);
      erase(s);
    }
  }
}

void Scheduler::abandon_step() {
  for (const StepChunk& chunk : step_.chunks) {
    Sequence& s = at(chunk.id);
    s.planned = 0;
    drop_drafts(s);
    (void)s.table.truncate(s.num_computed);  // the next chunk may be shorter
  }
  step_.chunks.clear();
}

void Scheduler::remove(SeqId id) {
  const auto found = sequences_.find(id);
  if (found == sequences_.end()) return;
  Sequence& s = *found->second;
  if (s.state == State::padding) return;
  if (s.state == State::waiting)
    dequeue(s);
  else
    stop_running(s);
  erase(s);
}

void Scheduler::erase(Sequence& s) {
  if (s.state != State::padding) release_blocks(s);
  sequences_.erase(s.id);
}

// What is computed stays in the prefix tree for whoever comes with the same tokens.
void Scheduler::release_blocks(Sequence& s) {
  (void)s.table.truncate(s.num_computed);
  if (caches_prefixes() && s.num_computed > 0)
    tree_.insert(s.given.key, std::span(s.tokens).first(static_cast<size_t>(s.num_computed)),
                 s.table, true);
  s.table = BlockTable(*pool_);
  s.num_computed = 0;
}

Result<int> Scheduler::pin(const PrefixKey& key, std::span<const TokenId> tokens) {
  PrefixTree::Pin pin = tree_.pin(key, tokens);
  const auto pinned = num_pinned_ + std::ssize(pin.blocks());
  const int64_t needed = blocks_for(options_.max_model_len, pool_->block_size());
  if (pool_->num_blocks() - pinned < needed)
    return fail(ErrorCode::resource_exhausted,
                fmt::format("{} pinned KV blocks would leave {} of {}, but a sequence of {} tokens "
                            "needs {}; pin less or lower max_model_len",
                            pinned, pool_->num_blocks() - pinned, pool_->num_blocks(),
                            options_.max_model_len, needed));
  num_pinned_ = static_cast<int>(pinned);
  const int num_tokens = pin.num_tokens();
  pins_.push_back(std::move(pin));
  return num_tokens;
}

void Scheduler::unpin_all() {
  pins_.clear();
  num_pinned_ = 0;
}

// --- looking --------------------------------------------------------------------------------

bool Scheduler::is_running(SeqId id) const {
  const auto found = sequences_.find(id);
  return found != sequences_.end() && found->second->state == State::running;
}

int Scheduler::num_blocks(SeqId id) const {
  const auto found = sequences_.find(id);
  return found == sequences_.end() ? 0 : found->second->table.num_blocks();
}

int Scheduler::num_cached_tokens(SeqId id) const { return std::max(at(id).num_cached, 0); }

std::span<const TokenId> Scheduler::tokens(SeqId id) const { return at(id).tokens; }

SchedulerStats Scheduler::stats() const {
  SchedulerStats stats{.num_running = num_running(),
                       .num_waiting = num_waiting(),
                       .num_preemptions = num_preemptions_,
                       .num_steps = num_steps_,
                       .recomputed_tokens = recomputed_tokens_,
                       .num_candidates = num_candidates_,
                       .num_blocks = pool_->num_blocks(),
                       .num_free_blocks = pool_->num_free(),
                       .num_cached_blocks = pool_->num_cached()};
  for (const Sequence* s : running_) {
    stats.reserved_tokens += int64_t{s->table.num_blocks()} * pool_->block_size();
    stats.stored_tokens += s->num_computed;
  }
  stats.step_model_error = step_model_.relative_error();
  return stats;
}

void Scheduler::map_blocks(std::vector<BlockUse>& blocks) const {
  blocks.assign(static_cast<size_t>(pool_->num_blocks()), BlockUse{});
  const int size = pool_->block_size();
  std::vector<BlockId> cached;
  tree_.append_references(cached);
  for (const BlockId id : cached)
    blocks[static_cast<size_t>(raw(id))] = {BlockUse::kCached,
                                            static_cast<int>(tree_.tokens_of(id).size())};
  for (const Sequence* s : running_)
    for (int i = 0; i < s->table.num_blocks(); ++i) {
      BlockUse& use =
          blocks[static_cast<size_t>(raw(s->table.block_ids()[static_cast<size_t>(i)]))];
      use.owner = use.owner >= 0 || use.owner == BlockUse::kShared ? BlockUse::kShared : raw(s->id);
      use.filled_tokens = std::clamp(s->num_computed - i * size, 0, size);
    }
}

Result<void> Scheduler::check() const {
  std::vector<BlockId> references;
  tree_.append_references(references);
  for (const PrefixTree::Pin& pin : pins_)
    for (const BlockRef& block : pin.blocks()) references.push_back(block.id());
  for (const auto& [id, s] : sequences_) {
    for (const BlockId block : s->table.block_ids()) references.push_back(block);
    for (const BlockTable& table : s->branch_tables)
      for (const BlockId block : table.block_ids()) references.push_back(block);
  }
  OCTAVO_CHECK_OK(pool_->check(references));
  return tree_.check();
}

}  // namespace octavo
