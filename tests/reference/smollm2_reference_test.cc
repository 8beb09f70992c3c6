// SmolLM2-135M-Instruct against fp32 values of another implementation, within the tolerances that
// its int8 (auto) and fp32 activations are owed. Tokens of the reference are fed, so that every
// position is compared, not only those before the first permitted difference.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "sampling/logits.h"
#include "support/paths.h"
#include "support/test_model.h"

namespace octavo {
namespace {

using namespace testing;
using Json = nlohmann::json;

std::vector<Json> lines(const std::string& name) {
  std::ifstream in(test_data(name));
  std::vector<Json> out;
  for (std::string line; std::getline(in, line);) out.push_back(Json::parse(line));
  EXPECT_FALSE(out.empty()) << name;
  return out;
}

struct Tolerance {
  ComputeType dtype;
  double logit, logit_mean,
      logit_long;  // each of the top 20; their mean; each, after 500 tokens and more
  double mean_loglik;
  double margin;      // greedy tokens agree where the reference's margin is larger
  double perplexity;  // relative
};

constexpr Tolerance kInt8{ComputeType::automatic, 1.5, 0.47, 1.5, 0.07, 0.5, 0.003};
constexpr Tolerance kFloat32{ComputeType::float32, 2e-3, 2e-3, 1e-2, 1e-4, 1e-3, 0.0002};

TestModel load(const Tolerance& t) {
  return TestModel(smollm2_path(),
                   {.dtype = t.dtype,
                    .kv_cache_dtype = t.dtype == ComputeType::float32 ? KvType::f32 : KvType::f16});
}

void check_top(const Json& expected, const std::vector<float>& row, const Tolerance& t,
               bool is_long, const std::string& where) {
  const std::vector<int> ids = expected["ids"];
  const std::vector<double> logits = expected["logits"];
  double sum = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    const double difference = std::fabs(row[static_cast<size_t>(ids[i])] - logits[i]);
    sum += difference;
    EXPECT_LE(difference, is_long ? t.logit_long : t.logit) << where << " id " << ids[i];
  }
  EXPECT_LE(sum / static_cast<double>(ids.size()),
            std::max(t.logit_mean, is_long ? t.logit_long : 0))
      << where;
}

double mean_loglik(const std::vector<std::vector<float>>& rows, const std::vector<int>& ids) {
  double sum = 0;
  for (size_t i = 0; i + 1 < ids.size(); ++i)
    sum += rows[i][static_cast<size_t>(ids[i + 1])] - log_sum_exp(rows[i]);
  return sum / static_cast<double>(ids.size() - 1);
}

void check_logits(const Tolerance& t) {
  TestModel model = load(t);
  for (const Json& line : lines("logits/smollm2.jsonl")) {
    const std::vector<int> ids = line["prompt_ids"];
    const std::string id = line["id"];
    const auto tokens = token_ids(ids);
    const auto rows = model.logits(tokens, positions_of(tokens));
    const bool is_long = ids.size() >= 500;
    check_top(line["last"], rows.back(), t, is_long, id + " last");
    for (const Json& inner : line["inner"])
      check_top(inner, rows[inner["pos"].get<size_t>()], t, is_long,
                id + " " + inner["pos"].dump());
    EXPECT_NEAR(mean_loglik(rows, ids), line["mean_loglik"].get<double>(), t.mean_loglik) << id;
  }
}

void check_greedy(const Tolerance& t) {
  TestModel model = load(t);
  int compared = 0;
  for (const Json& line : lines("greedy/smollm2.jsonl")) {
    std::vector<int> ids = line["prompt_ids"];
    const std::vector<int> out = line["out_ids"];
    const std::vector<double> margin = line["margin"];
    const auto prompt = static_cast<int>(ids.size());
    ids.insert(ids.end(), out.begin(), out.end());
    const auto tokens = token_ids(ids);
    std::vector<int> positions;
    for (int i = prompt - 1; i + 1 < static_cast<int>(ids.size()); ++i) positions.push_back(i);
    const auto rows = model.logits(tokens, positions);
    for (size_t i = 0; i < out.size(); ++i) {
      if (margin[i] <= t.margin) continue;
      EXPECT_EQ(argmax_index(rows[i]), out[i])
          << line["id"] << " step " << i << " margin " << margin[i];
      ++compared;
    }
  }
  EXPECT_GT(compared, 1000);
}

void check_perplexity(const Tolerance& t, size_t windows) {
  TestModel model = load(t);
  const Json reference =
      Json::parse(read_file(test_data("perplexity/smollm2_gpl3_apache2_512.json")));
  double nll = 0, expected = 0, predicted = 0;
  for (size_t w = 0; w < windows; ++w) {
    const std::vector<int> ids = reference["windows"][w];
    const auto tokens = token_ids(ids);
    nll -= mean_loglik(model.logits(tokens, positions_of(tokens)), ids) *
           static_cast<double>(ids.size() - 1);
    expected += reference["window_nll"][w].get<double>();
    predicted += static_cast<double>(ids.size() - 1);
  }
  EXPECT_NEAR(std::exp((nll - expected) / predicted), 1.0, t.perplexity);
}

TEST(SmolLM2Int8, Logits) { check_logits(kInt8); }
TEST(SmolLM2Int8, Greedy) { check_greedy(kInt8); }
TEST(SmolLM2Int8, Perplexity) { check_perplexity(kInt8, 16); }
TEST(SmolLM2Float32, Logits) { check_logits(kFloat32); }
TEST(SmolLM2Float32, Greedy) { check_greedy(kFloat32); }
TEST(SmolLM2Float32, Perplexity) { check_perplexity(kFloat32, 4); }

}  // namespace
}  // namespace octavo
