#include "spec/speculator.h"

#include <algorithm>
#include <utility>

namespace octavo {
namespace {

// A sequence whose drafts are not worth it tries one again after so many steps: one row in 32
// costs little, and how well it does may have changed.
constexpr int kRetryAfter = 32;
constexpr double kTimeWeight = 0.1;
// What takes less than this share of a step is tried in each one until it finds something.
constexpr double kCheap = 0.02;
// Drafts of a step below which their cost is not said to rise: looking for what is not there takes
// next to no time.
constexpr double kLeastDrafts = 0.25;

}  // namespace

Speculator::Speculator(const SpeculatorOptions& options,
                       std::vector<std::unique_ptr<Drafter>> drafters)
    : options_(options), drafters_(std::move(drafters)) {}

void Speculator::propose(std::span<DraftTask> tasks, const StepWork& work,
                         const StepTimeModel& step_model) {
  if (options_.adaptive) limit(tasks, work, step_model);
  const double start_s = options_.clock ? options_.clock() : 0;
  for (const auto& drafter : drafters_) {
    open_.clear();
    for (DraftTask& task : tasks)
      if (task.draft.empty() && task.max_tokens > 0) open_.push_back(&task);
    if (!open_.empty()) drafter->propose(open_);
  }
  note_time(tasks, options_.clock ? options_.clock() - start_s : 0);
  const bool is_cheap = tried_s_ < kCheap * step_model.predict(work);
  for (const DraftTask& task : tasks)
    if (!task.draft.empty() || (task.max_tokens > 0 && !is_cheap)) records_[task.id].skipped = 0;
}

// Before drafts are made: a model that drafts takes time for each.
void Speculator::limit(std::span<DraftTask> tasks, const StepWork& work,
                       const StepTimeModel& step_model) {
  wishes_.clear();
  for (const DraftTask& task : tasks)
    wishes_.push_back({&records_[task.id].acceptance, task.max_tokens});
  cut_drafts(wishes_, work, step_model, draft_token_s());
  for (size_t i = 0; i < tasks.size(); ++i) {
    Record& record = records_[tasks[i].id];
    tasks[i].max_tokens = wishes_[i].num_drafts;
    if (tasks[i].max_tokens == 0 && ++record.skipped >= kRetryAfter) tasks[i].max_tokens = 1;
  }
}

// Not of steps with a new sequence, whose prompt may have to be read first. Time that no draft came
// of counts too: a model that is never sure enough costs as much as one that is.
void Speculator::note_time(std::span<const DraftTask> tasks, double seconds) {
  stats_.draft_s += seconds;
  size_t made = 0;
  bool all_known = true, any_tried = false;
  for (const DraftTask& task : tasks) {
    if (task.max_tokens == 0) continue;
    any_tried = true;
    made += task.draft.size();
    all_known &= std::exchange(records_[task.id].tried, true);
  }
  if (!any_tried || !all_known) return;
  tried_s_ += kTimeWeight * (seconds - tried_s_);
  tried_drafts_ += kTimeWeight * (static_cast<double>(made) - tried_drafts_);
}

double Speculator::draft_token_s() const {
  return tried_s_ / std::max(tried_drafts_, kLeastDrafts);
}

void Speculator::verified(SeqId id, int num_drafts, int num_accepted, bool one_failed) {
  ++stats_.num_drafts;
  stats_.num_draft_tokens += num_drafts;
  stats_.num_accepted_tokens += num_accepted;
  for (int i = 0; i < num_accepted; ++i)
    ++stats_.num_accepted_tokens_per_pos[static_cast<size_t>(i)];
  records_[id].acceptance.observe(num_accepted + one_failed, num_accepted);
}

void Speculator::finish(const FinishedSequence& sequence) {
  for (const auto& drafter : drafters_) drafter->finish(sequence);
  records_.erase(sequence.id);
}

}  // namespace octavo
