// Tokens are drawn with the same probabilities whoever guesses, however much, and whatever the
// request's settings: whole answers of engines over a stub against the exact probabilities of their
// parts, worked out step by step.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/rng.h"
#include "spec/ngram.h"
#include "spec/suffix.h"
#include "support/chi_square.h"
#include "support/guess_rig.h"
#include "support/paths.h"
#include "support/tiny_tokenizer.h"

namespace octavo {
namespace {

using testing::expect_follows;
using testing::GuessRig;
using testing::StubDrafter;
using testing::StubModel;

constexpr int kFirst = 3, kTokens = 9;  // <unk>, <bos> and <eos> are never said
constexpr int kLength = 6;              // of an answer
constexpr int kAnswers = 16'700;        // 100,200 draws
constexpr int kChoices = 100;           // of a request
constexpr int kPart = 3;                // tokens whose joint probability is looked at

TokenizerSpec six_letters() {
  return testing::tiny_piece_spec({"a", "b", "c", "d", "e", "f"}, false);
}

// What comes next depends on the last two tokens. `salt` tells models apart, as far as `share`
// says.
StubModel::Logits says(uint64_t salt, double share) {
  return [=](const std::vector<TokenId>& history, std::span<float> row) {
    const auto last = static_cast<uint32_t>(raw(history.back()));
    const auto before = static_cast<uint32_t>(history.size() < 2 ? 0 : raw(history.end()[-2]));
    for (uint32_t id = 0; id < kTokens; ++id) {
      const double own = uniform(salt, last * 16 + before, id), common = uniform(0, last, id);
      row[id] = id < kFirst ? -std::numeric_limits<float>::infinity()
                            : static_cast<float>(4 * (share * own + (1 - share) * common));
    }
  };
}

const StubModel::Logits& target() {
  static const StubModel::Logits model = says(1, 0.5);
  return model;
}
const StubModel::Logits& draft() {
  static const StubModel::Logits model = says(2, 0.7);
  return model;
}

// Every token is in it, so that there is always something to repeat.
std::vector<TokenId> prompt() {
  std::vector<TokenId> ids;
  for (const int id : {3, 4, 5, 3, 6, 7, 8, 4, 6, 3, 8}) ids.push_back(TokenId{id});
  return ids;
}

struct Filter {
  const char* name;
  SamplingParams params;
  TokenMask mask = {};
};

// Not the same token again, and after the first two of an answer no 'f'.
void bar(std::span<const TokenId> answer, std::span<uint64_t> allowed) {
  if (!answer.empty()) allowed[0] &= ~(uint64_t{1} << raw(answer.back()));
  if (answer.size() > 2) allowed[0] &= ~(uint64_t{1} << 8);
}

const std::vector<Filter>& filters() {
  static const std::vector<Filter> all = {
      {"none", {}},
      {"temperature", {.temperature = 0.6}},
      {"top_k", {.top_k = 3}},
      {"top_p", {.top_p = 0.8}},
      {"min_p", {.min_p = 0.2}},
      {"penalties", {.presence_penalty = 0.4, .frequency_penalty = 0.7, .repetition_penalty = 1.3}},
      {"mask", {}, bar},
      {"all",
       {.temperature = 1.4,
        .top_p = 0.9,
        .top_k = 5,
        .min_p = 0.05,
        .frequency_penalty = 0.5,
        .logit_bias = {{TokenId{5}, 1.0f}}},
       bar},
  };
  return all;
}

std::vector<Request> requests(const Filter& filter, int answers) {
  std::vector<Request> all;
  for (int i = 0; i < answers / kChoices; ++i) {
    Request r{.prompt_token_ids = prompt(), .params = filter.params};
    r.params.seed = static_cast<uint64_t>(i);
    r.params.n = kChoices;
    r.params.max_tokens = kLength;
    r.allowed_tokens = filter.mask;
    all.push_back(std::move(r));
  }
  return all;
}

// Of each part of kPart tokens of an answer, how often it was each of the 6^kPart there are.
size_t index_of(std::span<const TokenId> part) {
  size_t index = 0;
  for (const TokenId id : part) index = index * 6 + static_cast<size_t>(raw(id) - kFirst);
  return index;
}

struct Parts {
  std::vector<double> first = std::vector<double>(216), last = std::vector<double>(216);

