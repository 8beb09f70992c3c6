#include "bench/serve_load.h"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>

#include "bench/figures.h"
#include "support/script_server.h"

namespace octavo {
namespace {

using nlohmann::json;

// Answers with as many tokens as are asked for; or as `answer` says, if it knows the prompt.
class StubServer {
 public:
  using Answer = std::function<bool(const json& body, ScriptPeer& peer)>;

  explicit StubServer(Answer answer = {})
      : answer_(std::move(answer)),
        server_([this](const ScriptRequest& request, ScriptPeer& peer) { serve(request, peer); }) {}

  std::string url() const { return server_.url(); }
  void stop() { server_.stop(); }

  std::vector<json> bodies() const {
    const std::lock_guard lock(mutex_);
    return bodies_;
  }
  int most_running() const { return most_running_; }
  std::atomic<int> scrapes = 0;
  std::atomic<bool> has_metrics = false;

 private:
  void serve(const ScriptRequest& request, ScriptPeer& peer) {
    if (request.path() == "/v1/models")
      return peer.send(http_answer("200 OK", "application/json", R"({"data":[{"id":"stub"}]})"));
    if (request.path() == "/metrics" && has_metrics) {
      ++scrapes;
      return peer.send(http_answer("200 OK", "text/plain",
                                   "vllm:kv_cache_usage_perc{engine=\"0\"} 0.5\n"
                                   "process_resident_memory_bytes 2097152\n"));
    }
    if (!request.head.starts_with("POST "))
      return peer.send(http_answer("404 Not Found", "text/plain", ""));
    const json body = json::parse(request.body);
    {
      const std::lock_guard lock(mutex_);
      bodies_.push_back(body);
    }
    const int running = ++running_;
    most_running_ = std::max(most_running_.load(), running);
    if (!answer_ || !answer_(body, peer)) stream(body["max_tokens"], peer);
    --running_;
  }

  static void stream(int tokens, ScriptPeer& peer) {
    peer.send(kStreamHead);
    for (int i = 0; i < tokens; ++i)
      peer.send(http_chunk("data: {\"choices\":[{\"text\":\" a\"}]}\n\n"));
    peer.send(
        http_chunk("data: {\"choices\":[{\"text\":\"\",\"finish_reason\":\"length\"}],"
                   "\"usage\":{\"prompt_tokens\":8,"
                   "\"completion_tokens\":" +
                   std::to_string(tokens) + "}}\n\ndata: [DONE]\n\n"));
    peer.send(kLastChunk);
  }

