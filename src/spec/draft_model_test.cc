#include "spec/draft_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

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
  explicit Rig(int num_blocks = 64, bool prefix_caching = true, int context = 160)
      : model(kTokens, context, num_blocks, hash_logits, 32),
        drafter(*ModelDrafter::create(model, kTokens, {.prefix_caching = prefix_caching})) {}

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
  // All at once; each has the guess that it should, or none.
  int propose_all(const std::vector<std::vector<TokenId>>& texts, int most) {
    std::vector<DraftTask> tasks;
    std::vector<DraftTask*> asked;
    for (size_t i = 0; i < texts.size(); ++i)
      tasks.push_back(task_of(static_cast<int64_t>(i), texts[i], most));
    for (DraftTask& task : tasks) asked.push_back(&task);
    drafter->propose(asked);
    int guessed = 0;
    for (size_t i = 0; i < texts.size(); ++i) {
      if (tasks[i].draft.empty()) continue;
      ++guessed;
      EXPECT_EQ(tasks[i].draft, expected(texts[i], most));
    }
    return guessed;
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
  EXPECT_EQ(rig.propose(1, text(0, 161), 6).size(), 0u);
}

// `count` texts with nothing in common, each of so many tokens.
std::vector<std::vector<TokenId>> texts(int count, int tokens) {
  std::vector<std::vector<TokenId>> out;
  for (int i = 0; i < count; ++i) out.push_back(text(i, tokens));
  return out;
}

TEST(ModelDrafter, PromptsAreReadOnceByAsManyAsHaveRoom) {
  constexpr int kSeqs = 16, kPrompt = 1000, kRounds = 20;
  for (const bool prefix_caching : {true, false}) {
    Rig rig(kSeqs * 64, prefix_caching, 1024);
    auto all = texts(kSeqs, kPrompt);
    for (int round = 0; round < kRounds; ++round) {
      EXPECT_EQ(rig.propose_all(all, 2), kSeqs);
      for (auto& one : all) one.push_back(TokenId{'z'});
    }
    // The prompt and a guess; then a token that was not guessed, and a guess.
    EXPECT_EQ(rig.model.num_tokens, kSeqs * (kPrompt + 1 + 2 * (kRounds - 1)));
  }
}

// Those that have room keep it as they grow, and the rest does not take turns with them.
TEST(ModelDrafter, WithoutRoomForAllTheFirstOnesGuess) {
  constexpr int kRounds = 40;
  Rig rig(26);  // of 16 tokens
  auto all = texts(8, 75);
  int guessed = 8;
  for (int round = 0; round < kRounds; ++round) {
    const int now = rig.propose_all(all, 2);
    EXPECT_LE(now, guessed);
    guessed = now;
    for (auto& one : all) one.push_back(TokenId{'z'});
  }
  EXPECT_EQ(guessed, 3);  // of 8 blocks
  EXPECT_LE(rig.model.num_tokens, 5 * 76 + 5 * 2 * kRounds);
}

TEST(ModelDrafter, AnswersToOnePromptShareIt) {
  for (const bool prefix_caching : {true, false}) {
    Rig rig(64, prefix_caching);
    std::vector<std::vector<TokenId>> forks(6, text(0, 100));
    for (int i = 0; i < 6; ++i) forks[static_cast<size_t>(i)].push_back(TokenId{'A' + i});
    EXPECT_EQ(rig.propose_all(forks, 3), 6);
    // Six full blocks once; what else there is of the prompt, the answer and the guess each time.
    EXPECT_EQ(rig.model.num_tokens, prefix_caching ? 96 + 6 * (5 + 2) : 6 * (101 + 2));
  }
}

TEST(ModelDrafter, TheNextTurnGoesOnFromTheLast) {
  Rig rig;
  auto tokens = text(0, 70);
  const auto guess = rig.propose(1, tokens, 4);
  tokens.insert(tokens.end(), guess.begin(), guess.begin() + 2);
  rig.drafter->finish({.id = SeqId{1},
                       .prompt = std::span(tokens).first(60),
                       .answer = std::span(tokens).subspan(60)});
  tokens.push_back(TokenId{'q'});
  const auto before = rig.model.num_tokens;
  EXPECT_EQ(rig.propose(2, tokens, 1), rig.expected(tokens, 1));
  EXPECT_EQ(rig.model.num_tokens, before + 1);
}