  void add(std::span<const TokenId> answer, double amount) {
    first[index_of(answer.first(kPart))] += amount;
    last[index_of(answer.last(kPart))] += amount;
  }
};

// The exact probabilities.
class Expected {
 public:
  explicit Expected(const Filter& filter) : filter_(filter) { add(1); }

  Parts parts;

 private:
  void add(double probability) {
    if (answer_.size() == kLength) return parts.add(answer_, probability);
    std::vector<TokenId> history = prompt_;
    history.insert(history.end(), answer_.begin(), answer_.end());
    std::vector<float> row(kTokens);
    target()(history, row);
    const auto allowed = allowed_after(&filter_.mask, answer_, kTokens);
    const auto next = sampler_.distribution(row, {.params = filter_.params,
                                                  .seed = 0,
                                                  .history = {prompt_, answer_},
                                                  .eog = {},
                                                  .allowed = allowed});
    for (const auto& entry : next.value().entries) {
      answer_.push_back(entry.id);
      add(probability * entry.probability);
      answer_.pop_back();
    }
  }

  const Filter& filter_;
  Sampler sampler_{kTokens};
  std::vector<TokenId> prompt_ = prompt(), answer_;
};

std::vector<int> whole(const std::vector<double>& counts) { return {counts.begin(), counts.end()}; }

Parts count(const std::vector<RequestOutput>& outputs) {
  Parts counts;
  for (const RequestOutput& output : outputs) {
    EXPECT_FALSE(output.error);
    for (const CompletionOutput& choice : output.outputs) counts.add(choice.token_ids, 1);
  }
  return counts;
}

void expect_distributed(const std::vector<RequestOutput>& outputs, const Parts& expected) {
  const Parts counts = count(outputs);
  ASSERT_EQ(std::accumulate(counts.first.begin(), counts.first.end(), 0.0), kAnswers);
  expect_follows(whole(counts.first), expected.first);
  expect_follows(whole(counts.last), expected.last);
}

// Draws two guesses for a place from the draft model's distribution, without putting back, and goes
// on behind the first.
class TreeDrafter : public Drafter {
 public:
  std::string_view name() const override { return "tree"; }
  void propose(std::span<DraftTask* const> tasks) override {
    for (DraftTask* task : tasks) guess(*task);
  }
  void finish(const FinishedSequence&) override {}

 private:
  void guess(DraftTask& task) {
    std::vector<TokenId> tokens(task.tokens.begin(), task.tokens.end());
    for (int parent = kRoot; std::cmp_less(task.draft.size(), task.max_tokens);) {
      std::vector<float> row(kTokens);
      draft()(tokens, row);
      const SampleRequest request{.params = {}, .seed = 0, .history = {}, .eog = {}};
      const Distribution q = sampler_.distribution(row, request).value();
      const int first = add(task, parent, q, q, 0, tokens.size());
      Distribution rest = q;
      std::erase_if(rest.entries,
                    [&](const auto& e) { return e.id == task.draft[static_cast<size_t>(first)]; });
      for (auto& entry : rest.entries)
        entry.probability /= 1 - q.of(task.draft[static_cast<size_t>(first)]);
      if (std::cmp_less(task.draft.size(), task.max_tokens))
        add(task, parent, rest, q, 1, tokens.size());
      tokens.push_back(task.draft[static_cast<size_t>(first)]);
      parent = first;
    }
  }
  static int add(DraftTask& task, int parent, const Distribution& from, const Distribution& q,
                 uint32_t index, size_t position) {
    const double u = uniform(task.seed, task.choice, position, RandomUse::guess, index);
    task.q.push_back(q);
    return add_draft(task.draft, task.parents, from.draw(u), parent);
  }