  Answer answer_;
  mutable std::mutex mutex_;
  std::vector<json> bodies_;
  std::atomic<int> running_ = 0, most_running_ = 0;
  ScriptServer server_;
};

ServeLoadOptions options_for(const std::string& url) {
  ServeLoadOptions options;
  options.client.address = *http::parse_address(url);
  options.timeout_s = 20;
  options.sample_server = false;
  return options;
}

std::vector<Dialogue> dialogues(std::vector<std::string> texts, int tokens = 3) {
  std::vector<Dialogue> out;
  for (std::string& text : texts)
    out.push_back({.turns = {{.text = std::move(text), .output_tokens = tokens}}});
  return out;
}

TEST(ServeLoad, MeasuresEachRequest) {
  StubServer server;
  const auto result =
      run_serve_load(dialogues({"a", "b", "c", "d", "e"}), options_for(server.url()));
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->bench.model, "stub");
  const RunFigures figures = figures_of(result->bench.runs[0]);
  EXPECT_EQ(figures.completed, 5);
  EXPECT_EQ(figures.total_output_tokens, 15);
  EXPECT_EQ(figures.total_input_tokens, 40);
  EXPECT_EQ(figures.ttft_s.count, 5);
  EXPECT_EQ(figures.itl_s.count, 10);
  for (const RequestRecord& request : result->bench.runs[0].requests) {
    EXPECT_GE(request.token_s.front(), request.arrival_s);
    EXPECT_GE(request.end_s, request.token_s.back());
  }
  // One more before the clock started.
  EXPECT_EQ(server.bodies().size(), 6u);
  EXPECT_EQ(server.bodies()[1]["model"], "stub");
}

TEST(ServeLoad, SendsNoMoreAtOnceThanIsAllowed) {
  std::atomic<int> seen = 0;
  StubServer server([&](const json&, ScriptPeer&) {
    // Slow enough that one more would be seen.
    ::usleep(2000);
    ++seen;
    return false;
  });
  ServeLoadOptions options = options_for(server.url());
  options.max_concurrency = 3;
  const auto result = run_serve_load(dialogues(std::vector<std::string>(20, "a")), options);
  ASSERT_TRUE(result);
  EXPECT_EQ(seen, 21);
  EXPECT_LE(server.most_running(), 3);
  EXPECT_EQ(figures_of(result->bench.runs[0]).max_concurrent, 3);
}

TEST(ServeLoad, WaitsForTheTimeOfARequest) {
  StubServer server;
  auto timed = dialogues({"a", "b", "c"});
  timed[1].arrival_s = 0.02;
  timed[2].arrival_s = 0.05;
  const auto result = run_serve_load(timed, options_for(server.url()));
  ASSERT_TRUE(result);
  const auto& requests = result->bench.runs[0].requests;
  EXPECT_GE(requests[1].arrival_s, 0.02);
  EXPECT_GE(requests[2].arrival_s, 0.05);
}

TEST(ServeLoad, ContinuesAConversationByItsAnswers) {
  StubServer server;
  const std::vector<Dialogue> one = {{.turns = {{.text = "one", .output_tokens = 2},
                                                {.text = "two", .output_tokens = 1},
                                                {.text = "three", .output_tokens = 1}}}};
  ServeLoadOptions options = options_for(server.url());
  options.num_warmups = 0;
  ASSERT_TRUE(run_serve_load(one, options));
  const auto bodies = server.bodies();
  ASSERT_EQ(bodies.size(), 3u);
  EXPECT_EQ(bodies[0]["prompt"], "one");
  EXPECT_EQ(bodies[1]["prompt"], "one a a\ntwo");
  EXPECT_EQ(bodies[2]["prompt"], "one a a\ntwo a\nthree");
}

TEST(ServeLoad, CountsFailuresByKind) {
  StubServer server([](const json& body, ScriptPeer& peer) {
    const std::string prompt = body["prompt"];
    if (prompt == "shed" || prompt == "broken")
      peer.send(http_answer(prompt == "shed" ? "429 Too Many" : "500 Oh", "application/json",
                            R"({"error":{"message":"because"}})"));
    else if (prompt == "cut" || prompt == "mute")
      peer.send(prompt == "mute" ? "" : kStreamHead);
    else
      return false;
    if (prompt == "cut") peer.send(http_chunk("data: {\"choices\":[{\"text\":\"a\"}]}\n\n"));
    if (prompt == "cut" || prompt == "mute") peer.close();
    return true;
  });
  const auto result = run_serve_load(dialogues({"shed", "shed", "broken", "cut", "mute", "fine"}),
                                     options_for(server.url()));
  ASSERT_TRUE(result);
  const RunFigures figures = figures_of(result->bench.runs[0]);
  EXPECT_EQ(figures.completed, 1);
  EXPECT_EQ(figures.rejected, 2);
  EXPECT_EQ(figures.failed, 3);
  EXPECT_EQ(failures_of(result->bench.runs[0]),
            (std::map<std::string, int>{{"status 429", 2}, {"status 500", 1}, {"cut stream", 2}}));
  std::string notes;
  for (const std::string& note : result->bench.notes) notes += note + "\n";
  EXPECT_NE(notes.find("2 requests failed: status 429, 'because'"), std::string::npos) << notes;
}

TEST(ServeLoad, NamesTheFirstFailure) {
  StubServer server([](const json& body, ScriptPeer& peer) {
    if (body["prompt"] != "bad") return false;
    peer.send(http_answer("400 Bad", "application/json", R"({"error":{"message":"because"}})"));
    return true;
  });
  const auto all = run_serve_load(dialogues({"bad", "bad"}), options_for(server.url()));
  ASSERT_TRUE(all);
  EXPECT_EQ(all->requests, 2);
  EXPECT_EQ(all->failed, 2);
  EXPECT_EQ(all->first_failure, "status 400, 'because'");
  EXPECT_FALSE(all->was_stopped);
  const auto none = run_serve_load(dialogues({"fine"}), options_for(server.url()));
  ASSERT_TRUE(none);
  EXPECT_EQ(none->failed, 0);
  EXPECT_EQ(none->first_failure, "");
}

TEST(ServeLoad, GivesUpOnARequestThatTakesTooLong) {
  StubServer server([](const json& body, ScriptPeer& peer) {
    return body["prompt"] == "never" && (peer.wait_for_end(), true);
  });
  ServeLoadOptions options = options_for(server.url());
  options.timeout_s = 0.5;
  const auto result = run_serve_load(dialogues({"never", "fine"}), options);
  ASSERT_TRUE(result);
  EXPECT_EQ(failures_of(result->bench.runs[0]), (std::map<std::string, int>{{"timeout", 1}}));
}

TEST(ServeLoad, ReadsMetricsAtLeastAtBothEnds) {
  StubServer server;
  server.has_metrics = true;
  ServeLoadOptions options = options_for(server.url());
  options.sample_server = true;
  const auto result = run_serve_load(dialogues({"a"}), options);
  ASSERT_TRUE(result);
  EXPECT_GE(server.scrapes, 2);
  for (const std::string& note : result->bench.notes)
    EXPECT_NE(note.find("times only"), std::string::npos) << note;
  EXPECT_EQ(result->bench.notes.empty(), result->bench.runs[0].server.size() >= 5);
  const auto& samples = result->bench.runs[0].server;
  ASSERT_FALSE(samples.empty());
  EXPECT_EQ(samples[0].kv_usage, 0.5);
  EXPECT_EQ(samples[0].memory_mib, 2);
  EXPECT_FALSE(samples[0].running);
  EXPECT_EQ(figures_of(result->bench.runs[0]).server_memory_mib->max, 2);
}

TEST(ServeLoad, SaysThatAServerHasNoMetrics) {
  StubServer server;
  ServeLoadOptions options = options_for(server.url());
  options.sample_server = true;
  const auto result = run_serve_load(dialogues({"a"}), options);
  ASSERT_TRUE(result);
  EXPECT_TRUE(result->bench.runs[0].server.empty());
  ASSERT_EQ(result->bench.notes.size(), 1u);
  EXPECT_NE(result->bench.notes[0].find("no /metrics"), std::string::npos);
}

TEST(ServeLoad, SaysAtOnceThatTheServerIsNotThere) {
  StubServer server;
  const ServeLoadOptions options = options_for(server.url());
  server.stop();
  const auto result = run_serve_load(dialogues({"a"}), options);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::io_error);
  EXPECT_NE(result.error().message.find("refused"), std::string::npos);
}

