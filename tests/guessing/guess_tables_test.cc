// Guesses change no probability of what real models say next.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "guessing/six_letters.h"
#include "support/paths.h"

namespace octavo {
namespace {

using namespace testing;

// What a model says next after some prompt, whatever comes: its most probable tokens, and the rest
// of the probability in as many ids as are left. The order of ids is not that of probabilities.
constexpr size_t kTableTokens = 256;

struct Table {
  std::string name;
  std::vector<double> shares;

  Table(std::string its_name, const std::vector<double>& listed, double rest)
      : name(std::move(its_name)),
        shares(kTableTokens, rest / static_cast<double>(kTableTokens - listed.size())) {
    for (size_t i = 0; i < listed.size(); ++i) shares[(3 + 7 * i) % kTableTokens] = listed[i];
    const double total = std::accumulate(shares.begin(), shares.end(), 0.0);
    for (double& share : shares) share /= total;
  }

  StubModel::Logits says(double temperature) const {
    return [*this, temperature](const std::vector<TokenId>&, std::span<float> row) {
      for (size_t id = 0; id < row.size(); ++id)
        row[id] = static_cast<float>(std::log(shares[id]) / temperature);
    };
  }
};

std::vector<nlohmann::json> lines_of(const std::string& name) {
  std::ifstream file(test_data(name));
  std::vector<nlohmann::json> all;
  for (std::string line; std::getline(file, line);) all.push_back(nlohmann::json::parse(line));
  return all;
}

std::vector<Table> tables_of_smollm2() {
  std::vector<Table> all;
  for (const auto& line : lines_of("sampling/smollm2.jsonl"))
    all.emplace_back(line["id"], line["probs"], line["rest_mass"]);
  return all;
}

// Of the twenty most probable tokens each.
std::vector<Table> tables_of_gemma3() {
  std::vector<Table> all;
  for (const auto& line : lines_of("logits/gemma3.jsonl")) {
    std::vector<double> listed = line["last"]["logprobs"];
    for (double& entry : listed) entry = std::exp(entry);
    const double rest = 1 - std::accumulate(listed.begin(), listed.end(), 0.0);
    if (all.size() < 4) all.emplace_back(line["id"], listed, std::max(rest, 0.0));
  }
  return all;
}

std::vector<Request> table_requests(uint64_t first_seed) {
  std::vector<Request> all;
  for (uint64_t i = 0; i < (kIsSanitized ? 25 : 250); ++i) {  // 50,000 draws
    Request& request = all.emplace_back(Request{.prompt_token_ids = {TokenId{3}}});
    request.params.seed = first_seed + i;
    request.params.n = 50;
    request.params.max_tokens = 4;
    request.params.ignore_eos = true;
    request.params.skip_special_tokens = false;
  }
  return all;
}

TEST_F(GuessDistribution, TablesOfModels) {
  std::vector<std::string> pieces;
  for (size_t i = kFirst; i < kTableTokens; ++i) pieces.push_back("t" + std::to_string(i));
  const TokenizerSpec spec = tiny_piece_spec(pieces, false);
  uint64_t first_seed = 0;
  for (const auto& tables : {tables_of_smollm2(), tables_of_gemma3()}) {
    ASSERT_EQ(tables.size(), 4u);
    for (const Table& table : tables)
      for (const double temperature : {0.7, 1.6}) {  // of the draft
        SCOPED_TRACE(table.name + ", " + std::to_string(temperature));
        const auto method = RejectionSampleMethod::probabilistic;
        GuessRig rig(spec, table.says(1),
                     std::make_unique<StubDrafter>(static_cast<int>(kTableTokens),
                                                   table.says(temperature), method),
                     3);
        std::vector<int> counts(kTableTokens);
        for (const RequestOutput& output : rig.run(table_requests(first_seed += 1000)))
          for (const CompletionOutput& choice : output.outputs)
            for (const TokenId id : choice.token_ids) ++counts[static_cast<size_t>(raw(id))];
        expect_distributed(counts, table.shares);
        EXPECT_GT(rig.stats().num_accepted_tokens, rig.stats().num_draft_tokens / 4);
      }
  }
}

}  // namespace
}  // namespace octavo
