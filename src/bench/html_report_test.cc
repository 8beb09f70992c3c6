#include "bench/html_report.h"

#include <gtest/gtest.h>

#include "support/xml_check.h"

namespace octavo {
namespace {

RunResult make_run(const std::string& name, double token_time_s) {
  RunResult run{.name = name, .settings = {{"mode", name}}, .block_size = 16, .num_blocks = 3};
  for (int i = 0; i < 4; ++i) {
    RequestRecord request{.arrival_s = 0.1 * i, .scheduled_s = 0.1 * i, .prompt_tokens = 8};
    for (int t = 1; t <= 5; ++t) request.token_s.push_back(0.1 * i + t * token_time_s);
    request.end_s = request.token_s.back();
    request.finish_reason = "length";
    run.requests.push_back(request);
    run.steps.push_back({.time_s = 0.1 * i,
                         .step_s = .1,
                         .running = i,
                         .decode_tokens = i,
                         .blocks_held = i,
                         .blocks_free = 3 - i});
  }
  run.block_map = {{.time_s = 0, .blocks = {{0, 100}, {}, {BlockCell::kCached, 100}}}};
  return run;
}

BenchResult make_result(int runs) {
  BenchResult result{.title = "Paged & <contiguous>",
                     .model = "<script>alert(1)</script>",
                     .machine = "\"2\" cores",
                     .command = "octavo bench compare 'm'"};
  result.settings = {{"<k>", "<v>"}};
  result.notes = {"A <note>."};
  for (int i = 0; i < runs; ++i)
    result.runs.push_back(make_run("run <" + std::to_string(i) + ">", .02 + .01 * i));
  return result;
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

size_t count(const std::string& text, std::string_view part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

// Everything between <body> and </body>, whose elements are all closed. <!DOCTYPE> and <meta> in
// front of it are HTML, not XML.
std::string body(const std::string& page) {
  const size_t from = page.find("<body>"), to = page.find("</body>");
  return page.substr(from, to + 7 - from);
}

TEST(HtmlReport, IsWellFormedForAnyNumberOfRuns) {
  for (const int runs : {0, 1, 2, 3, 12})
    EXPECT_EQ(testing::XmlCheck::fault(body(html_report(make_result(runs)))), "") << runs;
}

TEST(HtmlReport, NamesEveryRunAndWhatWasRun) {
  const std::string page = html_report(make_result(3));
  for (const char* text : {"run &lt;0&gt;", "run &lt;1&gt;", "run &lt;2&gt;", "&quot;2&quot; cores",
                           "octavo bench compare &#39;m&#39;", "&lt;k&gt; = &lt;v&gt;",
                           "A &lt;note&gt;.", "<title>Paged &amp; &lt;contiguous&gt;</title>"})
    EXPECT_TRUE(has(page, text)) << text;
}

TEST(HtmlReport, TextOfAResultIsNeverMarkup) {
  BenchResult result = make_result(2);
  const std::string evil = "\"'><script>x</script>&";
  result.title = result.model = result.machine = result.command = evil;
  result.settings = {{evil, evil}};
  result.notes = {evil};
  for (RunResult& run : result.runs) {
    run.name = evil;
    run.settings = {{evil, evil}};
  }
  const std::string page = html_report(result);
  EXPECT_FALSE(has(page, "<script"));
  EXPECT_EQ(testing::XmlCheck::fault(body(page)), "");
}

TEST(HtmlReport, FetchesNothing) {
  const std::string page = html_report(make_result(3));
  for (const char* word : {"http", "//", "src=", "href=", "url(", "@import", "<script", "<link"})
    EXPECT_FALSE(has(page, word)) << word;
}

TEST(HtmlReport, ShowsFiguresWithTheirRatio) {
  BenchResult result = make_result(2);
  const std::string_view row = "<td>TTFT P50, ms</td><td>20</td><td>30</td><td class=\"ratio";
  // One round has no verdict: it may be noise.
  EXPECT_TRUE(has(html_report(result), std::string(row) + "\""));
  for (int round = 0; round < 3; ++round)
    for (size_t i = 0; i < 2; ++i)
      result.runs[i].rounds.push_back({{"median_ttft_ms", i == 0 ? 20 : 30 + 0.01 * round}});
  EXPECT_TRUE(has(html_report(result), "<td class=\"ratio bad\""));
  result.runs[1].rounds = {{{"median_ttft_ms", 15}}, {{"median_ttft_ms", 22}}};
  EXPECT_FALSE(has(html_report(result), "<td class=\"ratio bad\""));
  EXPECT_FALSE(has(html_report(result), "<td class=\"ratio good\""));
}

TEST(HtmlReport, TheAnswerIsFirst) {
  const std::string page = html_report(make_result(2));
  const size_t answer = page.find("Output tokens per second: "), table = page.find("<table");
  ASSERT_NE(answer, std::string::npos);
  EXPECT_LT(answer, table);
  EXPECT_LT(page.find("class=\"bar"), table);
}

TEST(HtmlReport, ManyRunsAreRowsAndNoTwoHaveOneColour) {
  const std::string page = html_report(make_result(11));
  EXPECT_TRUE(has(page, "<tr><td><i class=\"key c10\"></i>run &lt;10&gt;</td>"));
  EXPECT_TRUE(has(page, "<details>"));
  EXPECT_EQ(count(page, "<th class=\"ratio\">"), 1u);
}

TEST(HtmlReport, SettingsThatAllHaveAreSaidOnce) {
  BenchResult result = make_result(2);
  for (RunResult& run : result.runs) run.settings["block_size"] = "32";
  const std::string page = html_report(result);
  EXPECT_TRUE(has(page, "The same in all runs: block_size = 32"));
  EXPECT_EQ(count(page, "block_size"), 1u);
  EXPECT_TRUE(has(page, "<th>mode</th>"));
}

TEST(HtmlReport, OfASweepTheHeadlineIsDrawnOverItsValues) {
  BenchResult result = make_result(4);
  result.x_label = "tokens of context";
  result.headline = {"median_tpot_ms"};
  for (size_t i = 0; i < 4; ++i) {
    result.runs[i].x = i < 2 ? 64 : 1024;
    result.runs[i].series = i % 2 == 0 ? "without" : "with";
    result.runs[i].group = i < 2 ? "64" : "1024";
  }
  const std::string page = html_report(result);
  EXPECT_EQ(testing::XmlCheck::fault(body(page)), "");
  EXPECT_EQ(count(page, "class=\"panel\""), 1u);
  EXPECT_TRUE(has(page, "<tr><td>1024</td>"));
  EXPECT_TRUE(has(page, "at 1024 tokens of context: "));
}

TEST(HtmlReport, WhatWasNotMeasuredIsNotPlotted) {
  BenchResult result = make_result(2);
  for (RunResult& run : result.runs)
    for (RequestRecord& request : run.requests) {
      request.token_s.resize(1);
      run.server = {{.time_s = 0, .waiting = 0}, {.time_s = 1, .waiting = 0}};
    }
  const std::string page = html_report(result);
  EXPECT_FALSE(has(page, "nothing was measured"));
  EXPECT_FALSE(has(page, "Time between tokens (ITL)"));
  EXPECT_FALSE(has(page, "What the server said"));
  EXPECT_FALSE(has(page, "e-0"));
}

TEST(HtmlReport, HasOneColumnOfRatiosLessThanRuns) {
  EXPECT_EQ(count(html_report(make_result(3)), ">ratio<"), 2u);
}

TEST(HtmlReport, ShowsBlocksWhereThereIsAMap) {
  BenchResult result = make_result(2);
  EXPECT_TRUE(has(html_report(result), "Blocks of the KV cache"));
  for (RunResult& run : result.runs) run.block_map.clear();
  EXPECT_FALSE(has(html_report(result), "Blocks of the KV cache"));
}

TEST(HtmlReport, RunsWithoutAnythingAreNoTrouble) {
  BenchResult result{.title = "empty"};
  result.runs = {RunResult{.name = "a"}, RunResult{.name = "b"}};
  const std::string page = html_report(result);
  EXPECT_EQ(testing::XmlCheck::fault(body(page)), "");
  EXPECT_FALSE(has(page, "nan"));
  EXPECT_FALSE(has(page, "inf"));
}

TEST(HtmlReport, ShowsWhatAServerSaidAndHowRequestsFailed) {
  BenchResult result;
  RunResult& run = result.runs.emplace_back();
  run.requests = {{.arrival_s = 0, .token_s = {1, 2}, .end_s = 2, .finish_reason = "stop"},
                  {.arrival_s = 1, .end_s = 3, .finish_reason = "status 503"}};
  run.server = {{.time_s = 0, .kv_usage = .25}, {.time_s = 1, .kv_usage = .5}};
  const std::string page = html_report(result);
  for (const char* text : {"What the server said", "KV cache in use, %", "Requests in flight",
                           "Output tokens per second", "Requests that failed", "status 503"})
    EXPECT_NE(page.find(text), std::string::npos) << text;
  EXPECT_EQ(page.find("Cores busy"), std::string::npos);
}

}  // namespace
}  // namespace octavo
