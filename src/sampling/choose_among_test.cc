// Tokens that are chosen among guesses have the probabilities they have without.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "base/rng.h"
#include "sampling/distribution.h"
#include "support/chi_square.h"

namespace octavo {
namespace {

using testing::expect_follows;

constexpr int kDraws = 100'000;

Distribution of_shares(const std::vector<double>& shares) {
  const double total = std::accumulate(shares.begin(), shares.end(), 0.0);
  Distribution result;
  for (size_t i = 0; i < shares.size(); ++i)
    if (shares[i] > 0)
      result.entries.push_back({TokenId{static_cast<int32_t>(i)}, shares[i] / total});
  return result;
}

struct Pair {
  const char* name;
  std::vector<double> p, q;
};

const std::vector<Pair>& pairs() {
  static const std::vector<Pair> all = {
      {"equal", {5, 3, 2, 1}, {5, 3, 2, 1}},
      {"other order", {5, 3, 2, 1}, {1, 2, 3, 5}},
      {"q is wider", {1, 0, 2, 0, 1}, {1, 1, 1, 1, 1}},
      {"q is narrower", {1, 1, 1, 1, 1}, {0, 3, 1, 0, 0}},
      {"nothing in common", {1, 2, 0, 0}, {0, 0, 2, 1}},
      {"one token", {0, 1, 0}, {1, 1, 1}},
      {"sharp", {1000, 10, 1, 1}, {1, 10, 1000, 1}},
      {"certain", {5, 3, 2, 1}, {0, 1, 0, 0}},
  };
  return all;
}

// As many as asked for and q has, drawn and not put back.
std::vector<TokenId> draw_guesses(Distribution q, size_t most, uint64_t seed) {
  std::vector<TokenId> guesses;
  while (guesses.size() < most && !q.entries.empty()) {
    double total = 0;
    for (const auto& entry : q.entries) total += entry.probability;
    for (auto& entry : q.entries) entry.probability /= total;
    const auto index = static_cast<uint32_t>(guesses.size());
    guesses.push_back(q.draw(uniform(seed, 0, 0, RandomUse::guess, index)));
    std::erase_if(q.entries, [&](const auto& e) { return e.id == guesses.back(); });
  }
  return guesses;
}

std::vector<double> numbers_of(size_t num_guesses, uint64_t seed) {
  std::vector<double> numbers;
  for (size_t i = 0; i < num_guesses; ++i)
    numbers.push_back(uniform(seed, 0, 0, RandomUse::keep, static_cast<uint32_t>(i)));
  numbers.push_back(uniform(seed, 0, 0, RandomUse::otherwise));
  return numbers;
}

struct Counts {
  std::vector<int> tokens;
  int kept = 0;
};

using Rule = std::function<Chosen(const Distribution& p, std::span<const TokenId> guesses,
                                  const Distribution& q, std::span<const double> numbers)>;

Counts count(const Pair& pair, size_t num_guesses, const Rule& rule) {
  const Distribution p = of_shares(pair.p), q = of_shares(pair.q);
  Counts counts{std::vector<int>(pair.p.size())};
  for (uint64_t seed = 0; seed < kDraws; ++seed) {
    const auto guesses = draw_guesses(q, num_guesses, seed);
    const Chosen chosen = rule(p, guesses, q, numbers_of(guesses.size(), seed));
    ++counts.tokens[static_cast<size_t>(raw(chosen.token))];
    counts.kept += chosen.guess >= 0;
    if (chosen.guess >= 0) {
      EXPECT_EQ(guesses[static_cast<size_t>(chosen.guess)], chosen.token);
    }
  }
  return counts;
}

std::vector<double> shares_of(const Pair& pair) {
  std::vector<double> shares(pair.p.size());
  for (const auto& entry : of_shares(pair.p).entries)
    shares[static_cast<size_t>(raw(entry.id))] = entry.probability;
  return shares;
}

// Values of the usual table.
TEST(ChiSquare, Probability) {
  EXPECT_NEAR(testing::upper_gamma(0.5, 3.841459 / 2), 0.05, 1e-6);
  EXPECT_NEAR(testing::upper_gamma(5, 18.307038 / 2), 0.05, 1e-6);
  EXPECT_NEAR(testing::upper_gamma(50, 149.449253 / 2), 0.001, 1e-7);
  EXPECT_NEAR(testing::upper_gamma(5, 3.940299 / 2), 0.95, 1e-6);
  EXPECT_EQ(testing::probability_of({3, 1}, {1, 0}), 0);
}

TEST(ChooseAmong, ChangesNoProbability) {
  for (const Pair& pair : pairs())
    for (const size_t num_guesses : {1u, 2u, 3u, 5u}) {
      SCOPED_TRACE(pair.name + std::string(", guesses: ") + std::to_string(num_guesses));
      expect_follows(count(pair, num_guesses, choose_among).tokens, shares_of(pair));
    }
}

// A first guess is kept with the sum of min(p, q), which is the most there can be.
TEST(ChooseAmong, KeepsAsOftenAsCanBe) {
  for (const Pair& pair : pairs()) {
    SCOPED_TRACE(pair.name);
    const Distribution p = of_shares(pair.p), q = of_shares(pair.q);
    double overlap = 0;
    for (const auto& entry : p.entries) overlap += std::min(entry.probability, q.of(entry.id));
    const int kept = count(pair, 1, choose_among).kept;
    EXPECT_NEAR(kept, overlap * kDraws, 4 * std::sqrt(overlap * (1 - overlap) * kDraws) + 1e-6);
  }
}

TEST(ChooseAmong, CertainGuesses) {
  const Distribution p = of_shares({5, 3, 2, 1});
  const std::vector<TokenId> guesses = {TokenId{3}, TokenId{1}};
  std::vector<int> counts(4);
  for (uint64_t seed = 0; seed < kDraws; ++seed) {
    const auto numbers = numbers_of(guesses.size(), seed);
    const Chosen chosen = choose_among(p, guesses, {}, numbers);
    EXPECT_EQ(chosen.token, p.draw(numbers.back()));
    const int expected = raw(chosen.token) == 3 ? 0 : raw(chosen.token) == 1 ? 1 : -1;
    EXPECT_EQ(chosen.guess, expected);
    ++counts[static_cast<size_t>(raw(chosen.token))];
  }
  expect_follows(counts, {5 / 11., 3 / 11., 2 / 11., 1 / 11.});
}

TEST(ChooseAmong, NoGuesses) {
  const Chosen chosen = choose_among(of_shares({1, 1}), {}, {}, std::vector<double>{0.7});
  EXPECT_EQ(chosen.token, TokenId{1});
  EXPECT_EQ(chosen.guess, -1);
}

// The test sees rules that are wrong.
TEST(ChooseAmong, WrongRulesAreSeen) {
  const Rule keep_always = [](const auto&, auto guesses, const auto&, auto) {
    return Chosen{guesses[0], 0};
  };
  const Rule draw_from_all = [](const auto& p, auto guesses, const auto& q, auto numbers) {
    if (keeps_guess(p, q, guesses[0], numbers[0])) return Chosen{guesses[0], 0};
    return Chosen{p.draw(numbers.back()), -1};
  };
  const Rule same_number_twice = [](const auto& p, auto guesses, const auto& q, auto numbers) {
    const std::vector<double> same(numbers.size(), numbers[0]);
    return choose_among(p, guesses, q, same);
  };
  const Rule q_as_it_was = [](const auto& p, auto guesses, const auto& q, auto numbers) {
    Distribution left = p;
    for (size_t i = 0; i < guesses.size(); ++i) {
      if (keeps_guess(left, q, guesses[i], numbers[i]))
        return Chosen{guesses[i], static_cast<int>(i)};
      left = residual(left, q);
    }
    return Chosen{left.draw(numbers.back()), -1};
  };
  const Pair& pair = pairs()[1];
  for (const Rule& rule : {keep_always, draw_from_all, same_number_twice, q_as_it_was})
    EXPECT_LT(testing::probability_of(count(pair, 3, rule).tokens, shares_of(pair)), 1e-6);
}

}  // namespace
}  // namespace octavo
