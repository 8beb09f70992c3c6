#include "http/server.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/file_descriptor.h"
#include "http/connection.h"

namespace octavo::http {
namespace {

namespace asio = boost::asio;
using tcp = asio::ip::tcp;
using Unix = asio::local::stream_protocol;
using Generic = asio::generic::stream_protocol;
using Acceptor = asio::basic_socket_acceptor<Generic>;
using SystemError = Transport::ErrorCode;

constexpr std::chrono::milliseconds kAcceptPause{100};
constexpr int kBacklog = 4096;

struct IoThread {
  std::shared_ptr<IoLoop> loop = std::make_shared<IoLoop>();
  asio::io_context& io = loop->context();
  asio::executor_work_guard<asio::io_context::executor_type> work = asio::make_work_guard(io);
  std::vector<std::weak_ptr<Connection>> connections;  // of its thread
  size_t prune_at = 64;
  std::thread thread;

  void add(const std::shared_ptr<Connection>& connection) {
    connections.push_back(connection);
    if (connections.size() < prune_at) return;
    std::erase_if(connections, [](const auto& weak) { return weak.expired(); });
    prune_at = 2 * connections.size() + 64;
  }
  template <class Function>
  void each(Function&& function) {
    const auto all = connections;
    for (const auto& weak : all)
      if (const auto connection = weak.lock()) function(*connection);
  }
};

std::string address_of(const Socket& socket, bool is_unix) {
  if (is_unix) return "unix";
  SystemError error;
  const auto endpoint = socket.remote_endpoint(error);
  tcp::endpoint address;
  if (error || endpoint.size() > address.capacity()) return "";
  std::memcpy(address.data(), endpoint.data(), endpoint.size());
  address.resize(endpoint.size());
  return address.address().to_string();
}

Result<tcp::endpoint> resolve(const ServerOptions& options) {
  asio::io_context io;
  tcp::resolver resolver(io);
  SystemError error;
  const auto found =
      resolver.resolve(options.host, std::to_string(options.port),
                       tcp::resolver::passive | tcp::resolver::numeric_service, error);
  if (error || found.empty())
    return fail(ErrorCode::invalid_argument,
                fmt::format("the host '{}' is no address and no name of this machine ({})",
                            options.host, error.message()));
  return found.begin()->endpoint();
}

Result<void> load_certificate(asio::ssl::context& tls, const ServerOptions& options) {
  const auto refuse = [](const std::string& file, const SystemError& error) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("'{}' cannot be used for TLS: {}", file, error.message()));
  };
  for (const std::string& file : {options.ssl_certfile, options.ssl_keyfile})
    if (::access(file.c_str(), R_OK) != 0) return system_error(file, "read it");
  SystemError error;
  tls.set_options(asio::ssl::context::default_workarounds | asio::ssl::context::no_sslv2 |
                      asio::ssl::context::no_sslv3 | asio::ssl::context::no_tlsv1 |
                      asio::ssl::context::no_tlsv1_1,
                  error);
  // OpenSSL would ask the terminal.
  tls.set_password_callback([](auto, auto) { return std::string(); }, error);
  tls.use_certificate_chain_file(options.ssl_certfile, error);
  if (error) return refuse(options.ssl_certfile, error);
  tls.use_private_key_file(options.ssl_keyfile, asio::ssl::context::pem, error);
  if (error) return refuse(options.ssl_keyfile, error);
  return {};
}

// Whether a server has this Unix socket. One that is busy, or may not be asked, counts.
bool is_answered(const std::string& path) {
  const FileDescriptor probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const Unix::endpoint endpoint(path);
  return ::connect(probe.get(), endpoint.data(), static_cast<socklen_t>(endpoint.size())) == 0 ||
         errno != ECONNREFUSED;
}

class AsioServer : public Server {
 public:
  ~AsioServer() override;

  Result<void> listen(ServerOptions options);
  uint16_t port() const override { return port_; }
  void stop_accepting() override;
  int num_connections() const override { return setup_->num_connections; }
  size_t request_memory_bytes() const override { return setup_->memory->used_bytes(); }

 private:
  Result<void> open_tcp(const ServerOptions& options);
  Result<void> open_unix(const std::string& path);
  Result<void> remove_stale(const std::string& path);
  Result<void> open(Generic::endpoint endpoint, const std::string& what);
  asio::awaitable<void> accept_loop();
  void take(Socket socket, IoThread& thread);

  std::shared_ptr<ConnectionSetup> setup_ = std::make_shared<ConnectionSetup>();
  std::optional<asio::ssl::context> tls_;
  std::vector<std::unique_ptr<IoThread>> threads_;
  std::optional<Acceptor> acceptor_;
  std::string uds_;
  uint16_t port_ = 0;
  size_t next_thread_ = 0;
};

Result<void> AsioServer::listen(ServerOptions options) {
  if (options.num_threads < 1)
    return fail(ErrorCode::invalid_argument, "a server needs at least one thread");
  if (options.ssl_certfile.empty() != options.ssl_keyfile.empty())
    return fail(ErrorCode::invalid_argument,
                "TLS needs both --ssl-certfile and --ssl-keyfile, and one is missing");
  if (!options.ssl_certfile.empty()) {
    tls_.emplace(asio::ssl::context::tls_server);
    OCTAVO_CHECK_OK(load_certificate(*tls_, options));
  }
  setup_->limits = options.limits;
  // Of one that is larger there is no sense in trying again.
  setup_->limits.max_body_bytes =
      std::min(options.limits.max_body_bytes, options.limits.max_request_memory_bytes);
  setup_->memory = std::make_shared<MemoryBudget>(options.limits.max_request_memory_bytes);
  setup_->handler = options.handler;
  setup_->on_head = options.on_head;
  setup_->on_fault = options.on_fault;
  for (int i = 0; i < options.num_threads; ++i) threads_.push_back(std::make_unique<IoThread>());
  acceptor_.emplace(threads_.front()->io);
  OCTAVO_CHECK_OK(options.uds.empty() ? open_tcp(options) : open_unix(options.uds));
  asio::co_spawn(threads_.front()->io, accept_loop(), asio::detached);
  for (auto& thread : threads_)
    thread->thread = std::thread([loop = thread->loop] { loop->run(); });
  return {};
}

