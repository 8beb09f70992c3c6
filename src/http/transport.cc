#include "http/transport.h"

#include <utility>

namespace octavo::http {
namespace {

namespace asio = boost::asio;

template <class Stream>
class StreamTransport : public Transport {
 public:
  template <class... Args>
  explicit StreamTransport(Args&&... args) : stream_(std::forward<Args>(args)...) {}

  asio::awaitable<void> handshake(ErrorCode& error) override {
    if constexpr (kIsTls)
      co_await stream_.async_handshake(asio::ssl::stream_base::server,
                                       asio::redirect_error(asio::use_awaitable, error));
    co_return;
  }
  asio::awaitable<size_t> read_some(std::span<char> into, ErrorCode& error) override {
    const auto buffer = asio::buffer(into.data(), into.size());
    const size_t n =
        co_await stream_.async_read_some(buffer, asio::redirect_error(asio::use_awaitable, error));
    // OpenSSL takes no more data once it has begun to say goodbye. What a client still sends then
    // is only read to be thrown away, which needs no key.
    const bool is_of_tls = error.category() == asio::error::get_ssl_category() ||
                           error.category() == asio::ssl::error::get_stream_category();
    if (!is_ending_ || !is_of_tls || error == asio::ssl::error::stream_truncated) co_return n;
    co_return co_await socket().async_read_some(buffer,
                                                asio::redirect_error(asio::use_awaitable, error));
  }
  asio::awaitable<size_t> write_some(std::string_view from, ErrorCode& error) override {
    const auto buffer = asio::buffer(from.data(), from.size());
    co_return co_await stream_.async_write_some(buffer,
                                                asio::redirect_error(asio::use_awaitable, error));
  }
  asio::awaitable<void> end_sending(ErrorCode& error) override {
    is_ending_ = true;
    if constexpr (kIsTls)
      co_await stream_.async_shutdown(asio::redirect_error(asio::use_awaitable, error));
    else
      stream_.shutdown(Socket::shutdown_send, error);
    co_return;
  }
  Socket& socket() override {
    if constexpr (kIsTls)
      return stream_.next_layer();
    else
      return stream_;
  }

 private:
  static constexpr bool kIsTls = !std::is_same_v<Stream, Socket>;
  Stream stream_;
  bool is_ending_ = false;
};

}  // namespace

std::unique_ptr<Transport> make_transport(Socket socket) {
  return std::make_unique<StreamTransport<Socket>>(std::move(socket));
}

std::unique_ptr<Transport> make_transport(Socket socket, asio::ssl::context& tls) {
  return std::make_unique<StreamTransport<asio::ssl::stream<Socket>>>(std::move(socket), tls);
}

}  // namespace octavo::http
