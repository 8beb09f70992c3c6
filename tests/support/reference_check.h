// A fetched model against fp32 values of another implementation, within the tolerances that its
// int8 (auto) and fp32 activations are owed. Tokens of the reference are fed, so that every
// position is compared, not only those before the first permitted difference.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "sampling/logits.h"
#include "support/paths.h"
#include "support/test_model.h"

namespace octavo::testing {

using Json = nlohmann::json;

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

inline std::vector<Json> lines(const std::string& name) {
  std::ifstream in(test_data(name));
  std::vector<Json> out;
  for (std::string line; std::getline(in, line);) out.push_back(Json::parse(line));
  EXPECT_FALSE(out.empty()) << name;
  return out;
}

class ReferenceCheck {
 public:
  // context_length: 0: the model's own.
  ReferenceCheck(const std::string& path, const Tolerance& tolerance, int context_length = 0)
      : t_(tolerance),
        model_(path, {.dtype = tolerance.dtype,
                      .kv_cache_dtype =
                          tolerance.dtype == ComputeType::float32 ? KvType::f32 : KvType::f16,
                      .context_length = context_length}) {}

  void logits(const std::string& file) {
    for (const Json& line : lines(file)) {
      const std::vector<int> ids = line["prompt_ids"];
      const std::string id = line["id"];
      const bool is_long = ids.size() >= 500;
      const double loglik = mean_loglik(ids, [&](int position, std::span<const float> row) {
        if (position + 1 == static_cast<int>(ids.size()))
          check_top(line["last"], row, is_long, id + " last");
        for (const Json& inner : line["inner"])
          if (inner["pos"] == position)
            check_top(inner, row, is_long, id + " " + inner["pos"].dump());
      });
      EXPECT_NEAR(loglik, line["mean_loglik"].get<double>(), t_.mean_loglik) << id;
      note(largest_loglik_, loglik - line["mean_loglik"].get<double>());
    }
    ::testing::Test::RecordProperty("largest_logit_difference", std::to_string(largest_logit_));
    ::testing::Test::RecordProperty("largest_loglik_difference", std::to_string(largest_loglik_));
  }

  // at_least: tokens whose margin lets them be compared.
  void greedy(const std::string& file, int at_least = 1000) {
    int compared = 0;
    for (const Json& line : lines(file)) {
      std::vector<int> ids = line["prompt_ids"];
      const std::vector<int> out = line["out_ids"];
      const std::vector<double> margin = line["margin"];
      const auto prompt = static_cast<int>(ids.size());
      ids.insert(ids.end(), out.begin(), out.end());
      const auto tokens = token_ids(ids);
      std::vector<int> positions;
      for (int i = prompt - 1; i + 1 < static_cast<int>(ids.size()); ++i) positions.push_back(i);
      model_.each_logits(tokens, positions, [&](int position, std::span<const float> row) {
        const auto i = static_cast<size_t>(position - prompt + 1);
        if (margin[i] <= t_.margin) return;
        EXPECT_EQ(argmax_index(row), out[i])
            << line["id"] << " step " << i << " margin " << margin[i];
        ++compared;
      });
    }
    EXPECT_GT(compared, at_least);
  }

  // Of the first windows of the file.
  void perplexity(const std::string& file, size_t windows) {
    const Json reference = Json::parse(read_file(test_data(file)));
    double nll = 0, expected = 0, predicted = 0;
    for (size_t w = 0; w < windows; ++w) {
      const std::vector<int> ids = reference["windows"][w];
      const auto tokens = static_cast<double>(ids.size() - 1);
      nll -= mean_loglik(ids, [](int, std::span<const float>) {}) * tokens;
      expected += reference["window_nll"][w].get<double>();
      predicted += tokens;
    }
    const double ratio = std::exp((nll - expected) / predicted);
    EXPECT_NEAR(ratio, 1.0, t_.perplexity);
    ::testing::Test::RecordProperty("perplexity_ratio", std::to_string(ratio));
  }

 private:
  static void note(double& largest, double difference) {
    largest = std::max(largest, std::fabs(difference));
  }

  void check_top(const Json& expected, std::span<const float> row, bool is_long,
                 const std::string& where) {
    const std::vector<int> ids = expected["ids"];
    const std::vector<double> logits = expected["logits"];
    double sum = 0;
    for (size_t i = 0; i < ids.size(); ++i) {
      const double difference = std::fabs(row[static_cast<size_t>(ids[i])] - logits[i]);
      sum += difference;
      note(largest_logit_, difference);
      EXPECT_LE(difference, is_long ? t_.logit_long : t_.logit) << where << " id " << ids[i];
    }
    EXPECT_LE(sum / static_cast<double>(ids.size()),
              std::max(t_.logit_mean, is_long ? t_.logit_long : 0))
        << where;
  }

  template <class Body>
  double mean_loglik(const std::vector<int>& ids, const Body& look_at) {
    const auto tokens = token_ids(ids);
    double sum = 0;
    model_.each_logits(tokens, positions_of(tokens), [&](int position, std::span<const float> row) {
      look_at(position, row);
      const auto next = static_cast<size_t>(position) + 1;
      if (next < ids.size()) sum += row[static_cast<size_t>(ids[next])] - log_sum_exp(row);
    });
    return sum / static_cast<double>(ids.size() - 1);
  }

  const Tolerance& t_;
  TestModel model_;
  double largest_logit_ = 0, largest_loglik_ = 0;
};

}  // namespace octavo::testing