Result<void> AsioServer::open_tcp(const ServerOptions& options) {
  OCTAVO_TRY(const tcp::endpoint endpoint, resolve(options));
  OCTAVO_CHECK_OK(
      open(Generic::endpoint(endpoint), fmt::format("port {} of {}", options.port, options.host)));
  tcp::endpoint bound;
  const auto local = acceptor_->local_endpoint();
  std::memcpy(bound.data(), local.data(), local.size());
  port_ = bound.port();
  return {};
}

// A socket that nobody answers on is what a server that was killed left behind.
Result<void> AsioServer::remove_stale(const std::string& path) {
  struct stat status = {};
  if (lstat(path.c_str(), &status) != 0) return {};
  if (!S_ISSOCK(status.st_mode))
    return fail(ErrorCode::io_error, fmt::format("'{}' is there and is no socket; it was left "
                                                 "alone, give --uds another path",
                                                 path));
  if (is_answered(path))
    return fail(ErrorCode::io_error,
                fmt::format("the socket '{}' is in use; give --uds another path", path));
  unlink(path.c_str());
  return {};
}

Result<void> AsioServer::open_unix(const std::string& path) {
  if (path.size() >= sizeof(sockaddr_un::sun_path))
    return fail(ErrorCode::invalid_argument,
                fmt::format("'{}' is too long for the path of a Unix socket", path));
  OCTAVO_CHECK_OK(remove_stale(path));
  OCTAVO_CHECK_OK(open(Generic::endpoint(Unix::endpoint(path)), fmt::format("'{}'", path)));
  uds_ = path;
  return {};
}

Result<void> AsioServer::open(Generic::endpoint endpoint, const std::string& what) {
  SystemError error;
  acceptor_->open(endpoint.protocol(), error);
  if (!error && endpoint.protocol().family() != AF_UNIX)
    acceptor_->set_option(asio::socket_base::reuse_address(true), error);
  // Before it has a name, so that there is no moment in which others could connect.
  if (!error && endpoint.protocol().family() == AF_UNIX) fchmod(acceptor_->native_handle(), 0600);
  if (!error) acceptor_->bind(endpoint, error);
  if (!error) acceptor_->listen(kBacklog, error);
  if (!error) return {};
  if (error == asio::error::address_in_use)
    return fail(ErrorCode::io_error,
                fmt::format("{} is in use by another program; choose another with --port", what));
  return fail(ErrorCode::io_error, fmt::format("cannot listen on {}: {}", what, error.message()));
}

asio::awaitable<void> AsioServer::accept_loop() {
  asio::steady_timer pause(threads_.front()->io);
  for (;;) {
    IoThread& thread = *threads_[next_thread_++ % threads_.size()];
    Socket socket(thread.io);
    SystemError error;
    co_await acceptor_->async_accept(socket, asio::redirect_error(asio::use_awaitable, error));
    if (!error) {
      take(std::move(socket), thread);
      continue;
    }
    if (!acceptor_->is_open()) break;
    // No free file descriptor, most likely.
    pause.expires_after(kAcceptPause);
    co_await pause.async_wait(asio::redirect_error(asio::use_awaitable, error));
  }
}

void AsioServer::take(Socket socket, IoThread& thread) {
  SystemError ignored;
  const bool is_unix = !uds_.empty();
  if (!is_unix) socket.set_option(tcp::no_delay(true), ignored);
  const std::string address = address_of(socket, is_unix);
  auto transport =
      tls_ ? make_transport(std::move(socket), *tls_) : make_transport(std::move(socket));
  // Not make_shared: the memory would last as long as the weak pointers.
  std::shared_ptr<Connection> connection(
      new Connection(thread.loop, std::move(transport), setup_, address, tls_.has_value()));
  const bool busy = setup_->num_connections > setup_->limits.max_connections;
  asio::post(thread.io, [&thread, connection = std::move(connection), busy] {
    thread.add(connection);
    connection->start(busy);
  });
}

void AsioServer::stop_accepting() {
  setup_->stopping = true;
  asio::post(threads_.front()->io, [this] {
    SystemError ignored;
    if (acceptor_) acceptor_->close(ignored);
  });
  for (auto& thread : threads_)
    asio::post(thread->io, [&thread = *thread] {
      thread.each([](Connection& connection) { connection.end_if_idle(); });
    });
}

AsioServer::~AsioServer() {
  if (acceptor_) stop_accepting();
  for (auto& thread : threads_) {
    asio::post(thread->io, [&thread = *thread] {
      thread.each([](Connection& connection) { connection.cut(); });
      thread.work.reset();
    });
    if (thread->thread.joinable()) thread->thread.join();
  }
  // Exchanges may live on.
  for (auto& thread : threads_) thread->loop->close();
  if (!uds_.empty()) unlink(uds_.c_str());
}

}  // namespace

Result<std::unique_ptr<Server>> Server::start(ServerOptions options) {
  auto server = std::make_unique<AsioServer>();
  OCTAVO_CHECK_OK(server->listen(std::move(options)));
  return server;
}

}  // namespace octavo::http
