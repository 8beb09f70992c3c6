#include "spec/speculator.h"

#include <algorithm>

namespace octavo {
namespace {

// A sequence whose drafts are not worth it tries one again after so many steps: one row in 32
// costs little, and what it says may have changed.
constexpr int kRetryAfter = 32;
constexpr double kTimeWeight = 0.1;

}  // namespace

Speculator::Speculator(const SpeculatorOptions& options,
                       std::vector<std::unique_ptr<Drafter>> drafters)
    : options_(options), drafters_(std::move(drafters)) {}

void Speculator::propose(std::span<DraftTask> tasks, const StepWork& work,
                         const StepTimeModel& step_model) {
  const double start_s = options_.clock ? options_.clock() : 0;
  for (const auto& drafter : drafters_) {
    open_.clear();
    for (DraftTask& task : tasks)
      if (task.draft.empty()) open_.push_back(&task);
    if (!open_.empty()) drafter->propose(open_);
  }
  size_t made = 0;
  for (const DraftTask& task : tasks) made += task.draft.size();
  if (made > 0 && options_.clock) {
    const double spent_s = options_.clock() - start_s;
    stats_.draft_s += spent_s;
    draft_token_s_ += kTimeWeight * (spent_s / static_cast<double>(made) - draft_token_s_);
  }
  if (made > 0 && options_.adaptive) cut(tasks, work, step_model);
}

void Speculator::cut(std::span<DraftTask> tasks, const StepWork& work,
                     const StepTimeModel& step_model) {
  wishes_.clear();
  for (const DraftTask& task : tasks)
    wishes_.push_back({&records_[task.id].acceptance, static_cast<int>(task.draft.size())});
  cut_drafts(wishes_, work, step_model, draft_token_s_);
  for (size_t i = 0; i < tasks.size(); ++i) {
    if (tasks[i].draft.empty()) continue;
    Record& record = records_[tasks[i].id];
    int kept = wishes_[i].num_drafts;
    record.skipped = kept > 0 ? 0 : record.skipped + 1;
    if (record.skipped >= kRetryAfter) kept = 1, record.skipped = 0;
    tasks[i].draft.resize(static_cast<size_t>(kept));
  }
}

void Speculator::verified(SeqId id, int num_drafts, int num_accepted) {
  ++stats_.num_drafts;
  stats_.num_draft_tokens += num_drafts;
  stats_.num_accepted_tokens += num_accepted;
  for (int i = 0; i < num_accepted; ++i)
    ++stats_.num_accepted_tokens_per_pos[static_cast<size_t>(i)];
  records_[id].acceptance.observe(num_drafts, num_accepted);
}

void Speculator::finish(const FinishedSequence& sequence) {
  for (const auto& drafter : drafters_) drafter->finish(sequence);
  records_.erase(sequence.id);
}

}  // namespace octavo
