#include "http/server.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <thread>
#include <vector>

#include "http/open_files.h"
#include "support/http_server.h"
#include "support/raw_client.h"
#include "support/temp_folder.h"

namespace octavo::http {
namespace {

using octavo::testing::TempFolder;

std::string answer(RawClient& client, const std::string& request) {
  client.send(request);
  return client.read_response().body;
}

std::string start_error(ServerOptions options) {
  const auto server = Server::start(std::move(options));
  return server ? "" : std::string(error_name(server.error().code)) + ": " + server.error().message;
}

TEST(Server, AnswersOneRequestAfterAnotherOnAConnection) {
  const auto server = serve(echo_options());
  RawClient client(server->port());
  client.send(get_request("/a%20b?c=d"));
  const RawResponse first = client.read_response();
  EXPECT_EQ(first.status, 200);
  EXPECT_TRUE(first.head.starts_with("HTTP/1.1 200 OK\r\n"));
  EXPECT_EQ(first.header("content-type"), "text/plain");
  EXPECT_EQ(first.header("connection"), "keep-alive");
  EXPECT_TRUE(first.header("date").ends_with(" GMT"));
  EXPECT_EQ(first.body, "GET /a b|c=d|");
  EXPECT_EQ(answer(client, post_request("/", "hello")), "POST /||hello");
  EXPECT_EQ(server->num_connections(), 1);
}

TEST(Server, ReadsRequestsCutAnywhere) {
  const auto server = serve(echo_options());
  const std::string request = post_request("/path", "body");
  RawClient client(server->port());
  for (size_t cut = 1; cut < request.size(); ++cut) {
    client.send(request.substr(0, cut));
    EXPECT_EQ(answer(client, request.substr(cut)), "POST /path||body");
  }
  for (const char c : request) client.send({&c, 1});
  EXPECT_EQ(client.read_response().body, "POST /path||body");
}

TEST(Server, AnswersPipelinedRequestsInOrder) {
  const auto server = serve(echo_options());
  RawClient client(server->port());
  std::string requests;
  for (int i = 0; i < 10; ++i) requests += post_request("/" + std::to_string(i), "x");
  client.send(requests);
  for (int i = 0; i < 10; ++i)
    EXPECT_EQ(client.read_response().body, "POST /" + std::to_string(i) + "||x");
}

// More than is kept while an answer is on its way: the client's system waits with the rest.
TEST(Server, KeepsABoundedPartOfPipelinedRequests) {
  Exchanges exchanges;
  const auto server = serve(options_of(exchanges));
  RawClient client(server->port());
  constexpr int kRequests = 5000;
  std::thread sender([&] {
    for (int i = 0; i < kRequests; ++i) client.send(post_request("/", std::string(200, 'x')));
  });
  for (int i = 0; i < kRequests; ++i) {
    exchanges.take()->respond({.body = std::to_string(i)});
    ASSERT_EQ(client.read_response().body, std::to_string(i));
  }
  sender.join();
}

TEST(Server, ReadsChunkedBodies) {
  const auto server = serve(echo_options());
  RawClient client(server->port());
  const std::string request =
      "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
      "5\r\nhello\r\n6;x=y\r\n world\r\n0\r\n\r\n";
  EXPECT_EQ(answer(client, request), "POST /||hello world");
  EXPECT_EQ(answer(client, request), "POST /||hello world");
}

TEST(Server, AsksForABodyThatWaitsToBeAskedFor) {
  const auto server = serve(echo_options());
  RawClient client(server->port());
  client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(client.read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  EXPECT_EQ(answer(client, "ab"), "POST /||ab");
}

TEST(Server, SendsNoBodyForHead) {
  const auto server = serve(echo_options());
  RawClient client(server->port());
  client.send("HEAD /x HTTP/1.1\r\nHost: h\r\n\r\n");
  const RawResponse response = client.read_response(false);
  EXPECT_EQ(response.header("content-length"), "9");
  EXPECT_EQ(answer(client, get_request("/y")), "GET /y||");
  // What is wrong with a later request is told with a body.
  client.send("HEAD /x HTTP/1.1\r\nHost: h\r\n\r\n");
  client.read_response(false);
  EXPECT_NE(answer(client, "no request\r\n\r\n"), "");
}

TEST(Server, EndsConnectionsAsTheClientWishes) {
  const auto server = serve(echo_options());
  for (const char* request :
       {"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", "GET / HTTP/1.0\r\n\r\n"}) {
    RawClient client(server->port());
    client.send(request);
    const RawResponse response = client.read_response();
    EXPECT_EQ(response.body, "GET /||");
    EXPECT_EQ(response.header("connection"), "close");
    EXPECT_TRUE(client.is_ended());
  }
  RawClient client(server->port());
  const std::string keeps = "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n";
  EXPECT_EQ(answer(client, keeps), "GET /||");
  EXPECT_EQ(answer(client, keeps), "GET /||");
}

TEST(Server, EndsConnectionsAsTheHandlerWishes) {
  const auto server = serve(options_of([](const std::shared_ptr<Exchange>& exchange) {
    exchange->respond({.status = 204, .close = true});
  }));
  RawClient client(server->port());
  client.send(get_request("/"));
  const RawResponse response = client.read_response();
  EXPECT_EQ(response.status, 204);
  EXPECT_EQ(response.header("content-length"), "");
  EXPECT_TRUE(client.is_ended());
}

TEST(Server, AnswersNothingAfterAFault) {
  const auto server = serve(echo_options());
  for (const char* request :
       {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\nTransfer-Encoding: "
        "chunked\r\n\r\n0\r\n\r\n",
        "GET / HTTP/1.1\r\n\r\n", "\x16\x03\x01\x02\x01\x01\xfc\x03\x03", "nonsense\r\n\r\n"}) {
    RawClient client(server->port());
    client.send(request + get_request("/smuggled"));
    const RawResponse response = client.read_response();
    EXPECT_EQ(response.status, 400) << request;
    EXPECT_EQ(response.header("connection"), "close");
    EXPECT_TRUE(client.is_ended());
  }
  RawClient client(server->port());
  EXPECT_EQ(answer(client, get_request("/")), "GET /||");
}

TEST(Server, LetsTheOwnerWordFaults) {
  ServerOptions options = echo_options();
  options.on_fault = [](int status, const std::string& why) {
    return Response{.status = status, .body = "{" + why + "}"};
  };
  const auto server = serve(options);
  RawClient client(server->port());
  EXPECT_EQ(answer(client, "GET /%zz HTTP/1.1\r\nHost: h\r\n\r\n"),
            "{the path has a wrong escape, or one of a control character}");
}

TEST(Server, AsksWhetherTheBodyIsWanted) {
  ServerOptions options = echo_options();
  std::atomic<int> num_asked = 0;
  options.on_head = [&](const Request& head) -> std::optional<Response> {
    ++num_asked;
    EXPECT_EQ(head.remote_address, "127.0.0.1");
    EXPECT_EQ(head.body, "");
    if (head.path == "/open") return std::nullopt;
    return Response{.status = 401, .body = "a key is needed"};
  };
  const auto server = serve(options);
  RawClient client(server->port());
  EXPECT_EQ(answer(client, post_request("/open", "x")), "POST /open||x");
  client.send("POST /closed HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\n");
  const RawResponse response = client.read_response();
  EXPECT_EQ(response.status, 401);
  EXPECT_EQ(response.body, "a key is needed");
  EXPECT_TRUE(client.is_ended());
  EXPECT_EQ(num_asked, 2);
}

TEST(Server, OutlivesHandlersThatThrow) {
  const auto server = serve(options_of([](const std::shared_ptr<Exchange>& exchange) {
    if (exchange->request().path == "/runtime") throw std::runtime_error("secret");
    if (exchange->request().path == "/int") throw 1;
    if (exchange->request().path == "/posted") exchange->post([] { throw std::runtime_error(""); });
    echo(exchange);
  }));
  RawClient client(server->port());
  for (const char* path : {"/runtime", "/int"}) {
    client.send(get_request(path));
    const RawResponse response = client.read_response();
    EXPECT_EQ(response.status, 500);
    EXPECT_EQ(response.body.find("secret"), std::string::npos);
  }
  EXPECT_EQ(answer(client, get_request("/posted")), "GET /posted||");
}

TEST(Server, WritesNoLineThatAHeaderSmugglesIn) {
  const auto server = serve(options_of([](const std::shared_ptr<Exchange>& exchange) {
    exchange->respond({.headers = {{"X-Request-Id", "a\r\nSet-Cookie: b"}}});
  }));
  RawClient client(server->port());
  client.send(get_request("/"));
  const RawResponse response = client.read_response();
  EXPECT_EQ(response.header("x-request-id"), "a  Set-Cookie: b");
  EXPECT_EQ(response.header("set-cookie"), "");
}

TEST(Server, ServesOnSeveralThreads) {
  ServerOptions options = echo_options();
  options.num_threads = 4;
  const auto server = serve(options);
  std::vector<std::thread> clients;
  std::atomic<int> num_right = 0;
  for (int c = 0; c < 8; ++c)
    clients.emplace_back([&, c] {
      RawClient client(server->port());
      const std::string path = "/" + std::to_string(c);
      for (int i = 0; i < 100; ++i)
        num_right += answer(client, get_request(path)) == "GET " + path + "||";
    });
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(num_right, 800);
}

TEST(Server, ListensWhereItIsTold) {
  for (const char* host : {"::1", "localhost", "0.0.0.0", "::"}) {
    ServerOptions options = options_of([](const std::shared_ptr<Exchange>& exchange) {
      exchange->respond({.body = exchange->request().remote_address});
    });
    options.host = host;
    const auto server = Server::start(options);
    if (!server && std::string(host).find(':') != std::string::npos) continue;  // no IPv6 here
    ASSERT_TRUE(server) << server.error().message;
    const bool is_v6 = std::string(host) == "::1";
    RawClient client((*server)->port(), is_v6 ? "::1" : "127.0.0.1");
    if (!client.is_connected()) client = RawClient((*server)->port(), "::1");  // of localhost
    const std::string address = answer(client, get_request("/"));
    EXPECT_TRUE(address == "127.0.0.1" || address == "::1" || address == "::ffff:127.0.0.1")
        << address;
  }
}

TEST(Server, SaysWhyItCannotListen) {
  const auto server = serve(echo_options());
  ServerOptions options = echo_options();
  options.port = server->port();
  EXPECT_EQ(start_error(options), "io_error: port " + std::to_string(options.port) +
                                      " of 127.0.0.1 is in use by another program; choose another "
                                      "with --port");
  options.host = "192.0.2.1";
  EXPECT_TRUE(start_error(options).starts_with("io_error: cannot listen on port"));
  options.host = "not a host";
  EXPECT_TRUE(start_error(options).starts_with("invalid_argument: the host 'not a host'"));
  options = echo_options();
  options.num_threads = 0;
  EXPECT_TRUE(start_error(options).starts_with("invalid_argument: "));
}

TEST(Server, StopsAcceptingAndLetsAnswersEnd) {
  Exchanges exchanges;
  const auto server = serve(options_of(exchanges));
  RawClient idle(server->port()), busy(server->port());
  idle.send(get_request("/"));
  exchanges.take()->respond({});
  idle.read_response();
  busy.send(get_request("/"));
  const auto exchange = exchanges.take();
  server->stop_accepting();
  EXPECT_TRUE(idle.is_ended());
  exchange->respond({.body = "the last"});
  const RawResponse response = busy.read_response();
  EXPECT_EQ(response.body, "the last");
  EXPECT_EQ(response.header("connection"), "close");
  EXPECT_TRUE(busy.is_ended());
  EXPECT_TRUE(eventually([&] { return !RawClient(server->port()).is_connected(); }));
}

TEST(UnixSocket, IsServedPrivatelyAndRemovedAtTheEnd) {
  const TempFolder folder;
  ServerOptions options = options_of([](const std::shared_ptr<Exchange>& exchange) {
    exchange->respond({.body = exchange->request().remote_address});
  });
  options.uds = folder.file("s");
  auto server = serve(options);
  struct stat status = {};
  ASSERT_EQ(::stat(options.uds.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  RawClient client(options.uds);
  EXPECT_EQ(answer(client, get_request("/")), "unix");
  EXPECT_EQ(start_error(options),
            "io_error: the socket '" + options.uds + "' is in use; give --uds another path");
  server.reset();
  EXPECT_NE(::stat(options.uds.c_str(), &status), 0);
}

TEST(UnixSocket, ReplacesWhatADeadServerLeft) {
  const TempFolder folder;
  ServerOptions options = echo_options();
  options.uds = folder.file("s");
  const int dead = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  options.uds.copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(dead, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ::close(dead);
  const auto server = serve(options);
  RawClient client(options.uds);
  EXPECT_EQ(answer(client, get_request("/")), "GET /||");
}

TEST(UnixSocket, LeavesOtherFilesAlone) {
  const TempFolder folder;
  ServerOptions options = echo_options();
  options.uds = folder.write("file", "precious");
  EXPECT_TRUE(start_error(options).starts_with("io_error: '" + options.uds));
  EXPECT_EQ(std::filesystem::file_size(options.uds), 8u);
  options.uds = folder.file(std::string(200, 'a'));
  EXPECT_TRUE(start_error(options).starts_with("invalid_argument: "));
  options.uds = folder.file("no/such/folder");
  EXPECT_TRUE(start_error(options).starts_with("io_error: "));
}

// A client that comes while no file can be opened is served when one can.
TEST(OpenFiles, RunningOutOfThemDelaysClients) {
  const auto server = serve(echo_options());
  std::vector<int> fillers;
  for (int fd = 0; (fd = ::fcntl(0, F_DUPFD_CLOEXEC, 0)) >= 0;) fillers.push_back(fd);
  ASSERT_GT(fillers.size(), 2u);
  ::close(fillers.back());
  fillers.pop_back();
  RawClient client(server->port());
  ASSERT_TRUE(client.is_connected());
  client.send(get_request("/"));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(server->num_connections(), 0);
  for (const int fd : fillers) ::close(fd);
  EXPECT_EQ(client.read_response().body, "GET /||");
}

TEST(OpenFiles, LimitIsRaised) {
  const int64_t limit = raise_open_file_limit();
  EXPECT_GT(limit, 0);
  EXPECT_EQ(raise_open_file_limit(), limit);
}

}  // namespace
}  // namespace octavo::http
