#include "spec/draft_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "spec/extend_guess.h"

namespace octavo {
namespace {

size_t num_equal(std::span<const TokenId> a, std::span<const TokenId> b) {
  return static_cast<size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

}  // namespace

Result<std::unique_ptr<ModelDrafter>> ModelDrafter::create(Model& model, int num_tokens,
                                                           const ModelDrafterOptions& options) {
  const ModelLimits& limits = model.limits();
  if (limits.vocab_size < num_tokens)
    return fail(ErrorCode::invalid_argument,
                fmt::format("the draft model has {} tokens and the model {}; take one with the "
                            "same vocabulary",
                            limits.vocab_size, num_tokens));
  OCTAVO_TRY(auto pool, BlockPool::create(limits.num_blocks, limits.block_size));
  OCTAVO_TRY(AlignedBuffer logits,
             AlignedBuffer::allocate(static_cast<size_t>(limits.max_logits_rows) *
                                         static_cast<size_t>(limits.logits_stride) * sizeof(float),
                                     AlignedBuffer::Use::sparse));
  return std::unique_ptr<ModelDrafter>(
      new ModelDrafter(model, num_tokens, options, std::move(pool), std::move(logits)));
}

ModelDrafter::ModelDrafter(Model& model, int num_tokens, const ModelDrafterOptions& options,
                           std::unique_ptr<BlockPool> pool, AlignedBuffer logits)
    : model_(model),
      num_tokens_(num_tokens),
      options_(options),
      pool_(std::move(pool)),
      tree_(options.prefix_caching ? std::make_unique<PrefixTree>(*pool_, EvictionPolicy::lru)
                                   : nullptr),
      logits_(std::move(logits)),
      sampler_(num_tokens) {}

DraftBlocks ModelDrafter::blocks() const {
  return {pool_->num_blocks(), pool_->num_free(), pool_->num_cached()};
}

void ModelDrafter::propose(std::span<DraftTask* const> tasks) {
  ++uses_;
  work_.clear();
  for (DraftTask* task : tasks)
    work_.push_back({task, &state_of(*task), {task->tokens.begin(), task->tokens.end()}});
  while (compute()) {
  }
  for (const Work& work : work_)
    if (!work.siblings.empty()) add_siblings(*work.task, work.probabilities, work.siblings);
}

// What is true of it stays, as the next turn of a conversation begins with it.
void ModelDrafter::finish(const FinishedSequence& sequence) {
  const auto found = states_.find(sequence.id);
  if (found == states_.end()) return;
  State& state = found->second;
  if (tree_) {
    std::vector<TokenId> text(sequence.prompt.begin(), sequence.prompt.end());
    text.insert(text.end(), sequence.answer.begin(), sequence.answer.end());
    tree_->insert(sequence.key, std::span(text).first(num_equal(text, state.tokens)), state.table,
                  true);
  }
  states_.erase(found);
}

// Cut to what still holds; the last token is always computed, for its logits.
ModelDrafter::State& ModelDrafter::state_of(const DraftTask& task) {
  State& state =
      states_.try_emplace(task.id, State{.tokens = {}, .table = BlockTable(*pool_)}).first->second;
  state.tokens.resize(num_equal(task.tokens.first(task.tokens.size() - 1), state.tokens));
  (void)state.table.truncate(static_cast<int>(state.tokens.size()));
  state.last_use = uses_;
  return state;
}

// --- room -----------------------------------------------------------------------------------

// Whether more of its tokens are there after this forward: those of one prompt with several answers
// compute it once.
bool ModelDrafter::waits(const Work& work) const {
  if (!tree_ || work.num_computed() > 0) return false;
  size_t most = 0;
  for (const Work& other : work_) {
    if (other.count == 0 || other.task->key != work.task->key) continue;
    const auto shared =
        std::min(static_cast<size_t>(other.num_computed() + other.count), other.num_known());
    most = std::max(most, num_equal(other.task->tokens.first(shared), work.task->tokens));
  }
  const auto size = static_cast<size_t>(pool_->block_size());
  const size_t in_full_blocks = std::min(most, work.num_known()) / size * size;
  return in_full_blocks > 0 &&
         std::cmp_greater(in_full_blocks,
                          tree_->lookup(work.task->key, work.task->tokens).num_tokens);
}

void ModelDrafter::adopt_prefix(Work& work) {
  PrefixMatch match = tree_->acquire(work.task->key, work.task->tokens);
  work.state->table.adopt(std::move(match.blocks), match.num_tokens);
  const auto known = work.task->tokens.first(static_cast<size_t>(match.num_tokens));
  work.state->tokens.assign(known.begin(), known.end());
}

// For all that may be computed this time, so that nobody begins who cannot end.
bool ModelDrafter::make_room(Work& work) {
  BlockTable& table = work.state->table;
  const auto known = static_cast<int>(work.task->tokens.size());
  const int context = model_.limits().context_length;
  if (known > context) return false;
  if (tree_ && work.num_computed() == 0) adopt_prefix(work);
  const int wanted = std::min(known + work.task->max_tokens - 1, context);
  while (table.blocks_to_reserve(wanted) > pool_->num_free())
    if (!free_blocks(table.blocks_to_reserve(wanted) - pool_->num_free(), work)) return false;
  const auto copies = table.reserve(wanted);
  if (!copies) return false;
  for (const BlockCopy& copy : *copies) model_.copy_block(copy.from, copy.to);
  return true;
}

// Some at least, until false: first those that nobody uses, then those of sequences that did not
// ask this time, the longest ago first, then those of the last in order that has no room yet.
bool ModelDrafter::free_blocks(int count, const Work& taker) {
  if (tree_ && tree_->evict(count) > 0) return true;
  const auto oldest = std::ranges::min_element(
      states_, {}, [](const auto& entry) { return entry.second.last_use; });
  if (oldest->second.last_use != uses_) {
    states_.erase(oldest);
    return true;
  }
  for (auto other = work_.rbegin(); other != work_.rend(); ++other) {
    if (&*other == &taker || other->has_room || other->state->table.num_blocks() == 0) continue;
    *other->state = State{.tokens = {}, .table = BlockTable(*pool_), .last_use = uses_};
    return true;
  }
  return false;
}

// --- computing ------------------------------------------------------------------------------

// One forward.
struct ModelDrafter::Step {
  std::vector<TokenId> tokens = {};
  std::vector<BatchSequence> sequences = {};
  std::vector<Work*> parts = {};     // of the sequences
  std::vector<int> rows = {};        // with logits
  std::vector<Work*> complete = {};  // of the rows
};

// Of each open sequence what it has not computed, as far as the batch reaches.
ModelDrafter::Step ModelDrafter::plan() {
  const ModelLimits& limits = model_.limits();
  Step step;
  for (Work& work : work_) work.count = 0;
  for (Work& work : work_) {
    const int room = limits.max_num_batched_tokens - static_cast<int>(step.tokens.size());
    if (room == 0) break;
    if (!work.open || (!work.has_room && waits(work))) continue;
    if (!work.has_room) work.open = work.has_room = make_room(work);
    const int computed = work.num_computed();
    const int missing = static_cast<int>(work.tokens.size()) - computed;
    const int count = std::min(missing, room);
    if (computed + count > work.state->table.num_tokens()) work.open = false;
    if (!work.open) continue;
    if (count == missing && std::cmp_equal(step.rows.size(), limits.max_logits_rows)) continue;
    work.count = count;
    const auto fresh =
        std::span(work.tokens).subspan(static_cast<size_t>(computed), static_cast<size_t>(count));
    step.sequences.push_back({.first_row = static_cast<int>(step.tokens.size()),
                              .num_tokens = count,
                              .first_position = computed,
                              .block_table = work.state->table.block_ids()});
    step.tokens.insert(step.tokens.end(), fresh.begin(), fresh.end());
    step.parts.push_back(&work);
    if (count < missing) continue;
    step.rows.push_back(static_cast<int>(step.tokens.size()) - 1);
    step.complete.push_back(&work);
  }
  return step;
}

void ModelDrafter::commit(const Step& step) {
  for (Work* work : step.parts) {
    std::vector<TokenId>& computed = work->state->tokens;
    const auto begin = work->tokens.begin() + std::ssize(computed);
    computed.insert(computed.end(), begin, begin + work->count);
  }
  if (!tree_) return;
  for (const Work* work : step.complete)
    if (work->task->draft.empty())
      tree_->insert(work->task->key, work->task->tokens.first(work->num_known()),
                    work->state->table, false);
}

// One forward; whoever is complete then gets a further token. False: nobody is open.
bool ModelDrafter::compute() {
  const Step step = plan();
  if (step.tokens.empty()) return false;
  if (!model_.forward(
          {.tokens = step.tokens, .sequences = step.sequences, .logits_rows = step.rows}))
    return false;
  commit(step);
  if (step.rows.empty()) return true;
  model_.logits(step.rows, reinterpret_cast<float*>(logits_.data()));
  draw(step.complete);
  return true;
}

void ModelDrafter::draw(std::span<Work* const> rows) {
  const auto stride = static_cast<size_t>(model_.limits().logits_stride);
  for (size_t i = 0; i < rows.size(); ++i) {
    Work& work = *rows[i];
    DraftTask& task = *work.task;
    const std::span row(reinterpret_cast<const float*>(logits_.data()) + i * stride,
                        static_cast<size_t>(num_tokens_));
    work.open = extend_guess(task, work.tokens, row, options_.method, sampler_);
    if (!work.open) continue;
    if (options_.branching_factor > 1 && is_greedy(*task.params)) note_siblings(work, row);
    work.tokens.push_back(task.draft.back());
    work.open = std::cmp_less(task.draft.size(), task.max_tokens);
  }
}

void ModelDrafter::note_siblings(Work& work, std::span<const float> row) const {
  const std::vector<TokenId>& draft = work.task->draft;
  const std::vector<SiblingGuess> beside =
      siblings_of(row, static_cast<int>(draft.size()) - 1, draft.back(),
                  options_.branching_factor - 1, work.probabilities.emplace_back());
  work.siblings.insert(work.siblings.end(), beside.begin(), beside.end());
}

}  // namespace octavo
