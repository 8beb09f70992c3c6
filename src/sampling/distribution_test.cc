// Draws against the exact next-token distributions of SmolLM2: the 200 most probable tokens and the
// mass of the rest.

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "sampling/sampler.h"
#include "support/paths.h"

namespace octavo {
namespace {

// The model has 49,152 tokens; the tail is folded into fewer ids, which changes no listed
// probability and makes a draw cheap enough for tens of thousands of them.
constexpr int kVocab = 1000;
constexpr int kDraws = 20'000;

struct Distribution {
  std::string id;
  std::vector<double> probabilities;  // of the listed tokens, most probable first
  double rest;
};

std::vector<Distribution> load_distributions() {
  std::ifstream in(testing::test_data("sampling/smollm2.jsonl"));
  std::vector<Distribution> result;
  for (std::string line; std::getline(in, line);) {
    const auto json = nlohmann::json::parse(line);
    result.push_back({json["id"], json["probs"], json["rest_mass"]});
  }
  return result;
}

// Scatters the listed tokens over the vocabulary: 7 and kVocab have no common divisor.
size_t id_of_place(size_t place) { return (3 + 7 * place) % kVocab; }

// The mass of the rest is spread evenly over the ids that are not listed.
std::vector<float> logits_of(const Distribution& d) {
  const double each = d.rest / static_cast<double>(kVocab - d.probabilities.size());
  std::vector<float> logits(kVocab, static_cast<float>(std::log(each)));
  for (size_t i = 0; i < d.probabilities.size(); ++i)
    logits[id_of_place(i)] = static_cast<float>(std::log(d.probabilities[i]));
  return logits;
}

// Counts per listed token, and in the last place of all others.
std::vector<int> count_draws(const Distribution& d, const SamplingParams& params) {
  const std::vector<float> logits = logits_of(d);
  Sampler sampler(kVocab);
  std::vector<int> by_id(kVocab);
  for (uint64_t seed = 0; seed < kDraws; ++seed)
    ++by_id[raw(sampler.sample(logits, {params, seed, 0, {}, {}}).value().token)];
  std::vector<int> counts;
  for (size_t i = 0; i < d.probabilities.size(); ++i) counts.push_back(by_id[id_of_place(i)]);
  counts.push_back(kDraws - std::accumulate(counts.begin(), counts.end(), 0));
  return counts;
}

// The value that chi-square with this many degrees of freedom exceeds with p = 1e-4 (Wilson and
// Hilferty).
double critical_chi_square(int degrees) {
  const double k = 2.0 / (9.0 * degrees);
  return degrees * std::pow(1 - k + 3.719 * std::sqrt(k), 3);
}

// `shares` are the expected shares in the places of `counts`; those too rare for the test are
// pooled.
void expect_distributed(const std::vector<int>& counts, const std::vector<double>& shares,
                        const std::string& what) {
  double statistic = 0, pooled_count = 0, pooled_expected = 0;
  int bins = 0;
  const auto add_bin = [&](double count, double expected) {
    statistic += (count - expected) * (count - expected) / expected;
    ++bins;
  };
  for (size_t i = 0; i < counts.size(); ++i) {
    const double expected = shares[i] * kDraws;
    if (expected == 0) {
      EXPECT_EQ(counts[i], 0) << what << ": a token that was filtered out, place " << i;
    } else if (expected < 5) {
      pooled_count += counts[i], pooled_expected += expected;
    } else {
      add_bin(counts[i], expected);
    }
  }
  if (pooled_expected >= 5) add_bin(pooled_count, pooled_expected);
  ASSERT_GT(bins, 1) << what;
  EXPECT_LT(statistic, critical_chi_square(bins - 1)) << what << ", " << bins << " bins";
}

// Shares after keeping the first `kept` listed tokens, each probability raised to 1 / temperature.
std::vector<double> truncated(const Distribution& d, size_t kept, double temperature = 1) {
  std::vector<double> shares(d.probabilities.size() + 1);
  double total = 0;
  for (size_t i = 0; i < kept; ++i)
    total += shares[i] = std::pow(d.probabilities[i], 1 / temperature);
  for (double& share : shares) share /= total;
  return shares;
}

TEST(Distribution, DrawsFollowTheModel) {
  const auto distributions = load_distributions();
  ASSERT_EQ(distributions.size(), 4u);
  for (const Distribution& d : distributions) {
    std::vector<double> shares = d.probabilities;
    shares.push_back(d.rest);
    expect_distributed(count_draws(d, {}), shares, d.id);
  }
}

TEST(Distribution, FiltersRenormaliseWhatTheyKeep) {
  const Distribution d = load_distributions().at(1);
  SamplingParams top_k;
  top_k.top_k = 40;
  expect_distributed(count_draws(d, top_k), truncated(d, 40), "top_k");

  SamplingParams top_p;
  top_p.top_p = 0.7;
  size_t nucleus = 0;
  for (double mass = 0; mass < 0.7; ++nucleus) mass += d.probabilities[nucleus];
  expect_distributed(count_draws(d, top_p), truncated(d, nucleus), "top_p");

  SamplingParams min_p;
  min_p.min_p = 0.05;
  size_t likely = 0;
  while (d.probabilities[likely] >= 0.05 * d.probabilities[0]) ++likely;
  expect_distributed(count_draws(d, min_p), truncated(d, likely), "min_p");

  SamplingParams cold;
  cold.top_k = 100, cold.temperature = 0.5;
  expect_distributed(count_draws(d, cold), truncated(d, 100, 0.5), "temperature");
}

}  // namespace
}  // namespace octavo
