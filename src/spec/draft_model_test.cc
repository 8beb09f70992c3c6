#include "spec/draft_model.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "support/stub_model.h"

namespace octavo {
namespace {

using testing::hash_logits;
using testing::StubModel;

constexpr int kTokens = 280;

// What the stub itself says next, with all it is asked known.
TokenId next_of(const std::vector<TokenId>& history, const DraftTask& task) {
  std::vector<float> row(kTokens);
  hash_logits(history, row);
  const std::span<const TokenId> all = history;
  const auto prompt = static_cast<size_t>(task.prompt_tokens);
  return Sampler(kTokens)
      .sample(row, {.params = *task.params,
                    .seed = task.seed,
                    .choice = task.choice,
                    .history = {all.first(prompt), all.subspan(prompt)},
                    .eog = {}})
      ->token;
}

std::vector<TokenId> text(int first, int count) {
  std::vector<TokenId> out;
  for (int i = 0; i < count; ++i) out.push_back(TokenId{'a' + (first + i * 7) % 26});
  return out;
}

struct Rig {
  explicit Rig(int num_blocks = 64)
      : model(kTokens, 160, num_blocks, hash_logits, 32),
        drafter(*ModelDrafter::create(model, kTokens)) {}

  std::vector<TokenId> propose(int64_t id, const std::vector<TokenId>& tokens, int most) {
    DraftTask task = task_of(id, tokens, most);
    DraftTask* const tasks[] = {&task};
    drafter->propose(tasks);
    return task.draft;
  }
  DraftTask task_of(int64_t id, const std::vector<TokenId>& tokens, int most) {
    return {.id = SeqId{id},
            .tokens = tokens,
            .prompt_tokens = 3,
            .max_tokens = most,
            .params = &params,
            .seed = 9};
  }
  std::vector<TokenId> expected(const std::vector<TokenId>& tokens, int count) {
    const DraftTask task = task_of(0, tokens, count);
    std::vector<TokenId> all = tokens;
    for (int i = 0; i < count; ++i) all.push_back(next_of(all, task));
    return {all.end() - count, all.end()};
  }

  SamplingParams params = {.temperature = 0};
  StubModel model;
  std::unique_ptr<ModelDrafter> drafter;
};

TEST(ModelDrafter, SaysWhatTheModelWouldSay) {
  Rig rig;
  for (const double temperature : {0.0, 1.0}) {
    rig.params.temperature = temperature;
    const auto tokens = text(static_cast<int>(temperature), 50);  // two forwards of 32
    EXPECT_EQ(rig.propose(1, tokens, 5), rig.expected(tokens, 5));
  }
}

TEST(ModelDrafter, GoesOnFromWhatCameTrue) {
  Rig rig;
  auto tokens = text(0, 20);
  const auto first = rig.propose(1, tokens, 6);
  tokens.insert(tokens.end(), first.begin(), first.begin() + 2);
  tokens.push_back(TokenId{'z'});  // the third did not come true
  const int before = rig.model.forwards;
  EXPECT_EQ(rig.propose(1, tokens, 4), rig.expected(tokens, 4));
  EXPECT_EQ(rig.model.forwards, before + 4);
}

TEST(ModelDrafter, SeveralAtOnceTakeAsManyForwardsAsOne) {
  Rig rig;
  const auto a = text(0, 9), b = text(5, 12), c = text(11, 4);
  std::vector<DraftTask> tasks = {rig.task_of(1, a, 4), rig.task_of(2, b, 2), rig.task_of(3, c, 4)};
  DraftTask* const all[] = {&tasks[0], &tasks[1], &tasks[2]};
  rig.drafter->propose(all);
  EXPECT_EQ(tasks[0].draft, rig.expected(a, 4));
  EXPECT_EQ(tasks[1].draft, rig.expected(b, 2));
  EXPECT_EQ(tasks[2].draft, rig.expected(c, 4));
  EXPECT_EQ(rig.model.forwards, 4);
}

TEST(ModelDrafter, MoreSequencesThanBlocks) {
  Rig rig(6);  // of 16 tokens
  for (int round = 0; round < 3; ++round)
    for (int id = 0; id < 5; ++id) {
      const auto tokens = text(id, 30 + round);
      EXPECT_EQ(rig.propose(id, tokens, 3), rig.expected(tokens, 3));
    }
  EXPECT_EQ(rig.propose(9, text(0, 120), 3), std::vector<TokenId>());  // never fits
  rig.drafter->finish({.id = SeqId{9}, .prompt = {}, .answer = {}});
  EXPECT_EQ(rig.propose(1, text(1, 30), 3), rig.expected(text(1, 30), 3));
}

TEST(ModelDrafter, StopsAtTheEndOfItsContext) {
  Rig rig;
  EXPECT_EQ(rig.propose(1, text(0, 158), 6).size(), 3u);
}

}  // namespace
}  // namespace octavo
