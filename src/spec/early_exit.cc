#include "spec/early_exit.h"

#include <fmt/format.h>

#include <algorithm>

#include "sampling/logits.h"
#include "spec/extend_guess.h"

namespace octavo {

Result<void> check_skipped_layers(std::span<const int> layers, int num_layers) {
  if (num_layers == 0)
    return fail(ErrorCode::unsupported, "the model cannot skip layers: early_exit is not for it");
  for (size_t i = 0; i < layers.size(); ++i) {
    if (layers[i] < 0 || layers[i] >= num_layers)
      return fail(ErrorCode::invalid_argument,
                  fmt::format("skip_layers names layer {}, but the model has layers 0 to {}",
                              layers[i], num_layers - 1));
    if (i > 0 && layers[i] <= layers[i - 1])
      return fail(ErrorCode::invalid_argument,
                  fmt::format("skip_layers names layer {} twice", layers[i]));
  }
  if (std::cmp_equal(layers.size(), num_layers))
    return fail(ErrorCode::invalid_argument,
                fmt::format("skip_layers names all {} layers; leave at least one", num_layers));
  return {};
}

Result<std::unique_ptr<EarlyExitDrafter>> EarlyExitDrafter::create(Model& model, int num_tokens,
                                                                   EarlyExitOptions options,
                                                                   RejectionSampleMethod method) {
  const ModelLimits& limits = model.limits();
  std::ranges::sort(options.skipped_layers);
  OCTAVO_CHECK_OK(check_skipped_layers(options.skipped_layers, limits.num_layers));
  OCTAVO_TRY(AlignedBuffer logits,
             AlignedBuffer::allocate(static_cast<size_t>(limits.max_logits_rows) *
                                         static_cast<size_t>(limits.logits_stride) * sizeof(float),
                                     AlignedBuffer::Use::sparse));
  return std::unique_ptr<EarlyExitDrafter>(
      new EarlyExitDrafter(model, std::min(num_tokens, limits.vocab_size), std::move(options),
                           method, std::move(logits)));
}

EarlyExitDrafter::EarlyExitDrafter(Model& model, int num_tokens, EarlyExitOptions options,
                                   RejectionSampleMethod method, AlignedBuffer logits)
    : model_(model),
      num_tokens_(num_tokens),
      options_(std::move(options)),
      method_(method),
      logits_(std::move(logits)),
      sampler_(num_tokens) {}

void EarlyExitDrafter::propose(std::span<DraftTask* const> tasks) {
  work_.clear();
  for (DraftTask* task : tasks) {
    if (!task->lend_blocks) continue;
    const std::span<const BlockId> blocks = task->lend_blocks(task->max_tokens);
    if (blocks.empty()) continue;
    work_.push_back({task, blocks, {task->tokens.begin(), task->tokens.end()}});
  }
  for (bool some = true; some;) {
    some = false;
    for (size_t first = 0; first < work_.size();
         first += static_cast<size_t>(model_.limits().max_num_batched_tokens))
      some |= compute(first);
  }
}

// One forward: the last token of each open sequence, from the given one on, as far as the batch
// reaches. False: nobody is open.
bool EarlyExitDrafter::compute(size_t first) {
  tokens_.clear();
  sequences_.clear();
  computed_.clear();
  rows_.clear();
  const size_t most = static_cast<size_t>(model_.limits().max_num_batched_tokens);
  for (Work& work : std::span(work_).subspan(first, std::min(most, work_.size() - first))) {
    if (!work.open) continue;
    const DraftTask& task = *work.task;
    const auto row = static_cast<int>(tokens_.size());
    sequences_.push_back({.first_row = row,
                          .num_tokens = 1,
                          .first_position = static_cast<int>(work.tokens.size()) - 1,
                          .block_table = work.blocks,
                          .adapter = task.adapter});
    tokens_.push_back(work.tokens.back());
    computed_.push_back(&work);
    rows_.push_back(row);
  }
  if (tokens_.empty()) return false;
  model_.forward({.tokens = tokens_,
                  .sequences = sequences_,
                  .logits_rows = rows_,
                  .skipped_layers = options_.skipped_layers});
  const auto at_once = static_cast<size_t>(model_.limits().max_logits_rows);
  for (size_t i = 0; i < rows_.size(); i += at_once)
    draw(std::span(rows_).subspan(i, std::min(at_once, rows_.size() - i)));
  return true;
}

void EarlyExitDrafter::draw(std::span<const int> rows) {
  auto* const logits = reinterpret_cast<float*>(logits_.data());
  const auto stride = static_cast<size_t>(model_.limits().logits_stride);
  model_.logits(rows, logits);
  for (size_t i = 0; i < rows.size(); ++i) {
    Work& work = *computed_[static_cast<size_t>(rows[i])];
    work.open =
        draw(work, std::span<const float>(logits + i * stride, static_cast<size_t>(num_tokens_)));
  }
}

// Whether it goes on. No guess is better than one that is hardly a guess.
bool EarlyExitDrafter::draw(Work& work, std::span<const float> logits) {
  DraftTask& task = *work.task;
  const bool sure = top_probability(logits) >= options_.confidence_threshold;
  if (!sure || !extend_guess(task, work.tokens, logits, method_, sampler_)) return false;
  work.tokens.push_back(task.draft.back());
  return std::cmp_less(task.draft.size(), task.max_tokens);
}

}  // namespace octavo