TEST(ServeLoad, SaysAtOnceThatTheServerDoesNotAnswer) {
  StubServer server([](const json&, ScriptPeer& peer) {
    peer.send(http_answer("401 No", "application/json", R"({"error":{"message":"no key"}})"));
    return true;
  });
  const auto result = run_serve_load(dialogues({"a"}), options_for(server.url()));
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().message.find("status 401 'no key'"), std::string::npos)
      << result.error().message;
}

TEST(ServeLoad, EndsWhenItIsStopped) {
  std::stop_source stop;
  StubServer server([&](const json& body, ScriptPeer& peer) {
    if (body["prompt"] != "never") return false;
    stop.request_stop();
    peer.wait_for_end();
    return true;
  });
  ServeLoadOptions options = options_for(server.url());
  options.max_concurrency = 1;
  options.stop = stop.get_token();
  const auto result = run_serve_load(dialogues({"fine", "never", "later"}), options);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->bench.runs[0].requests.size(), 2u);
  EXPECT_EQ(failures_of(result->bench.runs[0]), (std::map<std::string, int>{{"cancelled", 1}}));
  EXPECT_TRUE(result->was_stopped);
}

TEST(ServeLoad, RefusesTurnsThatTheEndpointCannotTake) {
  StubServer server;
  const std::vector<Dialogue> one = {{.turns = {{.messages = "[]"}}}};
  const auto result = run_serve_load(one, options_for(server.url()));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::invalid_argument);
}

}  // namespace
}  // namespace octavo
