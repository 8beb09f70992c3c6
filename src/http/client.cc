#include "http/client.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <chrono>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "http/asio.h"

namespace octavo::http {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
using Clock = std::chrono::steady_clock;
using Socket = asio::generic::stream_protocol::socket;
using Endpoint = asio::generic::stream_protocol::endpoint;
using Parser = beast::http::response_parser<beast::http::string_body>;
using boost::system::error_code;

constexpr size_t kReadBytes = size_t{8} << 10;  // at a time, of each stream
constexpr size_t kMaxBodyBytes = size_t{64} << 20;
// Servers close connections that lie idle, some after a few seconds.
constexpr double kMaxIdleS = 2;

struct Connection {
  Connection(asio::io_context& context, asio::ssl::context* tls_context) : socket(context) {
    if (tls_context) tls.emplace(socket, *tls_context);
  }

  Socket socket;
  std::optional<asio::ssl::stream<Socket&>> tls;
  beast::flat_buffer buffer;
  double idle_since_s = 0;
};

// One call under way.
struct Work {
  Work(asio::io_context& context, Call c, Client::OnEvent e, Client::OnDone d)
      : call(std::move(c)), on_event(std::move(e)), on_done(std::move(d)), timer(context) {}

  // Whatever it waits for ends with an error.
  void end_as(CallEnd end) {
    if (forced_end) return;
    forced_end = end;
    error_code ignored;
    if (connection) connection->socket.close(ignored);
  }

