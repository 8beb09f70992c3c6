#include "bench/workload.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "bench/percentiles.h"

namespace octavo {
namespace {

constexpr TokenRange kTokens = {100, 999};

Workload make(const SyntheticSpec& spec) {
  auto workload = make_workload(spec, kTokens);
  EXPECT_TRUE(workload) << workload.error().message;
  return workload ? *workload : Workload{};
}

bool equal(const WorkloadRequest& a, const WorkloadRequest& b) {
  return a.arrival_s == b.arrival_s && a.prompt_token_ids == b.prompt_token_ids &&
         a.output_tokens == b.output_tokens && a.priority == b.priority && a.salt == b.salt;
}

bool begin_equal(const WorkloadRequest& a, const WorkloadRequest& b, long tokens) {
  return std::equal(a.prompt_token_ids.begin(), a.prompt_token_ids.begin() + tokens,
                    b.prompt_token_ids.begin());
}

std::vector<double> outputs(const Workload& workload) {
  std::vector<double> values;
  for (const WorkloadRequest& request : workload) values.push_back(request.output_tokens);
  return values;
}

// Between arrivals, without the first.
Summary intervals(const Workload& workload) {
  std::vector<double> values;
  for (size_t i = 1; i < workload.size(); ++i)
    values.push_back(workload[i].arrival_s - workload[i - 1].arrival_s);
  return summarize(values);
}

TEST(Workload, IsAFunctionOfTheSeed) {
  SyntheticSpec spec{.num_requests = 20, .rate = 3, .priorities = 4, .seed = 7};
  const Workload first = make(spec), again = make(spec);
  EXPECT_TRUE(std::equal(first.begin(), first.end(), again.begin(), again.end(), equal));
  spec.seed = 8;
  EXPECT_FALSE(equal(first[1], make(spec)[1]));
}

TEST(Workload, MoreRequestsBeginWithTheSame) {
  SyntheticSpec spec{.num_requests = 5, .shared_tokens = 3, .groups = 2, .rate = 3};
  const Workload few = make(spec);
  spec.num_requests = 9;
  const Workload many = make(spec);
  ASSERT_EQ(many.size(), 9u);
  EXPECT_TRUE(std::equal(few.begin(), few.end(), many.begin(), equal));
}

TEST(Workload, FixedLengthsAllAtOnce) {
  const Workload workload =
      make({.num_requests = 3, .prompt = Lengths::fixed(17), .output = Lengths::fixed(5)});
  ASSERT_EQ(workload.size(), 3u);
  for (const WorkloadRequest& request : workload) {
    EXPECT_EQ(request.arrival_s, 0);
    EXPECT_EQ(request.prompt_token_ids.size(), 17u);
    EXPECT_EQ(request.output_tokens, 5);
    EXPECT_EQ(request.priority, 0);
  }
}

TEST(Workload, TokensFillTheRange) {
  std::set<int> seen;
  for (const WorkloadRequest& request : make({.num_requests = 40}))
    for (const TokenId id : request.prompt_token_ids) seen.insert(raw(id));
  EXPECT_EQ(*seen.begin(), 100);
  EXPECT_EQ(*seen.rbegin(), 999);
  EXPECT_EQ(seen.size(), 900u);
}

TEST(Workload, PromptsOfAGroupShareTheirBeginningAndNoMore) {
  const Workload workload =
      make({.num_requests = 4, .prompt = Lengths::fixed(64), .shared_tokens = 512, .groups = 2});
  EXPECT_EQ(workload[0].prompt_token_ids.size(), 576u);
  EXPECT_TRUE(begin_equal(workload[0], workload[2], 512));
  EXPECT_TRUE(begin_equal(workload[1], workload[3], 512));
  EXPECT_FALSE(begin_equal(workload[0], workload[1], 8));
  EXPECT_FALSE(std::equal(workload[0].prompt_token_ids.begin() + 512,
                          workload[0].prompt_token_ids.begin() + 520,
                          workload[2].prompt_token_ids.begin() + 512));
}

TEST(Workload, PartsOfAMixtureHaveTheirShares) {
  const auto mixture = Lengths::mixture({{.8, 20, 60}, {.2, 300, 400}});
  ASSERT_TRUE(mixture);
  const auto values =
      outputs(make({.num_requests = 5000, .prompt = Lengths::fixed(1), .output = *mixture}));
  const auto is_long = [](double value) { return value >= 300; };
  for (const double value : values)
    EXPECT_TRUE((value >= 20 && value <= 60) || (value >= 300 && value <= 400)) << value;
  EXPECT_NEAR(std::count_if(values.begin(), values.end(), is_long), 1000, 120);
  const Summary all = summarize(values);
  EXPECT_EQ(all.min, 20);
  EXPECT_EQ(all.max, 400);
  EXPECT_NEAR(all.mean, .8 * 40 + .2 * 350, 6);
}

TEST(Workload, LogNormalKeepsItsMeanUnderTheMaximum) {
  for (const double sigma : {.5, 1.0, 2.0}) {
    const auto lengths = Lengths::lognormal(256, 2048, sigma);
    ASSERT_TRUE(lengths);
    const Summary all = summarize(
        outputs(make({.num_requests = 20000, .prompt = Lengths::fixed(1), .output = *lengths})));
    EXPECT_NEAR(all.mean, 256, 15) << sigma;
    EXPECT_LT(all.p50, all.mean) << sigma;
    EXPECT_GE(all.min, 1) << sigma;
    EXPECT_LE(all.max, 2048) << sigma;
  }
}

TEST(Workload, PoissonArrivalsHaveTheirRate) {
  const Summary between =
      intervals(make({.num_requests = 10000, .prompt = Lengths::fixed(1), .rate = 4}));
  EXPECT_NEAR(between.mean, .25, .01);
  EXPECT_NEAR(between.std / between.mean, 1, .05);  // as of an exponential distribution
}

TEST(Workload, BurstinessChangesTheSpreadAndNotTheRate) {
  for (const double burstiness : {.25, 4.0}) {
    const Summary between = intervals(make(
        {.num_requests = 20000, .prompt = Lengths::fixed(1), .rate = 4, .burstiness = burstiness}));
    EXPECT_NEAR(between.mean, .25, .02) << burstiness;
    EXPECT_NEAR(between.std / between.mean, 1 / std::sqrt(burstiness), .1 / std::sqrt(burstiness));
  }
}

TEST(Workload, ALongPromptArrivesAmongTheOthers) {
  const Workload workload = make({.num_requests = 8,
                                  .prompt = Lengths::fixed(16),
                                  .shared_tokens = 4,
                                  .rate = 2,
                                  .intruder = LongPrompt{4096, 1}});
  ASSERT_EQ(workload.size(), 9u);
  EXPECT_TRUE(std::is_sorted(workload.begin(), workload.end(), [](const auto& a, const auto& b) {
    return a.arrival_s < b.arrival_s;
  }));
  const auto is_long = [](const auto& request) { return request.prompt_token_ids.size() != 20; };
  EXPECT_EQ(std::count_if(workload.begin(), workload.end(), is_long), 1);
  const auto intruder = std::find_if(workload.begin(), workload.end(), is_long);
  EXPECT_EQ(intruder->prompt_token_ids.size(), 4096u);
  EXPECT_EQ(intruder->arrival_s, 1);
}

TEST(Workload, PrioritiesAreDrawn) {
  std::set<int> seen;
  for (const WorkloadRequest& request :
       make({.num_requests = 100, .prompt = Lengths::fixed(1), .priorities = 3}))
    seen.insert(request.priority);
  EXPECT_EQ(seen, (std::set<int>{0, 1, 2}));
}

TEST(Workload, RefusesWhatIsOutOfRange) {
  const auto refused = [](const SyntheticSpec& spec, ErrorCode code, std::string_view word) {
    const auto workload = make_workload(spec, kTokens);
    ASSERT_FALSE(workload);
    EXPECT_EQ(workload.error().code, code);
    EXPECT_NE(workload.error().message.find(word), std::string::npos) << workload.error().message;
  };
  refused({.num_requests = 0}, ErrorCode::invalid_argument, "requests");
  refused({.shared_tokens = -1}, ErrorCode::invalid_argument, "shared");
  refused({.groups = 101}, ErrorCode::invalid_argument, "groups");
  refused({.rate = 0}, ErrorCode::invalid_argument, "rate");
  refused({.rate = std::nan("")}, ErrorCode::invalid_argument, "rate");
  refused({.burstiness = 0}, ErrorCode::invalid_argument, "burstiness");
  refused({.priorities = 0}, ErrorCode::invalid_argument, "priorities");
  refused({.intruder = LongPrompt{0, 1}}, ErrorCode::invalid_argument, "long");
  refused({.intruder = LongPrompt{1, -1}}, ErrorCode::invalid_argument, "long");
  refused({.num_requests = kMaxRequests}, ErrorCode::resource_exhausted, "'requests'");
  EXPECT_FALSE(make_workload({}, {5, 4}));
  EXPECT_FALSE(make_workload({}, {-1, 4}));
}

}  // namespace
}  // namespace octavo
