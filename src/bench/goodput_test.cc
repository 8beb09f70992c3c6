#include "bench/goodput.h"

#include <gtest/gtest.h>

#include "bench/figures.h"

namespace octavo {
namespace {

using Bounds = std::map<std::string, double>;

// TTFT 100 ms, gaps of 20 and 60 ms, TPOT 40 ms, E2EL 180 ms.
RequestRecord request(double arrival_s = 0) {
  return {.arrival_s = arrival_s,
          .token_s = {arrival_s + .1, arrival_s + .12, arrival_s + .18},
          .end_s = arrival_s + .2,
          .prompt_tokens = 4,
          .finish_reason = "length"};
}

TEST(Goodput, ReadsBounds) {
  EXPECT_EQ(*parse_goodput("ttft:500 tpot:50"), (Bounds{{"ttft", 500}, {"tpot", 50}}));
  EXPECT_EQ(*parse_goodput("itl:2.5,e2el:1000"), (Bounds{{"itl", 2.5}, {"e2el", 1000}}));
  EXPECT_EQ(*parse_goodput(""), Bounds());
  for (const char* text : {"ttft", "ttft:", "ttft:0", "ttft:-1", "ttft:nan", "speed:1", ":1",
                           "ttft:1 ttft:2", "http://127.0.0.1:80"})
    EXPECT_FALSE(parse_goodput(text)) << text;
}

TEST(Goodput, SaysWhatIsWrongWithABound) {
  for (const char* word : {"tpot:0.0001", "tpot:1e10", "tpot:", "tpot:fast"}) {
    const auto bounds = parse_goodput(word);
    ASSERT_FALSE(bounds) << word;
    EXPECT_NE(bounds.error().message.find("milliseconds from 0.001 to 1000000000"),
              std::string::npos)
        << bounds.error().message;
  }
  EXPECT_NE(parse_goodput("speed:1").error().message.find("MEASURE:MS"), std::string::npos);
}

TEST(Goodput, NeedsAllBoundsKept) {
  EXPECT_TRUE(is_good(request(), {}));
  EXPECT_TRUE(is_good(request(), {{"ttft", 101}, {"tpot", 41}, {"itl", 61}, {"e2el", 181}}));
  EXPECT_FALSE(is_good(request(), {{"ttft", 99}, {"tpot", 41}}));
  EXPECT_FALSE(is_good(request(), {{"ttft", 101}, {"tpot", 39}}));
  EXPECT_FALSE(is_good(request(), {{"itl", 59}}));
  EXPECT_FALSE(is_good(request(), {{"e2el", 179}}));
}

TEST(Goodput, IsOfCompletedRequestsOnly) {
  RequestRecord failed = request();
  failed.finish_reason = "cut stream";
  EXPECT_FALSE(is_good(failed, {{"ttft", 1000}}));
  RequestRecord one_token = request();
  one_token.token_s.resize(1);
  EXPECT_TRUE(is_good(one_token, {{"tpot", 0.001}}));
}

TEST(Goodput, IsAFigureOfTheRun) {
  RunResult run;
  run.requests = {request(0), request(1), request(1.8), request(0)};
  run.requests[3].finish_reason = "status 429";
  EXPECT_FALSE(figures_of(run).request_goodput);
  run.goodput_ms = {{"ttft", 101}};
  run.requests[1].token_s.front() += 0.01;
  const RunFigures figures = figures_of(run);
  EXPECT_EQ(figures.good, 2);
  EXPECT_DOUBLE_EQ(*figures.request_goodput, 1);  // in 2 s
  EXPECT_EQ(figures.completed, 3);
  EXPECT_EQ(figures.rejected, 1);
  EXPECT_EQ(figures.failed, 0);
}

}  // namespace
}  // namespace octavo
