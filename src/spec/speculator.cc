#include "spec/speculator.h"

#include <algorithm>
#include <utility>

namespace octavo {
namespace {

// Where drafts are not worth it, one of each sequence is tried again after so many steps, because
// it may have changed how well they do; later and later while it has not.
constexpr int kProbeAfter = 32, kProbeAfterAtMost = 512;
// A probe stands for all that were not made since the last one.
constexpr double kProbeWeight = 0.3;
constexpr double kOverallWeight = 0.05;
// If every step had drafts, nobody could tell what they cost: after the first there is one without,
// then after so many, then always after so many.
constexpr int kCompareSoon = 8, kCompareAfter = 32;
constexpr double kTimeWeight = 0.1;
// What takes less than this share of a step is tried in each one until it finds something.
constexpr double kCheap = 0.02;
// Drafts of a step below which their cost is not said to rise: looking for what is not there takes
// next to no time.
constexpr double kLeastDrafts = 0.25;

}  // namespace

Speculator::Speculator(const SpeculatorOptions& options,
                       std::vector<std::unique_ptr<Drafter>> drafters)
    : options_(options), drafters_(std::move(drafters)), probe_after_(kProbeAfter) {
  note_blocks();
}

Speculator::Record& Speculator::record_of(SeqId id) {
  return records_.try_emplace(id, Record{.acceptance = overall_}).first->second;
}

void Speculator::propose(std::span<DraftTask> tasks, const StepWork& work,
                         const StepTimeModel& step_model) {
  if (options_.adaptive) {
    if (is_for_comparison(work)) return;
    limit(tasks, work, step_model);
  }
  const double start_s = options_.clock ? options_.clock() : 0;
  for (const auto& drafter : drafters_) {
    open_.clear();
    for (DraftTask& task : tasks)
      if (task.draft.empty() && task.max_tokens > 0) open_.push_back(&task);
    if (!open_.empty()) drafter->propose(open_);
  }
  note_blocks();
  note_time(tasks, options_.clock ? options_.clock() - start_s : 0);
  if (options_.adaptive) cut(tasks, work, step_model);
  note_step(std::ranges::any_of(tasks, [](const DraftTask& task) { return !task.draft.empty(); }));
}

// Sooner again where there is much more or much less to do than there was.
bool Speculator::is_for_comparison(const StepWork& work) {
  if (work.num_seqs > 2 * compared_seqs_ || 2 * work.num_seqs < compared_seqs_) {
    if (compared_seqs_ > 0) compare_after_ = kCompareSoon;
    compared_seqs_ = work.num_seqs;
  }
  if (drafted_steps_ < compare_after_) return false;
  note_step(false);
  return true;
}

// One for which nobody had a guess serves as well as one that is meant for comparison.
void Speculator::note_step(bool has_drafts) {
  if (has_drafts) {
    ++drafted_steps_;
    return;
  }
  drafted_steps_ = 0;
  compare_after_ = compare_after_ < kCompareSoon ? kCompareSoon : kCompareAfter;
}

// Before drafts are made: a model that drafts takes time for each.
void Speculator::limit(std::span<DraftTask> tasks, const StepWork& work,
                       const StepTimeModel& step_model) {
  wishes_.clear();
  for (const DraftTask& task : tasks)
    wishes_.push_back({&record_of(task.id).acceptance, task.max_tokens});
  cut_drafts(wishes_, work, step_model, draft_token_s());
  for (size_t i = 0; i < tasks.size(); ++i) {
    record_of(tasks[i].id).probing = false;
    tasks[i].max_tokens = wishes_[i].depth;
  }
  probe(tasks);
}

// All in one step: it is slower for the first draft already.
void Speculator::probe(std::span<DraftTask> tasks) {
  const auto is_left_out = [](const DraftTask& task) { return task.max_tokens == 0; };
  if (std::ranges::none_of(tasks, is_left_out) || ++since_probe_ < probe_after_) return;
  for (DraftTask& task : tasks) {
    if (!is_left_out(task)) continue;
    task.max_tokens = 1;
    record_of(task.id).probing = true;
  }
}

// What is there may be too little for what a step with drafts costs more. Probes stay, and drafts
// that were drawn at random: their number can depend on which they are, and then so would their
// being verified, which changes a distribution.
void Speculator::cut(std::span<DraftTask> tasks, const StepWork& work,
                     const StepTimeModel& step_model) {
  const bool is_cheap = tried_s_ < kCheap * tried_ * step_model.predict(work);
  bool probes = false, found = false, drawn = false;
  wishes_.clear();
  widths_.clear();
  for (const DraftTask& task : tasks) {
    const Record& record = record_of(task.id);
    probes |= record.probing;
    found |= record.probing && !task.draft.empty();
    drawn |= !task.q.empty();
    widths_.push_back(widths({task.draft, task.parents}));
    wishes_.push_back(
        {&record.acceptance, static_cast<int>(widths_.back().size()), widths_.back()});
  }
  if (probes && (found || !is_cheap)) since_probe_ = 0;
  if (found || drawn) return;
  cut_drafts(wishes_, work, step_model, 0);
  for (size_t i = 0; i < tasks.size(); ++i)
    cut_to_depth(tasks[i].draft, tasks[i].parents, wishes_[i].depth);
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
    all_known &= std::exchange(record_of(task.id).tried, true);
  }
  if (!any_tried || !all_known) return;
  tried_s_ += kTimeWeight * (seconds - tried_s_);
  tried_drafts_ += kTimeWeight * (static_cast<double>(made) - tried_drafts_);
  tried_ += kTimeWeight * (1 - tried_);
}

void Speculator::note_blocks() {
  for (const auto& drafter : drafters_)
    if (const DraftBlocks blocks = drafter->blocks(); blocks.all > 0) stats_.blocks = blocks;
}

double Speculator::draft_token_s() const {
  return tried_ > 0 ? tried_s_ / std::max(tried_drafts_, kLeastDrafts * tried_) : 0;
}

void Speculator::verified(SeqId id, int num_drafts, int num_accepted, bool one_failed) {
  ++stats_.num_drafts;
  stats_.num_draft_tokens += num_drafts;
  stats_.num_accepted_tokens += num_accepted;
  for (int i = 0; i < num_accepted; ++i)
    ++stats_.num_accepted_tokens_per_pos[static_cast<size_t>(i)];
  Record& record = record_of(id);
  const int num_tested = num_accepted + one_failed;
  if (record.probing)
    record.acceptance.observe(num_tested, num_accepted, kProbeWeight);
  else
    record.acceptance.observe(num_tested, num_accepted);
  overall_.observe(num_tested, num_accepted, kOverallWeight);
  if (record.probing)
    probe_after_ = num_accepted > 0 ? kProbeAfter : std::min(2 * probe_after_, kProbeAfterAtMost);
}

void Speculator::finish(const FinishedSequence& sequence) {
  for (const auto& drafter : drafters_) drafter->finish(sequence);
  records_.erase(sequence.id);
  note_blocks();
}

}  // namespace octavo
