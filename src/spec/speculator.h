// Which sequences of a step get drafts, from whom and how many; and what became of them.
//
// Owned by the engine's thread.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "spec/draft_length.h"
#include "spec/drafter.h"

namespace octavo {

struct SpeculatorOptions {
  int num_speculative_tokens = 5;      // of one sequence in one step; 1 to kMaxDraftTokens
  bool adaptive = true;                // false: always as many as there are
  std::function<double()> clock = {};  // seconds; empty: the time of drafting is not counted
};

// Counts since the start, with vLLM's names.
struct SpeculatorStats {
  int64_t num_drafts = 0;  // guesses that were verified
  int64_t num_draft_tokens = 0;
  int64_t num_accepted_tokens = 0;
  std::array<int64_t, kMaxDraftTokens> num_accepted_tokens_per_pos{};
  double draft_s = 0;       // spent on making guesses
  DraftBlocks blocks = {};  // at present, of the drafter that has some
};

class Speculator {
 public:
  // The first drafter that has a guess for a sequence makes it.
  Speculator(const SpeculatorOptions& options, std::vector<std::unique_ptr<Drafter>> drafters);

  int num_speculative_tokens() const { return options_.num_speculative_tokens; }

  // Fills the drafts of the tasks, as far as they are worth making and verifying in a step that is
  // otherwise `work`.
  void propose(std::span<DraftTask> tasks, const StepWork& work, const StepTimeModel& step_model);

  // After a step: of the drafts of a sequence, `num_accepted` came true, one after the other; after
  // the last of them there was another draft, which did not, or there was none.
  void verified(SeqId id, int num_drafts, int num_accepted, bool one_failed);

  // There will be no more tasks of this sequence.
  void finish(const FinishedSequence& sequence);

  const SpeculatorStats& stats() const { return stats_; }

 private:
  struct Record {
    AcceptanceRate acceptance;
    bool tried = false;    // some were asked for before
    bool probing = false;  // its draft is not expected to be worth it
  };

  Record& record_of(SeqId id);
  bool is_for_comparison(const StepWork& work);
  void note_step(bool has_drafts);
  void limit(std::span<DraftTask> tasks, const StepWork& work, const StepTimeModel& step_model);
  void probe(std::span<DraftTask> tasks);
  void cut(std::span<DraftTask> tasks, const StepWork& work, const StepTimeModel& step_model);
  void note_time(std::span<const DraftTask> tasks, double seconds);
  double draft_token_s() const;
  void note_blocks();

  SpeculatorOptions options_;
  std::vector<std::unique_ptr<Drafter>> drafters_;
  std::unordered_map<SeqId, Record> records_;
  AcceptanceRate overall_;             // what is expected of new sequences
  int since_probe_ = 0, probe_after_;  // steps
  SpeculatorStats stats_;
  // Moving means, of the steps in which drafts were tried: seconds, drafts that came of it, and 1.
  double tried_s_ = 0, tried_drafts_ = 0, tried_ = 0;
  // Steps with drafts since the last one without, how many there may be, and sequences then.
  int drafted_steps_ = 0, compare_after_ = 1, compared_seqs_ = 0;
  std::vector<DraftTask*> open_;
  std::vector<DraftWish> wishes_;
  std::vector<std::vector<int>> widths_;  // that wishes look at
};

}  // namespace octavo