// Sequences come, grow, stand still and go, over caches that are too small for them.
void check_company(uint32_t seed, bool prefix_caching) {
  std::mt19937 random(seed);
  const auto below = [&](size_t n) { return random() % static_cast<uint32_t>(n); };
  Rig rig(14 + static_cast<int>(below(40)), prefix_caching);
  const size_t prompts[] = {70, 33, 48};
  struct Living {
    int64_t id;
    PrefixKey key;
    std::vector<TokenId> tokens;
  };
  int64_t next_id = 0;
  const auto born = [&] {
    const auto which = below(3);
    return Living{next_id++,
                  {.salt = below(4) == 0 ? "a" : "", .adapter = ""},
                  text(static_cast<int>(which), static_cast<int>(prompts[which]))};
  };
  std::vector<Living> living;
  for (int i = 0; i < 8; ++i) living.push_back(born());
  int guessed = 0;
  for (int round = 0; round < 60; ++round) {
    std::vector<DraftTask> tasks;
    std::vector<Living*> asked;
    for (Living& one : living)
      if (below(4) > 0) {
        tasks.push_back(rig.task_of(one.id, one.tokens, 1 + static_cast<int>(below(5))));
        tasks.back().key = one.key;
        asked.push_back(&one);
      }
    std::vector<DraftTask*> pointers;
    for (DraftTask& task : tasks) pointers.push_back(&task);
    rig.drafter->propose(pointers);
    for (size_t i = 0; i < tasks.size(); ++i) {
      const auto& draft = tasks[i].draft;
      guessed += !draft.empty();
      ASSERT_EQ(draft, rig.expected(asked[i]->tokens, static_cast<int>(draft.size())));
    }
    for (size_t i = 0; i < tasks.size(); ++i) {
      auto& tokens = asked[i]->tokens;
      const auto kept = static_cast<std::ptrdiff_t>(below(tasks[i].draft.size() + 1));
      const std::vector<TokenId> draft = tasks[i].draft;
      tokens.insert(tokens.end(), draft.begin(), draft.begin() + kept);
      tokens.push_back(TokenId{'t' + static_cast<int>(below(3))});
      if (tokens.size() < 150 && below(12) > 0) continue;
      rig.drafter->finish(
          {.id = SeqId{asked[i]->id}, .prompt = {}, .answer = tokens, .key = asked[i]->key});
      *asked[i] = born();
    }
  }
  EXPECT_GT(guessed, 60);
  for (const Living& one : living)
    rig.drafter->finish({.id = SeqId{one.id}, .prompt = {}, .answer = one.tokens, .key = one.key});
  const DraftBlocks blocks = rig.drafter->blocks();
  EXPECT_EQ(blocks.free + blocks.cached, blocks.all);
  EXPECT_EQ(blocks.cached > 0, prefix_caching);
}

TEST(ModelDrafter, GuessesAreItsOwnInAnyCompany) {
  for (uint32_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE(seed);
    check_company(seed, seed % 3 != 0);
    if (HasFatalFailure()) return;
  }
}

TEST(ModelDrafter, NothingIsSharedBetweenKeys) {
  Rig rig;
  const auto tokens = text(0, 70);
  const PrefixKey keys[] = {{.salt = "a", .adapter = ""}, {.salt = "", .adapter = "a"}, {}};
  for (int round = 0; round < 2; ++round)
    for (int i = 0; i < 3; ++i) {
      DraftTask task = rig.task_of(10 * round + i, tokens, 1);
      task.key = keys[i];
      DraftTask* const tasks[] = {&task};
      const auto before = rig.model.num_tokens;
      rig.drafter->propose(tasks);
      EXPECT_EQ(rig.model.num_tokens - before, round == 0 ? 70 : 6) << round << i;
    }
}

}  // namespace
}  // namespace octavo
