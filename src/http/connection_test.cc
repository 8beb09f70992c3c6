// Limits of a connection, and clients that do not keep to them.
#include "http/connection.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "support/http_server.h"
#include "support/raw_client.h"

namespace octavo::http {
namespace {

using Milliseconds = std::chrono::milliseconds;

std::unique_ptr<Server> serve_with(ServerLimits limits) {
  ServerOptions options = echo_options();
  options.limits = limits;
  return serve(options);
}

void expect_well(const Server& server) {
  RawClient client(server.port());
  client.send(get_request("/next"));
  EXPECT_EQ(client.read_response().body, "GET /next||");
}

void expect_no_connection(const Server& server) {
  EXPECT_TRUE(eventually([&] { return server.num_connections() == 0; }));
}

// Of this process, in KiB.
size_t resident_peak() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (word == "VmHWM:") {
      size_t kib = 0;
      status >> kib;
      return kib;
    }
  return 0;
}

TEST(Limits, HeadersThatDoNotEndAreRefused) {
  const auto server = serve_with({.max_header_bytes = 1000});
  RawClient client(server->port());
  client.send("GET / HTTP/1.1\r\n");
  for (int i = 0; i < 200; ++i) client.send("X-Header: value\r\n");
  EXPECT_EQ(client.read_response().status, 431);
  EXPECT_TRUE(client.is_ended());
  expect_well(*server);
}

TEST(Limits, HeadersMayBeLargerThanWhatIsKeptOfOtherRequests) {
  const auto server = serve_with({.max_header_bytes = 300'000});
  RawClient client(server->port());
  const std::string header = "X: " + std::string(20'000, 'x') + "\r\n";
  std::string headers;
  for (int i = 0; i < 10; ++i) headers += header;
  client.send(get_request("/", headers));
  EXPECT_EQ(client.read_response().status, 200);
  client.send(get_request("/", headers + headers));
  EXPECT_EQ(client.read_response().status, 431);
  RawClient other(server->port());
  other.send(get_request("/", "X: " + std::string(100'000, 'x') + "\r\n"));
  EXPECT_EQ(other.read_response().status, 431);
}

TEST(Limits, LongTargetsAreRefused) {
  const auto server = serve_with({});
  RawClient client(server->port());
  client.send(get_request("/" + std::string(20'000, 'a')));
  EXPECT_EQ(client.read_response().status, 414);
}

// The client is told although it is still sending.
TEST(Limits, LargeBodiesAreRefusedUnread) {
  const auto server = serve_with({.max_body_bytes = 1000});
  RawClient client(server->port());
  client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 104857600\r\n\r\n");
  client.send(std::string(3 << 20, 'x'));
  const RawResponse response = client.read_response();
  EXPECT_EQ(response.status, 413);
  EXPECT_EQ(response.header("connection"), "close");
  EXPECT_TRUE(client.is_ended());
  client.close();
  expect_no_connection(*server);
}

TEST(Limits, LargeBodiesCostNoMemory) {
  const auto server = serve_with({.max_body_bytes = 1 << 20});
  expect_well(*server);
  const std::string chunk = "100000\r\n" + std::string(1 << 20, 'x') + "\r\n";
  const size_t before = resident_peak();
  RawClient client(server->port());
  client.send("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n");
  for (int i = 0; i < 100; ++i) client.send(chunk);
  EXPECT_EQ(client.read_response().status, 413);
  EXPECT_LT(resident_peak() - before, 50u << 10);
}

// One that is being answered counts as much as one that is being read.
TEST(Limits, BodiesOfAllConnectionsAreBounded) {
  Exchanges exchanges;
  ServerOptions options = options_of(exchanges);
  options.limits = {.max_body_bytes = 80'000, .max_request_memory_bytes = 100'000};
  const auto server = serve(options);
  const std::string request = post_request("/", std::string(80'000, 'x'));
  RawClient first(server->port());
  first.send(request);
  auto held = exchanges.take();

  RawClient second(server->port());
  second.send(request);
  const RawResponse refused = second.read_response();
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.header("retry-after"), "1");
  EXPECT_NE(refused.body.find("as many bytes of requests"), std::string::npos) << refused.body;
  RawClient small(server->port());
  small.send(post_request("/", std::string(10'000, 'x')));
  exchanges.take()->respond({});
  EXPECT_EQ(small.read_response().status, 200);

  held->respond({});
  held.reset();
  EXPECT_EQ(first.read_response().status, 200);
  first.send(request);
  exchanges.take()->respond({});
  EXPECT_EQ(first.read_response().status, 200);
}

TEST(Limits, ABodyThatNeverFitsIsTooLarge) {
  ServerOptions options = echo_options();
  options.limits = {.max_body_bytes = 80'000, .max_request_memory_bytes = 70'000};
  const auto server = serve(options);
  RawClient client(server->port());
  client.send(post_request("/", std::string(75'000, 'x')));
  EXPECT_EQ(client.read_response().status, 413);
}

TEST(Limits, BytesOfBodiesThatWereGivenUpAreFreeAgain) {
  ServerOptions options = echo_options();
  options.limits = {.max_body_bytes = 80'000, .max_request_memory_bytes = 80'000};
  const auto server = serve(options);
  const std::string request = post_request("/", std::string(80'000, 'x'));
  for (int i = 0; i < 5; ++i) {
    RawClient leaves(server->port());
    leaves.send(std::string_view(request).substr(0, 60'000));
    leaves.reset();
    expect_no_connection(*server);
    RawClient stays(server->port());
    stays.send(request);
    EXPECT_EQ(stays.read_response().status, 200);
  }
}

TEST(Limits, SlowHeadersAreGivenUp) {
  const auto server = serve_with({.header_timeout = Milliseconds(100)});
  RawClient client(server->port());
  // Drop by drop: no byte gains time.
  std::thread drops([&] {
    for (const char c : "GET / HTTP/1.1\r\nX-Long: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa") {
      if (client.send({&c, 1}) == 0) break;
      std::this_thread::sleep_for(Milliseconds(5));
    }
  });
  EXPECT_EQ(client.read_response().status, 408);
  drops.join();
}

TEST(Limits, SlowBodiesAreGivenUp) {
  const auto server = serve_with({.body_timeout = Milliseconds(50)});
  RawClient client(server->port());
  client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nabc");
  EXPECT_EQ(client.read_response().status, 408);
  EXPECT_TRUE(client.is_ended());
}

TEST(Limits, IdleConnectionsAreClosedWithoutAWord) {
  const auto server = serve_with({.idle_timeout = Milliseconds(50)});
  RawClient client(server->port());
  EXPECT_TRUE(client.is_ended());
  RawClient again(server->port());
  again.send(get_request("/"));
  again.read_response();
  EXPECT_TRUE(again.is_ended());
}

TEST(Limits, ClientsThatReadNothingAreCut) {
  Exchanges exchanges;
  ServerOptions options = options_of(exchanges);
  options.limits.write_timeout = Milliseconds(100);
  const auto server = serve(options);
  for (const bool in_stream : {false, true}) {
    RawClient client(server->port(), "127.0.0.1", 4096);
    client.send(get_request("/"));
    const auto exchange = exchanges.take();
    Mailbox<bool> gone;
    exchange->on_disconnect([&] { gone.put(true); });
    const std::string much(32 << 20, 'x');
    if (in_stream)
      exchange->begin_stream({.body = much},
                             {.keep_alive_interval = Milliseconds(1), .keep_alive = ":"});
    else
      exchange->respond({.body = much});
    if (in_stream) {
      EXPECT_TRUE(gone.take());
      EXPECT_FALSE(exchange->write("x"));
    } else {
      std::this_thread::sleep_for(Milliseconds(300));
    }
    EXPECT_LT(client.read_to_end().size(), much.size());
  }
}

// What counts is how long nothing was read, not how long it takes, also at the end of a connection.
TEST(Limits, ClientsThatReadSlowlyGetAll) {
  const std::string much(8 << 20, 'x');
  ServerOptions options = options_of([&](const std::shared_ptr<Exchange>& exchange) {
    exchange->respond({.body = much, .close = true});
  });
  options.limits.write_timeout = Milliseconds(1000);
  const auto server = serve(options);
  RawClient client(server->port(), "127.0.0.1", 64 << 10);
  client.send(get_request("/"));
  client.read_until("\r\n\r\n");
  size_t bytes = 0;
  while (bytes < much.size()) {
    const size_t n = client.read_bytes(1 << 20).size();
    if (n == 0) break;
    bytes += n;
    std::this_thread::sleep_for(Milliseconds(200));
  }
  EXPECT_EQ(bytes, much.size());
  EXPECT_TRUE(client.is_ended());
}

TEST(Limits, TooManyConnectionsAreTurnedAway) {
  const auto server = serve_with({.max_connections = 2});
  std::vector<RawClient> clients;
  for (int i = 0; i < 2; ++i) {
    clients.emplace_back(server->port());
    clients.back().send(get_request("/"));
    EXPECT_EQ(clients.back().read_response().status, 200);
  }
  {
    RawClient third(server->port());
    EXPECT_EQ(third.read_response().status, 503);
    EXPECT_TRUE(third.is_ended());
  }
  clients.pop_back();
  EXPECT_TRUE(eventually([&] { return server->num_connections() <= 1; }));
  expect_well(*server);
}

TEST(Clients, ThatVanishWithinARequestLeaveNothing) {
  const auto server = serve_with({});
  const std::string request = post_request("/", "some body");
  for (size_t cut = 0; cut < request.size(); cut += 3)
    for (const bool by_reset : {false, true}) {
      RawClient client(server->port());
      client.send(request.substr(0, cut));
      if (by_reset)
        client.reset();
      else
        client.close();
    }
  expect_no_connection(*server);
  expect_well(*server);
}

TEST(Clients, ThatSpeakSomethingElseAreToldAtOnce) {
  ServerLimits limits;
  limits.header_timeout = limits.idle_timeout = std::chrono::hours(1);
  const auto server = serve_with(limits);
  for (const std::string_view bytes :
       {std::string_view("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11),
        std::string_view("SSH-2.0-OpenSSH_9.2\r\n"), std::string_view("\0\0\0\0", 4),
        std::string_view("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")}) {
    RawClient client(server->port());
    client.send(bytes);
    EXPECT_GE(client.read_response().status, 400);
    EXPECT_TRUE(client.is_ended());
  }
}

// A seeded stream of bytes that are nearly requests: each connection ends or goes on, none stays.
TEST(Clients, ThatSendGarbageDoNotHurtOthers) {
  const auto server = serve_with({.max_header_bytes = 2000, .max_body_bytes = 1000});
  const std::vector<std::string> pieces = {"GET ",
                                           "POST ",
                                           "/",
                                           "/%41",
                                           " HTTP/1.1",
                                           "\r\n",
                                           "\r\n\r\n",
                                           "Host: h\r\n",
                                           "\n",
                                           "\r",
                                           "\0x",
                                           "0\r\n\r\n",
                                           "5\r\nhello\r\n",
                                           "ffffffff\r\n",
                                           "Content-Length: 5\r\n",
                                           "Content-Length: -5\r\n",
                                           "Transfer-Encoding: chunked\r\n",
                                           "hello",
                                           "\xff\xfe",
                                           "Expect: 100-continue\r\n",
                                           "Connection: close\r\n",
                                           " HTTP/1.0\r\n",
                                           "GET / HTTP/1.1\r\nHost: h\r\n"};
  uint32_t random = 1;
  const auto next = [&](size_t n) {
    random = random * 1664525 + 1013904223;
    return (random >> 8) % n;
  };
  for (int i = 0; i < 500; ++i) {
    RawClient client(server->port());
    const size_t n = 1 + next(12);
    for (size_t k = 0; k < n; ++k) client.send(pieces[next(pieces.size())]);
    client.end_sending();
    client.read_to_end();
  }
  expect_no_connection(*server);
  expect_well(*server);
}

}  // namespace
}  // namespace octavo::http