  Call call;
  Client::OnEvent on_event;
  Client::OnDone on_done;
  asio::steady_timer timer;
  std::unique_ptr<Connection> connection = {};
  std::optional<CallEnd> forced_end = {};
  SseParser events = SseParser();
  CallResult result = {};
  bool leaves_connection = false;  // the answer's head said so
};
using WorkPtr = std::shared_ptr<Work>;

bool is_event_stream(std::string_view content_type) {
  return content_type.starts_with("text/event-stream");
}

bool is_open(Connection& connection) {
  char byte = 0;
  return ::recv(connection.socket.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 &&
         (errno == EAGAIN || errno == EWOULDBLOCK);
}

class AsioClient final : public Client {
 public:
  explicit AsioClient(const ClientOptions& options) : options_(options) {
    const ServerAddress& address = options.address;
    const bool default_port = address.port == (address.is_tls ? 443 : 80);
    const bool is_ipv6 = address.host.find(':') != std::string::npos;
    host_ = address.uds.empty() ? address.host : "localhost";
    if (is_ipv6) host_ = fmt::format("[{}]", host_);
    if (address.uds.empty() && !default_port) host_ += fmt::format(":{}", address.port);
  }

  Result<void> prepare() {
    if (options_.address.is_tls) OCTAVO_CHECK_OK(prepare_tls());
    if (options_.address.uds.empty()) return look_up();
    try {
      endpoints_ = {asio::local::stream_protocol::endpoint(options_.address.uds)};
    } catch (const std::exception&) {
      return fail(ErrorCode::invalid_argument, "the path of the Unix socket is too long");
    }
    return {};
  }

  CallId send(Call call, OnEvent on_event, OnDone on_done) override {
    const CallId id = ++last_id_;
    const auto work =
        std::make_shared<Work>(context_, std::move(call), std::move(on_event), std::move(on_done));
    works_.emplace(id, work);
    if (work->call.timeout_s > 0) start_timer(work);
    asio::co_spawn(context_, serve(id, work), asio::detached);
    return id;
  }

  void cancel(CallId id) override {
    if (const auto it = works_.find(id); it != works_.end()) it->second->end_as(CallEnd::cancelled);
  }

  void cancel_all() override {
    for (const auto& [id, work] : works_) work->end_as(CallEnd::cancelled);
  }

  void at(double time_s, std::function<void()> action) override {
    const auto timer = std::make_shared<asio::steady_timer>(context_);
    timer->expires_at(start_ + duration(time_s));
    timer->async_wait([timer, action = std::move(action)](const error_code& error) {
      if (!error) action();
    });
  }

  double now_s() const override {
    return std::chrono::duration<double>(Clock::now() - start_).count();
  }

  void run() override {
    context_.restart();
    context_.run();
  }
  void stop() override { context_.stop(); }
  void post(std::function<void()> action) override { asio::post(context_, std::move(action)); }

 private:
  static Clock::duration duration(double seconds) {
    return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  }

  Result<void> prepare_tls() {
    error_code error;
    tls_.emplace(asio::ssl::context::tls_client);
    if (!options_.verify_certificate) return {};
    tls_->set_verify_mode(asio::ssl::verify_peer);
    tls_->set_default_verify_paths(error);
    if (!error) return {};
    return fail(
        ErrorCode::io_error,
        fmt::format("the certificates of this machine cannot be read: {}", error.message()));
  }

  Result<void> look_up() {
    error_code error;
    asio::ip::tcp::resolver resolver(context_);
    const auto found =
        resolver.resolve(options_.address.host, std::to_string(options_.address.port), error);
    for (const auto& entry : found) endpoints_.emplace_back(entry.endpoint());
    if (!error && !endpoints_.empty()) return {};
    return fail(ErrorCode::invalid_argument, fmt::format("the host '{}' is not found: {}",
                                                         options_.address.host, error.message()));
  }

  void start_timer(const WorkPtr& work) {
    work->timer.expires_after(duration(work->call.timeout_s));
    work->timer.async_wait([weak = std::weak_ptr<Work>(work)](const error_code& error) {
      if (const WorkPtr held = weak.lock(); held && !error) held->end_as(CallEnd::timed_out);
    });
  }

  asio::awaitable<void> serve(CallId id, WorkPtr work) {
    if (!work->forced_end) {
      co_await obtain_connection(*work);
      if (work->connection && work->connection->tls)
        co_await exchange(*work, *work->connection->tls);
      else if (work->connection)
        co_await exchange(*work, work->connection->socket);
    }
    work->timer.cancel();
    if (work->forced_end && work->result.end != CallEnd::answered)
      work->result.end = *work->forced_end;
    works_.erase(id);
    keep(std::move(work->connection), *work);
    work->on_done(work->result, now_s());
  }

  // A connection that is open and idle, or a new one; none on an error.
  asio::awaitable<void> obtain_connection(Work& work) {
    while (!idle_.empty() && !work.connection) {
      std::unique_ptr<Connection> idle = std::move(idle_.back());
      idle_.pop_back();
      if (now_s() - idle->idle_since_s < kMaxIdleS && is_open(*idle))
        work.connection = std::move(idle);
    }
    if (work.connection) co_return;
    error_code error;
    auto token = asio::redirect_error(asio::use_awaitable, error);
    for (const Endpoint& endpoint : endpoints_) {
      work.connection = std::make_unique<Connection>(context_, tls_ ? &*tls_ : nullptr);
      error.clear();
      co_await work.connection->socket.async_connect(endpoint, token);
      if (!error || work.forced_end) break;
    }
    if (!error && work.connection->tls) co_await shake_hands(work, error);
    if (!error && !work.forced_end) {
      set_no_delay(work.connection->socket);
      co_return;
    }
    work.result.end =
        error == asio::error::connection_refused ? CallEnd::refused : CallEnd::unreachable;
    work.result.message = error.message();
    work.connection.reset();
  }

  asio::awaitable<void> shake_hands(Work& work, error_code& error) {
    auto& tls = *work.connection->tls;
    const std::string& host = options_.address.host;
    SSL_set_tlsext_host_name(tls.native_handle(), host.c_str());
    if (options_.verify_certificate)
      tls.set_verify_callback(asio::ssl::host_name_verification(host), error);
    if (error) co_return;
    auto token = asio::redirect_error(asio::use_awaitable, error);
    co_await tls.async_handshake(asio::ssl::stream_base::client, token);
  }

  void set_no_delay(Socket& socket) const {
    error_code ignored;
    if (options_.address.uds.empty()) socket.set_option(asio::ip::tcp::no_delay(true), ignored);
  }

  std::string head_of(const Call& call) const {
    std::string head = fmt::format("{} {}{} HTTP/1.1\r\nHost: {}\r\n", call.method,
                                   options_.address.path, call.path, host_);
    for (const Header& header : call.headers)
      head += fmt::format("{}: {}\r\n", header.name, header.value);
    if (!call.body.empty()) head += fmt::format("Content-Length: {}\r\n", call.body.size());
    return head + (options_.keep_alive ? "\r\n" : "Connection: close\r\n\r\n");
  }

  template <class Stream>
  asio::awaitable<void> exchange(Work& work, Stream& stream) {
    const std::string sent = head_of(work.call) + work.call.body;
    const auto bytes = asio::buffer(sent);
    error_code write_error, error;
    auto write_token = asio::redirect_error(asio::use_awaitable, write_error);
    auto read_token = asio::redirect_error(asio::use_awaitable, error);
    co_await asio::async_write(stream, bytes, write_token);
    // After a failed write, too: the server may have said why before it closed.
    beast::flat_buffer& buffer = work.connection->buffer;
    Parser parser;
    parser.eager(true);
    parser.header_limit(64 << 10);
    parser.body_limit(boost::none);
    while (!parser.is_done() && !error && !work.forced_end) {
      const auto room = buffer.prepare(kReadBytes);
      const size_t count = co_await stream.async_read_some(room, read_token);
      buffer.commit(count);
      parse(parser, buffer, error);
      if (!take_body(work, parser, now_s())) co_return;
    }
    note_end(work, parser, error);
  }

  // Not by Beast's own reading, which hands out a chunk only when the next one has begun.
  static void parse(Parser& parser, beast::flat_buffer& buffer, error_code& error) {
    if (error == asio::error::eof || error == asio::ssl::error::stream_truncated) {
      error = beast::http::error::end_of_stream;
      if (!parser.got_some()) return;
      error.clear();
      parser.put_eof(error);
      return;
    }
    while (!error && buffer.size() > 0 && !parser.is_done())
      buffer.consume(parser.put(buffer.data(), error));
    if (error == beast::http::error::need_more) error.clear();
  }

  // What has come of the body since the last time. False: it is too large.
  bool take_body(Work& work, Parser& parser, double time_s) {
    if (!parser.is_header_done()) return true;
    CallResult& result = work.result;
    if (result.status == 0) {
      result.status = static_cast<int>(parser.get().result_int());
      const auto type = parser.get()[beast::http::field::content_type];
      result.content_type.assign(type.data(), type.size());
    }
    const std::string bytes = std::exchange(parser.get().body(), {});
    bool fits = true;
    if (result.status == 200 && work.on_event && is_event_stream(result.content_type)) {
      fits = work.events.feed(bytes, [&](const SseEvent& event) { work.on_event(event, time_s); });
    } else {
      fits = result.body.size() + bytes.size() <= kMaxBodyBytes;
      if (fits) result.body += bytes;
    }
    if (fits) return true;
    result.end = CallEnd::not_http;
    result.message = "the answer is too large";
    return false;
  }

  static void note_end(Work& work, const Parser& parser, const error_code& error) {
    CallResult& result = work.result;
    if (parser.is_done()) {
      result.end = CallEnd::answered;
      work.leaves_connection = parser.keep_alive();
      return;
    }
    const bool is_ended =
        error == beast::http::error::end_of_stream ||
        error == beast::http::error::partial_message ||
        error.category() !=
            beast::http::make_error_code(beast::http::error::end_of_stream).category();
    result.end = is_ended ? CallEnd::cut : CallEnd::not_http;
    result.message = error.message();
    work.connection->buffer.clear();
    error_code ignored;
    work.connection->socket.close(ignored);
  }

  // For the next call, if the answer was read to its end and the server leaves it open.
  void keep(std::unique_ptr<Connection> connection, const Work& work) {
    if (!connection || !options_.keep_alive || !work.leaves_connection) return;
    if (!connection->socket.is_open() || connection->buffer.size() > 0) return;
    connection->idle_since_s = now_s();
    idle_.push_back(std::move(connection));
  }

  const ClientOptions options_;
  const Clock::time_point start_ = Clock::now();
  std::string host_;
  std::vector<Endpoint> endpoints_;
  std::optional<asio::ssl::context> tls_;
  CallId last_id_ = 0;
  // Destroyed after what holds sockets of it, and with it the coroutines that are not done.
  asio::io_context context_{1};
  std::unordered_map<CallId, WorkPtr> works_;
  std::vector<std::unique_ptr<Connection>> idle_;
};

// "8000" after the last colon; nothing: none is given.
Result<std::optional<uint16_t>> parse_port(std::string_view text) {
  if (text.empty()) return std::optional<uint16_t>();
  unsigned port = 0;
  for (const char c : text) {
    if (c < '0' || c > '9' || port > 65535)
      port = 65536;
    else
      port = port * 10 + static_cast<unsigned>(c - '0');
  }
  if (port >= 1 && port <= 65535) return std::optional(static_cast<uint16_t>(port));
  return fail(ErrorCode::invalid_argument, "its port is not a number from 1 to 65535");
}

Result<void> parse_authority(std::string_view text, ServerAddress& address) {
  if (text.find('@') != std::string_view::npos)
    return fail(ErrorCode::invalid_argument, "it has a user name; use a key instead");
  size_t end = text.find(':');
  if (text.starts_with('[')) {
    const size_t bracket = text.find(']');
    if (bracket == std::string_view::npos)
      return fail(ErrorCode::invalid_argument, "its bracket is not closed");
    address.host = text.substr(1, bracket - 1);
    end = bracket + 1;
  } else {
    address.host = text.substr(0, end);
  }
  std::string_view rest = end < text.size() ? text.substr(end) : std::string_view();
  if (address.host.empty() || (!rest.empty() && rest.front() != ':'))
    return fail(ErrorCode::invalid_argument, "it names no host");
  if (!rest.empty()) rest.remove_prefix(1);
  OCTAVO_TRY(const std::optional<uint16_t> port, parse_port(rest));
  address.port = port.value_or(address.is_tls ? 443 : 80);
  return {};
}

Result<ServerAddress> parse_parts(std::string_view url) {
  ServerAddress address;
  if (url.starts_with("unix:/")) {
    address.uds = url.substr(5);
    return address;
  }
  address.is_tls = url.starts_with("https://");
  if (!address.is_tls && !url.starts_with("http://"))
    return fail(ErrorCode::invalid_argument, "it has to begin with http://, https:// or unix:/");
  std::string_view rest = url.substr(address.is_tls ? 8 : 7);
  const size_t slash = std::min(rest.find('/'), rest.size());
  OCTAVO_CHECK_OK(parse_authority(rest.substr(0, slash), address));
  address.path = rest.substr(slash);
  while (address.path.ends_with('/')) address.path.pop_back();
  return address;
}

bool is_plain(std::string_view url) {
  for (const unsigned char c : url)
    if (c <= ' ' || c >= 0x7F || c == '?' || c == '#') return false;
  return true;
}

}  // namespace

Result<ServerAddress> parse_address(std::string_view url) {
  auto address = is_plain(url) ? parse_parts(url)
                               : fail(ErrorCode::invalid_argument,
                                      "it has characters that have no place there");
  if (address) return address;
  return fail(address.error().code,
              fmt::format("is no address of a server: {}", address.error().message));
}

Result<std::unique_ptr<Client>> Client::create(const ClientOptions& options) {
  auto client = std::make_unique<AsioClient>(options);
  OCTAVO_CHECK_OK(client->prepare());
  return client;
}

}  // namespace octavo::http
