// The bytes of one connection: plain or TLS, over TCP or a Unix socket.
#pragma once

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/system/error_code.hpp>
#include <memory>
#include <span>
#include <string_view>

#include "http/asio.h"

namespace octavo::http {

using Socket = boost::asio::generic::stream_protocol::socket;

// One read and one write may be on their way at once. A failed operation sets `error`.
class Transport {
 public:
  using ErrorCode = boost::system::error_code;

  virtual ~Transport() = default;
  virtual boost::asio::awaitable<void> handshake(ErrorCode& error) = 0;
  virtual boost::asio::awaitable<size_t> read_some(std::span<char> into, ErrorCode& error) = 0;
  virtual boost::asio::awaitable<size_t> write_some(std::string_view from, ErrorCode& error) = 0;
  // Says that nothing more comes. With TLS done when the client has said so, too; reads may go on.
  virtual boost::asio::awaitable<void> end_sending(ErrorCode& error) = 0;
  virtual Socket& socket() = 0;
};

std::unique_ptr<Transport> make_transport(Socket socket);
std::unique_ptr<Transport> make_transport(Socket socket, boost::asio::ssl::context& tls);

}  // namespace octavo::http
