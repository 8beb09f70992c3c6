#include "spec/draft_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "spec/extend_guess.h"

namespace octavo {

Result<std::unique_ptr<ModelDrafter>> ModelDrafter::create(Model& model, int num_tokens,
                                                           RejectionSampleMethod method,
                                                           int branching_factor) {
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
  return std::unique_ptr<ModelDrafter>(new ModelDrafter(model, num_tokens, method, branching_factor,
                                                        std::move(pool), std::move(logits)));
}

ModelDrafter::ModelDrafter(Model& model, int num_tokens, RejectionSampleMethod method,
                           int branching_factor, std::unique_ptr<BlockPool> pool,
                           AlignedBuffer logits)
    : model_(model),
      num_tokens_(num_tokens),
      method_(method),
      branching_factor_(branching_factor),
      pool_(std::move(pool)),
      logits_(std::move(logits)),
      sampler_(num_tokens) {}

// Cut to what still holds; the last token is always computed, for its logits.
ModelDrafter::State& ModelDrafter::state_of(const DraftTask& task) {
  State& state =
      states_.try_emplace(task.id, State{.tokens = {}, .table = BlockTable(*pool_)}).first->second;
  const size_t most = std::min(state.tokens.size(), task.tokens.size() - 1);
  const auto differs =
      std::mismatch(state.tokens.begin(), state.tokens.begin() + static_cast<std::ptrdiff_t>(most),
                    task.tokens.begin())
          .first;
  state.tokens.erase(differs, state.tokens.end());
  (void)state.table.truncate(static_cast<int>(state.tokens.size()));
  state.last_use = uses_;
  return state;
}

// If blocks are missing, those who did not ask this time lose theirs, the longest ago first.
bool ModelDrafter::reserve(Work& work, int num_tokens) {
  if (num_tokens > model_.limits().context_length) return false;
  while (work.state->table.blocks_to_reserve(num_tokens) > pool_->num_free()) {
    const auto oldest = std::min_element(
        states_.begin(), states_.end(),
        [](const auto& a, const auto& b) { return a.second.last_use < b.second.last_use; });
    if (oldest->second.last_use == uses_) return false;
    states_.erase(oldest);
  }
  return work.state->table.reserve(num_tokens).has_value();
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

// One forward: of each open sequence what it has not computed, as far as the batch reaches. Whoever
// is complete then gets a further token. False: nobody is open.
bool ModelDrafter::compute() {
  std::vector<TokenId> tokens;
  std::vector<BatchSequence> sequences;
  std::vector<int> rows;
  std::vector<Work*> complete;
  const ModelLimits& limits = model_.limits();
  for (Work& work : work_) {
    const auto known = static_cast<int>(work.state->tokens.size());
    const int room = limits.max_num_batched_tokens - static_cast<int>(tokens.size());
    const int count = std::min(static_cast<int>(work.tokens.size()) - known, room);
    const bool completes = known + count == static_cast<int>(work.tokens.size());
    if (!work.open || count == 0) continue;
    if (completes && std::cmp_equal(rows.size(), limits.max_logits_rows)) continue;
    if (!reserve(work, known + count)) {
      work.open = false;
      continue;
    }
    const auto fresh =
        std::span(work.tokens).subspan(static_cast<size_t>(known), static_cast<size_t>(count));
    sequences.push_back({.first_row = static_cast<int>(tokens.size()),
                         .num_tokens = count,
                         .first_position = known,
                         .block_table = work.state->table.block_ids()});
    tokens.insert(tokens.end(), fresh.begin(), fresh.end());
    work.state->tokens.insert(work.state->tokens.end(), fresh.begin(), fresh.end());
    if (!completes) continue;
    rows.push_back(static_cast<int>(tokens.size()) - 1);
    complete.push_back(&work);
  }
  if (tokens.empty()) return false;
  model_.forward({.tokens = tokens, .sequences = sequences, .logits_rows = rows});
  if (rows.empty()) return true;
  model_.logits(rows, reinterpret_cast<float*>(logits_.data()));
  draw(complete);
  return true;
}

void ModelDrafter::draw(std::span<Work* const> rows) {
  const auto stride = static_cast<size_t>(model_.limits().logits_stride);
  for (size_t i = 0; i < rows.size(); ++i) {
    Work& work = *rows[i];
    DraftTask& task = *work.task;
    const std::span row(reinterpret_cast<const float*>(logits_.data()) + i * stride,
                        static_cast<size_t>(num_tokens_));
    work.open = extend_guess(task, work.tokens, row, method_, sampler_);
    if (!work.open) continue;
    if (branching_factor_ > 1 && is_greedy(*task.params)) note_siblings(work, row);
    work.tokens.push_back(task.draft.back());
    work.open = std::cmp_less(task.draft.size(), task.max_tokens);
  }
}

void ModelDrafter::note_siblings(Work& work, std::span<const float> row) const {
  const std::vector<TokenId>& draft = work.task->draft;
  const std::vector<SiblingGuess> beside =
      siblings_of(row, static_cast<int>(draft.size()) - 1, draft.back(), branching_factor_ - 1,
                  work.probabilities.emplace_back());
  work.siblings.insert(work.siblings.end(), beside.begin(), beside.end());
}

}  // namespace octavo
