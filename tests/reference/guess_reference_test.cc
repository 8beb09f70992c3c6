// Tokens of a real model have the same probabilities when another model, or its own first layers,
// guesses them at random.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "engine/load.h"
#include "support/chi_square.h"
#include "support/paths.h"

namespace octavo {
namespace {

using namespace testing;

constexpr int kAnswers = 400;
constexpr int kChoices = 40;  // of a request

std::vector<TokenId> prompt(const std::string& id) {
  std::ifstream file(test_data("sampling/smollm2.jsonl"));
  for (std::string line; std::getline(file, line);) {
    const auto json = nlohmann::json::parse(line);
    if (json["id"] != id) continue;
    std::vector<TokenId> tokens;
    for (const int token : json["prompt_ids"]) tokens.push_back(TokenId{token});
    return tokens;
  }
  return {};
}

RequestOutput run(Engine& engine, Request request) {
  auto output = engine.run(std::move(request), {}, {});
  EXPECT_TRUE(output) << output.error().message;
  return output ? std::move(*output) : RequestOutput();
}

constexpr size_t kGiven = 2;

// The last tokens of the prompt are left to the answer, which may begin with no others: what comes
// after them is guessed.
Request request_of(const std::string& id) {
  Request request{.prompt_token_ids = prompt(id)};
  const std::vector<TokenId> given(request.prompt_token_ids.end() - kGiven,
                                   request.prompt_token_ids.end());
  request.prompt_token_ids.resize(request.prompt_token_ids.size() - kGiven);
  request.params.max_tokens = kGiven + 2;
  request.params.ignore_eos = true;
  request.allowed_tokens = [given](std::span<const TokenId> answer, std::span<uint64_t> allowed) {
    if (answer.size() >= kGiven) return;
    const auto next = static_cast<size_t>(raw(given[answer.size()]));
    std::ranges::fill(allowed, 0);
    allowed[next / 64] = uint64_t{1} << next % 64;
  };
  return request;
}

LoadedEngine load(const std::string& speculative_config) {
  EngineOptions options{.model = smollm2_path(), .threads = 2};
  options.max_num_seqs = kChoices;
  options.max_model_len = 512;
  options.max_logprobs = kNoLogprobsCap;
  options.speculative_config = speculative_config;
  auto engine = load_engine(options);
  EXPECT_TRUE(engine) << engine.error().message;
  return std::move(*engine);
}

std::vector<double> exact_shares(Engine& engine, const std::string& id) {
  Request request = request_of(id);
  request.params.logprobs = -1;
  request.num_speculative_tokens = 0;
  const RequestOutput output = run(engine, std::move(request));
  std::vector<double> shares;
  for (const auto& entry : output.outputs.at(0).logprobs.at(kGiven).entries) {
    const auto token = static_cast<size_t>(raw(entry.id));
    shares.resize(std::max(shares.size(), token + 1));
    shares[token] = std::exp(entry.logprob);
  }
  return shares;
}

std::vector<int> count(Engine& engine, const std::string& id, size_t num_tokens) {
  std::vector<int> counts(num_tokens);
  for (uint64_t seed = 0; seed < kAnswers / kChoices; ++seed) {
    Request request = request_of(id);
    request.params.n = kChoices;
    request.params.seed = seed;
    for (const CompletionOutput& choice : run(engine, std::move(request)).outputs)
      ++counts.at(static_cast<size_t>(raw(choice.token_ids.at(kGiven))));
  }
  return counts;
}

void check(const std::string& method) {
  const LoadedEngine loaded = load("{" + method +
                                   R"(, "num_speculative_tokens": 2, "adaptive": false,
               "rejection_sample_method": "probabilistic"})");
  for (const std::string id : {"g01", "g33"}) {
    SCOPED_TRACE(id);
    const auto shares = exact_shares(*loaded.engine, id);
    expect_follows(count(*loaded.engine, id, shares.size()), shares);
  }
  loaded.engine->inspect([](EngineCore& core) {
    const SpeculatorStats& stats = core.speculator()->stats();
    EXPECT_GE(stats.num_drafts, 2 * kAnswers);
    EXPECT_GT(stats.num_accepted_tokens, kAnswers / 5);
  });
}

TEST(GuessReference, DraftModel) {
  check(R"("method": "draft_model", "model": ")" + smollm2_path() + "\"");
}

TEST(GuessReference, EarlyExit) {
  check(R"("method": "early_exit", "skip_layers": [8, 11, 14, 17, 20],
           "draft_confidence_threshold": 0)");
}

}  // namespace
}  // namespace octavo
