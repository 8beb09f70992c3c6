// Prompt lookup decoding (n-gram speculation): what followed the last few tokens where they stood
// before.
#pragma once

#include "spec/drafter.h"

namespace octavo {

// Where the longest run of at most `longest` and at least `shortest` last tokens stood before, the
// latest place of equally long ones: the index of what followed. tokens.size(): nowhere.
size_t find_repeat(std::span<const TokenId> tokens, int shortest, int longest);

class NgramDrafter final : public Drafter {
 public:
  // REQUIRES: 1 <= shortest <= longest.
  NgramDrafter(int shortest, int longest) : shortest_(shortest), longest_(longest) {}

  std::string_view name() const override { return "ngram"; }
  void propose(std::span<DraftTask* const> tasks) override;
  void finish(const FinishedSequence&) override {}

 private:
  int shortest_, longest_;
};

}  // namespace octavo
