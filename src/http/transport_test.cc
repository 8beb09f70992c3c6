#include "http/transport.h"

#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include <csignal>
#include <cstdlib>
#include <memory>
#include <string>

#include "support/http_server.h"
#include "support/raw_client.h"
#include "support/temp_folder.h"

namespace octavo::http {
namespace {

// A client over TLS that believes any certificate.
class TlsClient {
 public:
  explicit TlsClient(uint16_t port)
      : context_(SSL_CTX_new(TLS_client_method()), SSL_CTX_free),
        client_(port),
        ssl_(SSL_new(context_.get()), SSL_free) {
    std::signal(SIGPIPE, SIG_IGN);  // OpenSSL writes without MSG_NOSIGNAL
    SSL_set_fd(ssl_.get(), client_.fd());
    is_connected_ = SSL_connect(ssl_.get()) == 1;
  }
  bool is_connected() const { return is_connected_; }
  RawClient& raw() { return client_; }
  void send(const std::string& bytes) {
    EXPECT_EQ(SSL_write(ssl_.get(), bytes.data(), static_cast<int>(bytes.size())),
              static_cast<int>(bytes.size()));
  }
  std::string read_until(const std::string& end) {
    std::string all;
    char c = 0;
    while (!all.ends_with(end) && SSL_read(ssl_.get(), &c, 1) == 1) all += c;
    return all;
  }
  // True: the server has said that this is the end.
  bool is_ended() {
    char c = 0;
    const int n = SSL_read(ssl_.get(), &c, 1);
    return n <= 0 && SSL_get_error(ssl_.get(), n) == SSL_ERROR_ZERO_RETURN;
  }
  void say_goodbye() { SSL_shutdown(ssl_.get()); }

 private:
  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context_;
  RawClient client_;
  std::unique_ptr<SSL, decltype(&SSL_free)> ssl_;
  bool is_connected_ = false;
};

class Tls : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new octavo::testing::TempFolder;
    const std::string command =
        "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost"
        " -keyout " +
        folder_->file("key.pem") + " -out " + folder_->file("cert.pem") + " 2>/dev/null";
    ASSERT_EQ(std::system(command.c_str()), 0) << "is the package openssl there?";
  }
  static void TearDownTestSuite() { delete std::exchange(folder_, nullptr); }

  static ServerOptions with_tls(ServerOptions options) {
    options.ssl_certfile = folder_->file("cert.pem");
    options.ssl_keyfile = folder_->file("key.pem");
    return options;
  }

  static inline octavo::testing::TempFolder* folder_ = nullptr;
};

TEST_F(Tls, CarriesRequests) {
  const auto server = serve(with_tls(options_of([](const std::shared_ptr<Exchange>& exchange) {
    EXPECT_TRUE(exchange->request().is_tls);
    echo(exchange);
  })));
  TlsClient client(server->port());
  ASSERT_TRUE(client.is_connected());
  for (int i = 0; i < 2; ++i) {
    client.send(get_request("/a"));
    EXPECT_TRUE(client.read_until("GET /a||").ends_with("GET /a||"));
  }
  const std::string body(100'000, 'x');
  client.send(post_request("/", body));
  EXPECT_TRUE(client.read_until("||" + body).ends_with("||" + body));
}

TEST_F(Tls, EndsPolitely) {
  const auto server = serve(with_tls(echo_options()));
  TlsClient client(server->port());
  client.send("GET / HTTP/1.0\r\n\r\n");
  client.read_until("||");
  EXPECT_TRUE(client.is_ended());
  client.say_goodbye();
  EXPECT_TRUE(eventually([&] { return server->num_connections() == 0; }));
}

TEST_F(Tls, TellsOfARefusalWhileTheClientSends) {
  ServerOptions options = with_tls(echo_options());
  options.limits.max_body_bytes = 1000;
  const auto server = serve(options);
  TlsClient client(server->port());
  client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\n");
  for (int i = 0; i < 20; ++i) client.send(std::string(10'000, 'x'));
  EXPECT_TRUE(client.read_until("\r\n").starts_with("HTTP/1.1 413 "));
  client.read_until("takes");
  EXPECT_TRUE(client.is_ended());
}

TEST_F(Tls, CarriesStreamsAndNoticesTheirEnd) {
  Exchanges exchanges;
  const auto server = serve(with_tls(options_of(exchanges)));
  for (const bool is_polite : {false, true}) {
    TlsClient client(server->port());
    client.send(get_request("/"));
    const auto exchange = exchanges.take();
    Mailbox<bool> gone;
    exchange->on_disconnect([&] { gone.put(true); });
    exchange->begin_stream({}, {});
    for (const std::string chunk : {"one", "two"}) {
      exchange->write(chunk);
      EXPECT_TRUE(client.read_until(chunk + "\r\n").ends_with(chunk + "\r\n"));
    }
    if (is_polite)
      client.say_goodbye();
    else
      client.raw().close();
    EXPECT_TRUE(gone.take());
  }
  EXPECT_TRUE(eventually([&] { return server->num_connections() == 0; }));
}

TEST_F(Tls, EndsWithOpenStreams) {
  Exchanges exchanges;
  auto server = serve(with_tls(options_of(exchanges)));
  TlsClient client(server->port()), silent(server->port());
  client.send(get_request("/"));
  const auto exchange = exchanges.take();
  exchange->begin_stream({.body = "x"}, {});
  client.read_until("x\r\n");
  server.reset();
  EXPECT_EQ(client.read_until("never"), "");
}

TEST_F(Tls, PortRefusesPlainRequestsAndSilence) {
  ServerOptions options = with_tls(echo_options());
  options.limits.header_timeout = std::chrono::milliseconds(100);
  const auto server = serve(options);
  RawClient plain(server->port()), silent(server->port());
  plain.send(get_request("/"));
  EXPECT_EQ(plain.read_to_end().find("HTTP/1.1 200"), std::string::npos);
  EXPECT_TRUE(silent.is_ended());
  EXPECT_TRUE(eventually([&] { return server->num_connections() == 0; }));
}

TEST_F(Tls, NeedsFilesThatBelongTogether) {
  const auto error_of = [](const ServerOptions& options) {
    const auto server = Server::start(options);
    return server ? "" : server.error().message;
  };
  ServerOptions options = with_tls(echo_options());
  options.ssl_keyfile.clear();
  EXPECT_NE(error_of(options).find("--ssl-keyfile"), std::string::npos);
  options.ssl_keyfile = folder_->file("no.pem");
  EXPECT_NE(error_of(options).find("no.pem"), std::string::npos);
  options.ssl_keyfile = folder_->file("cert.pem");
  EXPECT_NE(error_of(options).find("cert.pem' cannot be used"), std::string::npos);
  options.ssl_keyfile = folder_->file("locked.pem");
  const std::string lock = "openssl pkey -in " + folder_->file("key.pem") +
                           " -aes256 -passout pass:secret -out " + options.ssl_keyfile;
  ASSERT_EQ(std::system(lock.c_str()), 0);
  EXPECT_NE(error_of(options).find("locked.pem"), std::string::npos);
  options = with_tls(echo_options());
  options.ssl_certfile = folder_->write("bad.pem", "no certificate");
  EXPECT_NE(error_of(options).find("bad.pem"), std::string::npos);
}

}  // namespace
}  // namespace octavo::http
