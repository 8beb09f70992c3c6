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
  const std::string page = html_report(make_result(2));
  EXPECT_TRUE(
      has(page, "<td>TTFT P50, ms</td><td>20</td><td>30</td><td class=\"ratio bad\">1.5 x"));
  EXPECT_TRUE(has(page, "output tokens per second"));
}

TEST(HtmlReport, HasOneColumnOfRatiosLessThanRuns) {
  const std::string page = html_report(make_result(3));
  size_t columns = 0;
  for (size_t at = page.find(">ratio<"); at != std::string::npos; at = page.find(">ratio<", at + 1))
    ++columns;
  EXPECT_EQ(columns, 2u);
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
