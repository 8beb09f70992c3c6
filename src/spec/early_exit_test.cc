#include "spec/early_exit.h"

#include <gtest/gtest.h>

#include <deque>

#include "sampling/logits.h"
#include "support/stub_model.h"

namespace octavo {
namespace {

using testing::hash_logits;
using testing::StubModel;

constexpr int kTokens = 280;

// A sequence whose tokens but the last are in the model's blocks.
struct Rig {
  explicit Rig(EarlyExitOptions options = {.skipped_layers = {1}, .confidence_threshold = 0})
      : model(kTokens, 160, 64, hash_logits, 32),
        drafter(std::move(*EarlyExitDrafter::create(model, kTokens, std::move(options)))) {}

  DraftTask task_of(int first_block, const std::vector<TokenId>& tokens, int most) {
    std::vector<BlockId>& table = tables.emplace_back();
    for (int i = 0; i < 10; ++i) table.push_back(BlockId{first_block + i});
    const BatchSequence known{0, static_cast<int>(tokens.size()) - 1, 0, table};
    model.forward({.tokens = std::span(tokens).first(tokens.size() - 1), .sequences = {&known, 1}});
    return {.id = SeqId{first_block},
            .tokens = tokens,
            .prompt_tokens = 3,
            .max_tokens = most,
            .params = &params,
            .seed = 9,
            .lend_blocks = [blocks = std::span<const BlockId>(table)](int) { return blocks; }};
  }

  SamplingParams params = {.temperature = 0};
  StubModel model;
  std::deque<std::vector<BlockId>> tables;
  std::unique_ptr<EarlyExitDrafter> drafter;
};

std::vector<TokenId> text(int first, int count) {
  std::vector<TokenId> out;
  for (int i = 0; i < count; ++i) out.push_back(TokenId{'a' + (first + i * 7) % 26});
  return out;
}

// The stub says 'A' after every third token when it skips layers.
TokenId next_of(const std::vector<TokenId>& history) {
  std::vector<float> row(kTokens);
  hash_logits(history, row);
  if (raw(history.back()) % 3 == 0) return TokenId{'A'};
  return argmax(row);
}

std::vector<TokenId> expected(std::vector<TokenId> tokens, int count) {
  for (int i = 0; i < count; ++i) tokens.push_back(next_of(tokens));
  return {tokens.end() - count, tokens.end()};
}

TEST(EarlyExit, SaysWhatThePartialModelSaysAfterTheCacheOfTheWholeOne) {
  Rig rig;
  const auto tokens = text(0, 20);
  DraftTask task = rig.task_of(0, tokens, 6);
  DraftTask* const tasks[] = {&task};
  const int before = rig.model.forwards;
  rig.drafter->propose(tasks);
  EXPECT_EQ(task.draft, expected(tokens, 6));
  EXPECT_EQ(rig.model.forwards, before + 6);
}

TEST(EarlyExit, SeveralDraftTogetherEachAsFarAsItGoes) {
  Rig rig;
  const auto a = text(0, 9), b = text(5, 12), c = text(11, 30);
  std::vector<DraftTask> tasks = {rig.task_of(0, a, 4), rig.task_of(10, b, 2),
                                  rig.task_of(20, c, 5), rig.task_of(30, c, 5)};
  tasks[3].lend_blocks = [](int) { return std::span<const BlockId>(); };
  DraftTask* const all[] = {&tasks[0], &tasks[1], &tasks[2], &tasks[3]};
  const int before = rig.model.forwards;
  rig.drafter->propose(all);
  EXPECT_EQ(tasks[0].draft, expected(a, 4));
  EXPECT_EQ(tasks[1].draft, expected(b, 2));
  EXPECT_EQ(tasks[2].draft, expected(c, 5));
  EXPECT_TRUE(tasks[3].draft.empty());  // nothing was lent
  EXPECT_EQ(rig.model.forwards, before + 5);
}

TEST(EarlyExit, StopsWhereItIsUnsure) {
  // Nothing but 'A' is ever as likely as this.
  Rig rig({.skipped_layers = {0, 3}, .confidence_threshold = 0.99999});
  for (const char last : {'a', 'b', 'c'}) {
    auto tokens = text(0, 20);
    tokens.back() = TokenId{last};
    DraftTask task = rig.task_of(0, tokens, 3);
    DraftTask* const tasks[] = {&task};
    rig.drafter->propose(tasks);
    EXPECT_EQ(task.draft.empty(), last % 3 != 0) << last;
  }
}

TEST(EarlyExit, LayersThatCannotBeSkippedAreRefused) {
  StubModel model(kTokens, 160, 8, hash_logits);
  const auto refused = [&](std::vector<int> layers) {
    const auto made =
        EarlyExitDrafter::create(model, kTokens, {.skipped_layers = std::move(layers)});
    return made ? std::string() : made.error().message;
  };
  EXPECT_EQ(refused({}), "");
  EXPECT_EQ(refused({3, 1}), "");
  EXPECT_NE(refused({4}).find("layers 0 to 3"), std::string::npos);
  EXPECT_NE(refused({-1}).find("layer -1"), std::string::npos);
  EXPECT_NE(refused({2, 2}).find("twice"), std::string::npos);
  EXPECT_NE(refused({0, 1, 2, 3}).find("at least one"), std::string::npos);
  EXPECT_FALSE(check_skipped_layers(std::vector<int>{}, 0));
}

}  // namespace
}  // namespace octavo
