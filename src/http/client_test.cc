#include "http/client.h"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

#include "support/script_server.h"

namespace octavo::http {
namespace {

struct Answer {
  CallResult result;
  std::vector<std::string> events;
  bool done = false;
};

std::unique_ptr<Client> client_of(const std::string& url, bool keep_alive = true) {
  auto address = parse_address(url);
  EXPECT_TRUE(address);
  auto client = Client::create({.address = *address, .keep_alive = keep_alive});
  EXPECT_TRUE(client);
  return std::move(*client);
}

// No call of these tests takes longer, whatever goes wrong.
Call get(std::string path, double timeout_s = 20) {
  return {.method = "GET", .path = std::move(path), .timeout_s = timeout_s};
}
Call post(std::string body) {
  return {.method = "POST",
          .path = "/v1/completions",
          .headers = {{"Content-Type", "application/json"}},
          .body = std::move(body),
          .timeout_s = 20};
}

void send(Client& client, Call call, Answer& answer) {
  client.send(
      std::move(call),
      [&](const SseEvent& event, double time_s) {
        EXPECT_GE(client.now_s(), time_s);
        answer.events.push_back(event.data);
      },
      [&](const CallResult& result, double) {
        EXPECT_FALSE(answer.done);
        answer.result = result;
        answer.done = true;
      });
}

Answer answer_to(Client& client, Call call) {
  Answer answer;
  send(client, std::move(call), answer);
  client.run();
  EXPECT_TRUE(answer.done);
  return answer;
}

TEST(Client, SendsWhatItIsGivenAndReadsTheAnswer) {
  ScriptServer server([](const ScriptRequest& request, ScriptPeer& peer) {
    EXPECT_TRUE(request.head.starts_with("POST /v1/completions HTTP/1.1\r\n"));
    EXPECT_NE(request.head.find("Content-Type: application/json\r\n"), std::string::npos);
    peer.send(http_answer("404 Not Found", "application/json", request.body));
  });
  const auto client = client_of(server.url());
  const Answer answer = answer_to(*client, post("{\"a\":1}"));
  EXPECT_EQ(answer.result.end, CallEnd::answered);
  EXPECT_EQ(answer.result.status, 404);
  EXPECT_EQ(answer.result.content_type, "application/json");
  EXPECT_EQ(answer.result.body, "{\"a\":1}");
}

TEST(Client, ReadsAStreamHoweverItIsCut) {
  ScriptServer server([](const ScriptRequest&, ScriptPeer& peer) {
    peer.send(kStreamHead);
    peer.send(http_chunk("data: o"));
    peer.send(http_chunk("ne\n"));
    peer.send(http_chunk("\ndata: two\n\n: comment\n\ndata: [DONE]\n\n"));
    peer.send(kLastChunk);
  });
  const auto client = client_of(server.url());
  const Answer answer = answer_to(*client, post("{}"));
  EXPECT_EQ(answer.events, (std::vector<std::string>{"one", "two", "[DONE]"}));
  EXPECT_EQ(answer.result.end, CallEnd::answered);
  EXPECT_EQ(answer.result.body, "");
}

TEST(Client, ReadsAStreamThatEndsWithItsConnection) {
  ScriptServer server([](const ScriptRequest&, ScriptPeer& peer) {
    peer.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n\r\n");
    peer.send("data: one\n\n");
    peer.close();
  });
  const auto client = client_of(server.url());
  const Answer answer = answer_to(*client, post("{}"));
  EXPECT_EQ(answer.events, std::vector<std::string>{"one"});
  EXPECT_EQ(answer.result.end, CallEnd::answered);
}

TEST(Client, SaysHowAnAnswerFailed) {
  ScriptServer server([](const ScriptRequest& request, ScriptPeer& peer) {
    if (request.path() == "/stream") {
      peer.send(kStreamHead);
      peer.send(http_chunk("data: one\n\n"));
    }
    if (request.path() == "/length") peer.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nfour");
    if (request.path() == "/garbage") peer.send("SSH-2.0-OpenSSH_9.2\r\n\r\n");
    if (request.path() == "/never") peer.wait_for_end();
    peer.close();
  });
  const auto client = client_of(server.url());
  Answer stream, length, garbage, nothing, never;
  send(*client, get("/stream"), stream);
  send(*client, get("/length"), length);
  send(*client, get("/garbage"), garbage);
  send(*client, get("/nothing"), nothing);
  send(*client, get("/never", 0.05), never);
  client->run();
  EXPECT_EQ(stream.result.end, CallEnd::cut);
  EXPECT_EQ(stream.events, std::vector<std::string>{"one"});
  EXPECT_EQ(length.result.end, CallEnd::cut);
  EXPECT_EQ(garbage.result.end, CallEnd::not_http);
  EXPECT_EQ(nothing.result.end, CallEnd::cut);
  EXPECT_EQ(nothing.result.status, 0);
  EXPECT_EQ(never.result.end, CallEnd::timed_out);
}

TEST(Client, SaysThatNobodyListens) {
  ScriptServer server([](const ScriptRequest&, ScriptPeer&) {});
  const auto client = client_of(server.url());
  server.stop();
  EXPECT_EQ(answer_to(*client, get("/")).result.end, CallEnd::refused);
}

TEST(Client, CancelsWhatItWaitsFor) {
  std::atomic<bool> has_seen_end = false;
  ScriptServer server([&](const ScriptRequest&, ScriptPeer& peer) {
    peer.send(kStreamHead);
    peer.send(http_chunk("data: one\n\n"));
    has_seen_end = peer.wait_for_end();
  });
  const auto client = client_of(server.url());
  Answer answer;
  Client::CallId id = 0;
  id = client->send(
      post("{}"), [&](const SseEvent&, double) { client->cancel(id); },
      [&](const CallResult& result, double) { answer.result = result; });
  client->run();
  EXPECT_EQ(answer.result.end, CallEnd::cancelled);
  client->cancel(id);
  server.stop();
  EXPECT_TRUE(has_seen_end);
}

TEST(Client, UsesAConnectionAgainUnlessItMustNot) {
  for (const bool keep_alive : {true, false}) {
    std::atomic<int> most = 0;
    ScriptServer server([&](const ScriptRequest& request, ScriptPeer& peer) {
      most = request.connection;
      EXPECT_EQ(request.head.find("Connection: close") == std::string::npos, keep_alive);
      peer.send(http_answer("200 OK", "text/plain", "yes"));
    });
    const auto client = client_of(server.url(), keep_alive);
    for (int i = 0; i < 5; ++i) EXPECT_EQ(answer_to(*client, get("/")).result.body, "yes");
    EXPECT_EQ(most, keep_alive ? 0 : 4);
  }
}

TEST(Client, LeavesAConnectionThatTheServerHasClosed) {
  ScriptServer server([](const ScriptRequest&, ScriptPeer& peer) {
    peer.send("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 3\r\n\r\nyes");
    peer.close();
  });
  const auto client = client_of(server.url());
  for (int i = 0; i < 5; ++i) EXPECT_EQ(answer_to(*client, get("/")).result.body, "yes");
}

TEST(Client, KeepsManyStreamsOpenAtOnce) {
  constexpr int kStreams = 200;
  std::atomic<int> waiting = 0;
  ScriptServer server([&](const ScriptRequest&, ScriptPeer& peer) {
    peer.send(kStreamHead);
    ++waiting;
    // Ends by itself only once all others are there, or after ten seconds.
    for (int i = 0; i < 10'000 && waiting < kStreams; ++i) ::usleep(1000);
    peer.send(http_chunk("data: end\n\n"));
    peer.send(kLastChunk);
  });
  const auto client = client_of(server.url());
  std::vector<Answer> answers(kStreams);
  for (Answer& answer : answers) send(*client, post("{}"), answer);
  client->run();
  EXPECT_EQ(waiting, kStreams);
  for (const Answer& answer : answers) EXPECT_EQ(answer.events.size(), 1u);
}

TEST(Client, CallsAtATimeAndFromOtherThreads) {
  ScriptServer server([](const ScriptRequest&, ScriptPeer&) {});
  const auto client = client_of(server.url());
  std::vector<int> order;
  client->at(0.02, [&] { order.push_back(2); });
  client->at(0.01, [&] { order.push_back(1); });
  client->at(1e6, [&] { order.push_back(3); });
  client->at(0.03, [&] { std::thread([&] { client->post([&] { client->stop(); }); }).join(); });
  client->run();
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
}

TEST(Client, CanBeDroppedWithCallsUnderWay) {
  ScriptServer server([](const ScriptRequest&, ScriptPeer& peer) { peer.wait_for_end(); });
  auto client = client_of(server.url());
  Answer answer;
  send(*client, post("{}"), answer);
  client->at(0.02, [&] { client->stop(); });
  client->run();
  client.reset();
  EXPECT_FALSE(answer.done);
}

TEST(ServerAddress, ReadsUrls) {
  const auto plain = parse_address("http://localhost:8000/");
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->host, "localhost");
  EXPECT_EQ(plain->port, 8000);
  EXPECT_EQ(plain->path, "");
  const auto tls = parse_address("https://[::1]/api/");
  ASSERT_TRUE(tls);
  EXPECT_TRUE(tls->is_tls);
  EXPECT_EQ(tls->host, "::1");
  EXPECT_EQ(tls->port, 443);
  EXPECT_EQ(tls->path, "/api");
  const auto local = parse_address("unix:/tmp/a.sock");
  ASSERT_TRUE(local);
  EXPECT_EQ(local->uds, "/tmp/a.sock");
}

TEST(ServerAddress, RefusesWhatIsNone) {
  for (const char* url : {"", "localhost:8000", "ftp://a", "http://", "http://:80", "http://a:0",
                          "http://a:65536", "http://a:x", "http://[::1", "http://[::1]x",
                          "http://u:p@a", "http://a b", "http://a/\r\nX: y", "http://a/?x"})
    EXPECT_FALSE(parse_address(url)) << url;
}

}  // namespace
}  // namespace octavo::http
