#include "http/exchange.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <atomic>
#include <thread>
#include <vector>

#include "http/open_files.h"
#include "support/http_server.h"
#include "support/raw_client.h"

namespace octavo::http {
namespace {

using Milliseconds = std::chrono::milliseconds;

// A server whose exchanges the test answers, and one client with a request.
class ExchangeTest : public ::testing::Test {
 protected:
  ExchangeTest() : server_(serve(options_of(exchanges_))), client_(server_->port()) {}

  std::shared_ptr<Exchange> ask(RawClient& client, const std::string& request) {
    client.send(request);
    return exchanges_.take();
  }
  std::shared_ptr<Exchange> ask(const std::string& request = get_request("/")) {
    return ask(client_, request);
  }
  void expect_server_is_well() {
    RawClient client(server_->port());
    ask(client, get_request("/next"))->respond({.body = "well"});
    EXPECT_EQ(client.read_response().body, "well");
  }

  Exchanges exchanges_;
  std::unique_ptr<Server> server_;
  RawClient client_;
};

using Stream = ExchangeTest;

TEST_F(Stream, SendsEachChunkAtOnce) {
  const auto exchange = ask();
  exchange->begin_stream({.content_type = "text/event-stream"}, {});
  const RawResponse head = client_.read_response(false);
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.header("content-type"), "text/event-stream");
  EXPECT_EQ(head.header("transfer-encoding"), "chunked");
  for (const char* chunk : {"data: one\n\n", "data: two\n\n"}) {
    EXPECT_TRUE(exchange->write(chunk));
    EXPECT_EQ(client_.read_chunk(), chunk);
  }
  EXPECT_TRUE(exchange->write(""));  // would be the last chunk
  exchange->end_stream("data: [DONE]\n\n");
  EXPECT_EQ(client_.read_chunk(), "data: [DONE]\n\n");
  EXPECT_EQ(client_.read_chunk(), "");
  ask()->respond({.body = "next"});
  EXPECT_EQ(client_.read_response().body, "next");
}

TEST_F(Stream, BeginsWithItsBody) {
  const auto exchange = ask();
  exchange->begin_stream({.body = "first"}, {});
  exchange->end_stream();
  EXPECT_EQ(client_.read_response().body, "first");
}

TEST_F(Stream, KeepsPipelinedRequestsForLater) {
  std::string requests;
  for (int i = 0; i < 10; ++i) requests += get_request("/" + std::to_string(i));
  auto exchange = ask(requests);
  exchange->begin_stream({}, {});
  exchange->write("of 0");
  EXPECT_EQ(client_.read_until("of 0\r\n").substr(0, 15), "HTTP/1.1 200 OK");
  exchange->end_stream();
  EXPECT_EQ(client_.read_chunk(), "");
  for (int i = 1; i < 10; ++i) {
    exchange = exchanges_.take();
    EXPECT_EQ(exchange->request().path, "/" + std::to_string(i));
    exchange->respond({.body = exchange->request().path});
    EXPECT_EQ(client_.read_response().body, "/" + std::to_string(i));
  }
}

TEST_F(Stream, EndsWithTheConnectionForOldClients) {
  const auto exchange = ask("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  exchange->begin_stream({}, {});
  exchange->write("one,");
  EXPECT_TRUE(client_.read_until("one,").ends_with("\r\n\r\none,"));
  exchange->end_stream("two");
  EXPECT_EQ(client_.read_to_end(), "two");
}

TEST_F(Stream, HasNoBodyForHead) {
  const auto exchange = ask("HEAD / HTTP/1.1\r\nHost: h\r\n\r\n");
  exchange->begin_stream({.body = "a"}, {});
  exchange->write("b");
  exchange->end_stream("c");
  EXPECT_EQ(client_.read_response(false).status, 200);
  ask()->respond({.body = "next"});
  EXPECT_EQ(client_.read_response().body, "next");
}

TEST_F(Stream, IsKeptAliveBetweenChunks) {
  const auto exchange = ask();
  exchange->begin_stream({}, {.keep_alive_interval = Milliseconds(5), .keep_alive = ": wait\n\n"});
  client_.read_response(false);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(client_.read_chunk(), ": wait\n\n");
  for (int i = 0; i < 50; ++i) {
    const std::string data = std::string(1000, static_cast<char>('a' + i % 26));
    exchange->write(data);
    std::string chunk = client_.read_chunk();
    while (chunk == ": wait\n\n") chunk = client_.read_chunk();
    EXPECT_EQ(chunk, data);
  }
  exchange->end_stream();
  std::string chunk = client_.read_chunk();
  while (chunk == ": wait\n\n") chunk = client_.read_chunk();
  EXPECT_EQ(chunk, "");
  // Nothing comes after the end.
  ask()->respond({.body = "next"});
  EXPECT_EQ(client_.read_response().body, "next");
}

TEST_F(Stream, IsNotKeptAliveWhileItSpeaks) {
  const auto exchange = ask();
  exchange->begin_stream({}, {.keep_alive_interval = std::chrono::hours(1), .keep_alive = ":"});
  for (int i = 0; i < 100; ++i) exchange->write("x");
  exchange->end_stream();
  EXPECT_EQ(client_.read_response().body, std::string(100, 'x'));
}

TEST_F(Stream, OfASlowReaderIsBounded) {
  RawClient slow(server_->port(), "127.0.0.1", 4096);
  const auto exchange = ask(slow, get_request("/"));
  EXPECT_FALSE(exchange->write("before the stream"));
  exchange->begin_stream({}, {.max_pending_bytes = 100'000});
  const std::string chunk(10'000, 'x');
  // What the systems of both sides take is not ours to bound.
  size_t taken = 0, refusals = 0;
  while (refusals < 50) {
    ASSERT_LT(taken, 10'000u);
    if (exchange->write(chunk)) {
      ++taken;
    } else {
      ++refusals;
      std::this_thread::sleep_for(Milliseconds(1));
    }
  }
  exchange->end_stream("too slow");
  const RawResponse response = slow.read_response();
  EXPECT_EQ(response.body.size(), taken * chunk.size() + 8);
  EXPECT_TRUE(response.body.ends_with("xtoo slow"));
}

// Each of them alone is more than the bound, so that of those there is another one.
TEST_F(Stream, OfLargeChunksIsBoundedByTheirNumber) {
  RawClient slow(server_->port(), "127.0.0.1", 4096);
  const auto exchange = ask(slow, get_request("/"));
  exchange->begin_stream({}, {.max_pending_bytes = 1000});
  const std::string chunk(10 << 20, 'x');
  size_t taken = 0;
  while (taken < 20 && exchange->write(chunk)) ++taken;
  EXPECT_GT(taken, 1u);
  EXPECT_LT(taken, 20u);
  exchange->end_stream("too slow");
  EXPECT_EQ(slow.read_response().body.size(), taken * chunk.size() + 8);
}

TEST_F(Stream, OfASlowReaderTakesMoreWhenItHasRead) {
  const auto exchange = ask();
  exchange->begin_stream({}, {.max_pending_bytes = 1000});
  client_.read_response(false);
  const std::string chunk(900, 'x');
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(eventually([&] { return exchange->write(chunk); }));
    ASSERT_EQ(client_.read_chunk(), chunk);
  }
}

TEST_F(Stream, TellsWhenTheReaderHasAllOfIt) {
  const auto exchange = ask();
  exchange->begin_stream({}, {.max_pending_bytes = size_t{64} << 20});
  client_.read_response(false);
  const std::string chunk(32 << 20, 'x');  // more than the systems of both sides take
  ASSERT_TRUE(exchange->write(chunk));
  std::atomic<bool> told{false};
  exchange->when_written([&] { told = true; });
  std::this_thread::sleep_for(Milliseconds(20));
  EXPECT_FALSE(told);
  EXPECT_EQ(client_.read_chunk().size(), chunk.size());
  EXPECT_TRUE(eventually([&] { return told.load(); }));
}

TEST_F(Stream, TellsWhenTheReaderHasGone) {
  RawClient leaving(server_->port(), "127.0.0.1", 4096);
  const auto exchange = ask(leaving, get_request("/"));
  exchange->begin_stream({}, {.max_pending_bytes = size_t{64} << 20});
  ASSERT_TRUE(exchange->write(std::string(32 << 20, 'x')));
  Mailbox<int> told;
  exchange->when_written([&] { told.put(1); });
  exchange->when_written([&] { told.put(2); });
  leaving.close();
  EXPECT_EQ(told.take(), 1);
  EXPECT_EQ(told.take(), 2);
}

TEST_F(Stream, ThatIsDroppedIsCut) {
  auto exchange = ask();
  exchange->begin_stream({}, {});
  exchange->write("part");
  client_.read_until("part\r\n");
  exchange.reset();
  EXPECT_EQ(client_.read_to_end(), "");
  expect_server_is_well();
}

TEST_F(ExchangeTest, DroppedWithoutAnAnswerIsAMistake) {
  ask().reset();
  EXPECT_EQ(client_.read_response().status, 500);
  ask()->respond({.body = "next"});
  EXPECT_EQ(client_.read_response().body, "next");
}

TEST_F(ExchangeTest, DroppedAfterTheClientHasEndedItsSideSaysNothing) {
  auto exchange = ask();
  Mailbox<bool> gone;
  exchange->on_disconnect([&] { gone.put(true); });
  client_.end_sending();
  gone.take();
  exchange.reset();
  EXPECT_EQ(client_.read_to_end(), "");
}

TEST_F(ExchangeTest, TakesOneAnswer) {
  const auto exchange = ask();
  exchange->respond({.body = "one"});
  exchange->respond({.body = "two"});
  exchange->begin_stream({.body = "three"}, {});
  exchange->write("four");
  exchange->end_stream("five");
  EXPECT_EQ(client_.read_response().body, "one");
  const auto next = ask();
  exchange->respond({.body = "six"});
  next->respond({.body = "seven"});
  EXPECT_EQ(client_.read_response().body, "seven");
}

// --- clients that leave -----------------------------------------------------------------------

TEST_F(ExchangeTest, TellsWhenTheClientLeavesInWhateverWay) {
  using Leave = void (*)(RawClient&);
  for (const Leave leave : {Leave([](RawClient& client) { client.close(); }),
                            Leave([](RawClient& client) { client.reset(); }),
                            Leave([](RawClient& client) { client.end_sending(); })})
    for (const bool in_stream : {false, true}) {
      RawClient client(server_->port());
      const auto exchange = ask(client, get_request("/") + "GET /pipelined HTT");
      Mailbox<bool> gone;
      exchange->on_disconnect([&] { gone.put(true); });
      if (in_stream) {
        exchange->begin_stream({.body = "x"}, {});
        client.read_until("x\r\n");
      }
      leave(client);
      EXPECT_TRUE(gone.take());
      exchange->on_disconnect([&] { gone.put(true); });  // it has gone, so at once
      EXPECT_TRUE(gone.take());
      // Harmless:
      exchange->write("late");
      exchange->respond({.body = "late"});
      exchange->end_stream("late");
    }
  client_.close();
  EXPECT_TRUE(eventually([&] { return server_->num_connections() == 0; }));
  expect_server_is_well();
}

TEST_F(ExchangeTest, StillAnswersAClientThatOnlyEndedItsSide) {
  const auto exchange = ask();
  client_.end_sending();
  Mailbox<bool> gone;
  exchange->on_disconnect([&] { gone.put(true); });
  EXPECT_TRUE(gone.take());
  exchange->respond({.body = "late"});
  EXPECT_EQ(client_.read_response().body, "late");
  EXPECT_TRUE(client_.is_ended());
}

TEST_F(ExchangeTest, DoesNotCallAfterTheAnswer) {
  std::atomic<int> num_gone = 0;
  auto answered = ask();
  answered->on_disconnect([&] { ++num_gone; });
  answered->respond({});
  client_.read_response();
  auto streamed = ask();
  streamed->on_disconnect([&] { ++num_gone; });
  streamed->begin_stream({}, {});
  streamed->end_stream();
  client_.read_response();
  client_.close();
  answered->on_disconnect([&] { ++num_gone; });  // of an answer that was complete
  Mailbox<bool> done;
  streamed->post([&] { done.put(true); });
  EXPECT_TRUE(done.take());
  answered.reset();
  streamed.reset();
  EXPECT_TRUE(eventually([&] { return server_->num_connections() == 0; }));
  EXPECT_EQ(num_gone, 0);
}

TEST_F(ExchangeTest, CallsWorkInOrderOnOneThread) {
  const auto exchange = ask();
  client_.close();
  std::vector<int> order;
  std::vector<std::thread::id> threads;
  Mailbox<bool> done;
  for (int i = 0; i < 100; ++i)
    exchange->post([&, i] {
      order.push_back(i);
      threads.push_back(std::this_thread::get_id());
      if (i == 99) done.put(true);
    });
  EXPECT_TRUE(done.take());
  for (int i = 0; i < 100; ++i) EXPECT_EQ(order[static_cast<size_t>(i)], i);
  EXPECT_EQ(std::vector<std::thread::id>(100, threads[0]), threads);
  EXPECT_NE(threads[0], std::this_thread::get_id());
}

// --- the end of the server --------------------------------------------------------------------

TEST_F(ExchangeTest, MayOutliveTheServer) {
  auto open = ask();
  RawClient other(server_->port());
  auto stream = ask(other, get_request("/"));
  stream->begin_stream({.body = "x"}, {.keep_alive_interval = Milliseconds(1), .keep_alive = ":"});
  other.read_until("x\r\n");
  server_.reset();
  for (const auto& exchange : {open, stream}) {
    EXPECT_EQ(exchange->request().path, "/");
    exchange->respond({});
    exchange->begin_stream({}, {.keep_alive_interval = std::chrono::hours(1), .keep_alive = ":"});
    exchange->write("x");
    exchange->on_disconnect([] { ADD_FAILURE(); });
    exchange->post([] { ADD_FAILURE(); });
    exchange->end_stream();
  }
}

TEST_F(ExchangeTest, ServerEndsWithOpenStreamsThatAreWrittenTo) {
  constexpr int kStreams = 50;
  std::vector<RawClient> clients;
  std::vector<std::shared_ptr<Exchange>> streams;
  std::atomic<int> num_gone = 0;
  for (int i = 0; i < kStreams; ++i) {
    clients.emplace_back(server_->port());
    streams.push_back(ask(clients.back(), get_request("/")));
    streams.back()->on_disconnect([&] { ++num_gone; });
    streams.back()->begin_stream({.body = "x"}, {});
    clients.back().read_until("x\r\n");
  }
  std::atomic<bool> is_ended = false;
  std::thread writer([&] {
    while (!is_ended)
      for (const auto& stream : streams) stream->write("chunk");
  });
  server_.reset();
  EXPECT_EQ(num_gone, kStreams);
  is_ended = true;
  writer.join();
  for (RawClient& client : clients) EXPECT_FALSE(client.read_to_end().ends_with("0\r\n\r\n"));
}

// --- many -------------------------------------------------------------------------------------

TEST(ManyStreams, AreWrittenInTurnAndAllRight) {
  constexpr size_t kStreams = 2000, kChunks = 20;
  if (raise_open_file_limit() < int64_t{2 * kStreams + 100})
    GTEST_SKIP() << "too few files may be open";
  Exchanges exchanges;
  const auto server = serve(options_of(exchanges));
  std::vector<RawClient> clients;
  std::vector<std::shared_ptr<Exchange>> streams;
  const size_t before = mallinfo2().uordblks;
  for (size_t i = 0; i < kStreams; ++i) {
    clients.emplace_back(server->port());
    clients.back().send(get_request("/" + std::to_string(i)));
    streams.push_back(exchanges.take());
    streams.back()->begin_stream({.body = streams.back()->request().path}, {});
  }
  EXPECT_EQ(server->num_connections(), static_cast<int>(kStreams));
  for (size_t c = 0; c < kChunks; ++c)
    for (size_t i = 0; i < kStreams; ++i)
      ASSERT_TRUE(streams[i]->write(" " + std::to_string(i * c)));
  for (const auto& stream : streams) stream->end_stream(" end");
  streams.clear();
  for (size_t i = 0; i < kStreams; ++i) {
    std::string expected = "/" + std::to_string(i);
    for (size_t c = 0; c < kChunks; ++c) expected += " " + std::to_string(i * c);
    ASSERT_EQ(clients[i].read_response().body, expected + " end");
  }
  std::vector<RawClient>().swap(clients);
  std::vector<std::shared_ptr<Exchange>>().swap(streams);
  EXPECT_TRUE(eventually([&] { return server->num_connections() == 0; }));
  // What is left is what Asio keeps of its own, however many there were. (Sanitizers report 0.)
  EXPECT_LT(mallinfo2().uordblks, before + kStreams * 500);
}

TEST(ManyStreams, OfManyThreadsAreAllRight) {
  Exchanges exchanges;
  ServerOptions options = options_of(exchanges);
  options.num_threads = 2;
  const auto server = serve(options);
  std::vector<std::thread> writers, readers;
  std::atomic<int> num_right = 0;
  for (int t = 0; t < 4; ++t) {
    writers.emplace_back([&] {
      for (int i = 0; i < 25; ++i) {
        const auto exchange = exchanges.take();
        exchange->on_disconnect([] {});
        exchange->begin_stream({}, {});
        for (int c = 0; c < 20; ++c) exchange->write(exchange->request().path);
        exchange->end_stream();
      }
    });
    readers.emplace_back([&, t] {
      RawClient client(server->port());
      for (int i = 0; i < 25; ++i) {
        const std::string path = "/" + std::to_string(t * 100 + i);
        client.send(get_request(path));
        std::string expected;
        for (int c = 0; c < 20; ++c) expected += path;
        num_right += client.read_response().body == expected;
      }
    });
  }
  for (auto* threads : {&writers, &readers})
    for (std::thread& thread : *threads) thread.join();
  EXPECT_EQ(num_right, 100);
}

}  // namespace
}  // namespace octavo::http