  Sampler sampler_{kTokens};
};

// Says that its guesses came from another distribution than they did.
class LyingDrafter : public StubDrafter {
 public:
  LyingDrafter() : StubDrafter(kTokens, draft(), RejectionSampleMethod::probabilistic) {}
  void propose(std::span<DraftTask* const> tasks) override {
    StubDrafter::propose(tasks);
    for (DraftTask* task : tasks)
      for (Distribution& q : task->q)
        for (auto& entry : q.entries)
          entry.probability = 1.0 / static_cast<double>(q.entries.size());
  }
};

std::unique_ptr<Drafter> drawing_drafter() {
  return std::make_unique<StubDrafter>(kTokens, draft(), RejectionSampleMethod::probabilistic);
}

TEST(GuessDistribution, WithoutGuessesAndWithCertainOnes) {
  for (const Filter& filter : filters()) {
    SCOPED_TRACE(filter.name);
    GuessRig plain(six_letters(), target());
    const auto all = plain.run(requests(filter, kAnswers));
    expect_distributed(all, Expected(filter).parts);
    // Equal ones need no second look at their distribution.
    constexpr int kSome = 600;
    const std::vector<RequestOutput> some(all.begin(), all.begin() + kSome / kChoices);
    for (int k = 1; k <= 4; ++k) {
      std::vector<std::unique_ptr<Drafter>> drafters;
      drafters.push_back(std::make_unique<NgramDrafter>(1, 3));
      drafters.push_back(std::make_unique<SuffixDrafter>(SuffixOptions{}));
      drafters.push_back(
          std::make_unique<StubDrafter>(kTokens, draft(), RejectionSampleMethod::strict));
      drafters.push_back(std::make_unique<testing::OracleDrafter>(some, k - 1));
      for (auto& drafter : drafters) {
        SCOPED_TRACE(std::string(drafter->name()) + ", k = " + std::to_string(k));
        GuessRig rig(six_letters(), target(), std::move(drafter), k);
        const auto outputs = rig.run(requests(filter, kSome));
        for (size_t i = 0; i < outputs.size(); ++i)
          for (size_t c = 0; c < outputs[i].outputs.size(); ++c)
            ASSERT_EQ(outputs[i].outputs[c].token_ids, some[i].outputs[c].token_ids);
        EXPECT_GT(rig.stats().num_draft_tokens, 100);
      }
    }
  }
}

TEST(GuessDistribution, WithGuessesThatAreDrawn) {
  for (const Filter& filter : filters()) {
    const Parts expected = Expected(filter).parts;
    for (int k = 1; k <= 4; ++k) {
      SCOPED_TRACE(filter.name + std::string(", k = ") + std::to_string(k));
      GuessRig rig(six_letters(), target(), drawing_drafter(), k);
      expect_distributed(rig.run(requests(filter, kAnswers)), expected);
      EXPECT_GT(rig.stats().num_accepted_tokens, 10'000);
      EXPECT_LT(rig.stats().num_accepted_tokens, rig.stats().num_draft_tokens * 95 / 100);
    }
  }
}

TEST(GuessDistribution, WithTreesOfThem) {
  for (const Filter& filter : filters()) {
    SCOPED_TRACE(filter.name);
    GuessRig rig(six_letters(), target(), std::make_unique<TreeDrafter>(), 4);
    expect_distributed(rig.run(requests(filter, kAnswers)), Expected(filter).parts);
    EXPECT_GT(rig.stats().num_accepted_tokens, 10'000);
  }
}

// More guesses come true than with the answer's own numbers, and none of it is luck.
TEST(GuessDistribution, AnswersRepeatAndDifferFromStrictOnes) {
  const auto run = [](RejectionSampleMethod method) {
    GuessRig rig(six_letters(), target(), std::make_unique<StubDrafter>(kTokens, draft(), method),
                 3);
    std::vector<std::vector<TokenId>> answers;
    for (const auto& output : rig.run(requests(filters()[0], 400)))
      for (const auto& choice : output.outputs) answers.push_back(choice.token_ids);
    return answers;
  };
  const auto drawn = run(RejectionSampleMethod::probabilistic);
  EXPECT_EQ(run(RejectionSampleMethod::probabilistic), drawn);
  EXPECT_NE(run(RejectionSampleMethod::strict), drawn);
}

// The test sees a rule that is wrong.
TEST(GuessDistribution, WrongRuleIsSeen) {
  const Filter& filter = filters()[0];
  const Parts expected = Expected(filter).parts;
  GuessRig rig(six_letters(), target(), std::make_unique<LyingDrafter>(), 2);
  const Parts counts = count(rig.run(requests(filter, kAnswers)));
  EXPECT_LT(testing::probability_of(whole(counts.first), expected.first), 1e-6);
  EXPECT_LT(testing::probability_of(whole(counts.last), expected.last), 1e-6);
}

// The exact next-token distributions of SmolLM2, their tails folded into fewer ids.
struct Table {
  std::vector<double> shares;

  StubModel::Logits says(double temperature) const {
    return [*this, temperature](const std::vector<TokenId>&, std::span<float> row) {
      for (size_t id = 0; id < row.size(); ++id)
        row[id] = static_cast<float>(std::log(shares[id]) / temperature);
    };
  }
};

constexpr size_t kTableTokens = 1000;

std::vector<Table> tables() {
  std::ifstream file(testing::test_data("sampling/smollm2.jsonl"));
  std::vector<Table> all;
  for (std::string line; std::getline(file, line);) {
    const auto json = nlohmann::json::parse(line);
    const std::vector<double> listed = json["probs"];
    const double rest = json["rest_mass"];
    Table& table = all.emplace_back();
    table.shares.assign(kTableTokens, rest / static_cast<double>(kTableTokens - listed.size()));
    // Scattered: 7 and the number of tokens have no common divisor.
    for (size_t i = 0; i < listed.size(); ++i) table.shares[(3 + 7 * i) % kTableTokens] = listed[i];
  }
  return all;
}

TEST(GuessDistribution, TablesOfSmolLM2) {
  const auto all = tables();
  ASSERT_EQ(all.size(), 4u);
  std::vector<std::string> pieces;
  for (size_t i = kFirst; i < kTableTokens; ++i) pieces.push_back("t" + std::to_string(i));
  const TokenizerSpec spec = testing::tiny_piece_spec(pieces, false);
  Request request{.prompt_token_ids = {TokenId{3}}};
  request.params.n = 50;
  request.params.max_tokens = 4;
  request.params.ignore_eos = true;
  request.params.skip_special_tokens = false;
  for (size_t i = 0; i < all.size(); ++i)
    for (const double temperature : {0.7, 1.6}) {  // of the draft
      SCOPED_TRACE(std::to_string(i) + ", " + std::to_string(temperature));
      GuessRig rig(
          spec, all[i].says(1),
          std::make_unique<StubDrafter>(static_cast<int>(kTableTokens), all[i].says(temperature),
                                        RejectionSampleMethod::probabilistic),
          3);
      std::vector<Request> requests(50, request);
      for (size_t seed = 0; seed < requests.size(); ++seed) requests[seed].params.seed = seed;
      std::vector<int> counts(kTableTokens);
      for (const RequestOutput& output : rig.run(requests))
        for (const CompletionOutput& choice : output.outputs)
          for (const TokenId id : choice.token_ids) ++counts[static_cast<size_t>(raw(id))];
      std::vector<double> shares = all[i].shares;
      const double total = std::accumulate(shares.begin(), shares.end(), 0.0);
      for (double& share : shares) share /= total;
      expect_follows(counts, shares);
      EXPECT_GT(rig.stats().num_accepted_tokens, rig.stats().num_draft_tokens / 4);
    }
}

}  // namespace
}  // namespace octavo
