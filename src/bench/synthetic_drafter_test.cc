#include "bench/synthetic_drafter.h"

#include <gtest/gtest.h>

namespace octavo {
namespace {

std::vector<TokenId> ids(std::initializer_list<int> values) {
  std::vector<TokenId> out;
  for (const int value : values) out.push_back(TokenId{value});
  return out;
}

std::vector<TokenId> count_up(int first, int count) {
  std::vector<TokenId> out;
  for (int i = 0; i < count; ++i) out.push_back(TokenId{first + i});
  return out;
}

// What is asked of the model that guesses cost.
class Recorder final : public Drafter {
 public:
  std::string_view name() const override { return "recorder"; }
  void propose(std::span<DraftTask* const> tasks) override {
    for (DraftTask* task : tasks) {
      EXPECT_EQ(task->max_tokens, 1);
      EXPECT_TRUE(task->draft.empty());
      seen.push_back({task->tokens.begin(), task->tokens.end()});
    }
  }
  void finish(const FinishedSequence&) override { ++num_finished; }

  std::vector<std::vector<TokenId>> seen;
  int num_finished = 0;
};

DraftTask task_of(const std::vector<TokenId>& tokens, int prompt_tokens, int max_tokens) {
  return {
      .id = SeqId{1}, .tokens = tokens, .prompt_tokens = prompt_tokens, .max_tokens = max_tokens};
}

TEST(SyntheticDrafter, GuessesTheKnownAnswerToItsEnd) {
  SyntheticDrafter drafter({{ids({7, 8}), count_up(100, 6)}}, 1, nullptr);
  const auto tokens = ids({7, 8, 100, 101});
  DraftTask task = task_of(tokens, 2, 3);
  DraftTask* one = &task;
  drafter.propose({&one, 1});
  EXPECT_EQ(task.draft, ids({102, 103, 104}));
  task.draft.clear();
  task.max_tokens = 9;
  drafter.propose({&one, 1});
  EXPECT_EQ(task.draft, ids({102, 103, 104, 105}));
}

TEST(SyntheticDrafter, HasNoGuessForAnUnknownPrompt) {
  SyntheticDrafter drafter({{ids({7, 8}), count_up(100, 6)}}, 1, nullptr);
  const auto tokens = ids({7, 9, 100});
  DraftTask task = task_of(tokens, 2, 3);
  DraftTask* one = &task;
  drafter.propose({&one, 1});
  EXPECT_TRUE(task.draft.empty());
}

TEST(SyntheticDrafter, IsRightAsOftenAsWanted) {
  constexpr int kTokens = 20000;
  const auto answer = count_up(100, kTokens);
  for (const double wanted : {0.0, 0.6, 0.8, 1.0}) {
    SyntheticDrafter drafter({{ids({7}), answer}}, wanted, nullptr);
    const auto tokens = ids({7});
    DraftTask task = task_of(tokens, 1, kTokens);
    DraftTask* one = &task;
    drafter.propose({&one, 1});
    ASSERT_EQ(task.draft.size(), answer.size());
    int right = 0;
    for (size_t i = 0; i < answer.size(); ++i) right += task.draft[i] == answer[i];
    EXPECT_NEAR(right / double{kTokens}, wanted, 0.02);
  }
}

TEST(SyntheticDrafter, AsksTheModelForEveryGuessAfterThoseBefore) {
  auto model = std::make_unique<Recorder>();
  Recorder& recorder = *model;
  SyntheticDrafter drafter({{ids({7}), count_up(100, 3)}, {ids({8}), count_up(200, 9)}}, 1,
                           std::move(model));
  const auto first = ids({7, 100}), second = ids({8});
  DraftTask tasks[] = {task_of(first, 1, 5), task_of(second, 1, 3)};
  DraftTask* both[] = {&tasks[0], &tasks[1]};
  drafter.propose(both);
  EXPECT_EQ(tasks[0].draft, ids({101, 102}));
  EXPECT_EQ(tasks[1].draft, ids({200, 201, 202}));
  EXPECT_EQ(recorder.seen, (std::vector{ids({7, 100}), ids({8}), ids({7, 100, 101}), ids({8, 200}),
                                        ids({8, 200, 201})}));
  drafter.finish({.id = SeqId{1}, .prompt = {}, .answer = {}});
  EXPECT_EQ(recorder.num_finished, 1);
}

}  // namespace
}  // namespace octavo
