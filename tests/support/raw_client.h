// A client that sends bytes and reads bytes, so that a test can do what no proper client does.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

namespace octavo {

struct RawResponse {
  int status = 0;  // 0: none came whole
  std::string head;
  std::string body;  // out of its chunks

  // Of the first header of this name, which is given in lower case; "" if there is none.
  std::string header(const std::string& name) const {
    std::string lower = head;
    for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    const size_t at = lower.find("\r\n" + name + ": ");
    if (at == std::string::npos) return "";
    const size_t begin = at + name.size() + 4;
    return head.substr(begin, head.find("\r\n", begin) - begin);
  }
};

// Nothing on it waits for more than twenty seconds.
class RawClient {
 public:
  RawClient() = default;
  explicit RawClient(uint16_t port, const char* address = "127.0.0.1", int receive_buffer = 0) {
    const bool is_v6 = std::strchr(address, ':') != nullptr;
    fd_ = ::socket(is_v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (receive_buffer > 0)
      ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    sockaddr_in v4 = {};
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
    sockaddr_in6 v6 = {};
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(port);
    ::inet_pton(is_v6 ? AF_INET6 : AF_INET, address,
                is_v6 ? static_cast<void*>(&v6.sin6_addr) : static_cast<void*>(&v4.sin_addr));
    if (is_v6)
      connect(reinterpret_cast<const sockaddr*>(&v6), sizeof v6);
    else
      connect(reinterpret_cast<const sockaddr*>(&v4), sizeof v4);
  }
  explicit RawClient(const std::string& uds) {
    fd_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, uds.c_str(), sizeof address.sun_path - 1);
    connect(reinterpret_cast<const sockaddr*>(&address), sizeof address);
  }
  RawClient(RawClient&& other) noexcept { *this = std::move(other); }
  RawClient& operator=(RawClient&& other) noexcept {
    std::swap(fd_, other.fd_);
    std::swap(is_connected_, other.is_connected_);
    std::swap(pending_, other.pending_);
    return *this;
  }
  ~RawClient() { close(); }

  bool is_connected() const { return is_connected_; }
  int fd() const { return fd_; }

  // Returns how many bytes the server's side took.
  size_t send(std::string_view bytes) {
    size_t done = 0;
    while (done < bytes.size()) {
      const ssize_t n = ::send(fd_, bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL);
      if (n <= 0) break;
      done += static_cast<size_t>(n);
    }
    return done;
  }
  void end_sending() { ::shutdown(fd_, SHUT_WR); }
  void close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }
  // The server's system hears of it as an error.
  void reset() {
    const linger at_once = {.l_onoff = 1, .l_linger = 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    close();
  }

  // Up to and with `end`; what came, if the connection ends before.
  std::string read_until(std::string_view end) {
    size_t at = std::string::npos;
    while ((at = pending_.find(end)) == std::string::npos)
      if (!receive()) return std::exchange(pending_, {});
    return take(at + end.size());
  }
  std::string read_bytes(size_t n) {
    while (pending_.size() < n)
      if (!receive()) break;
    return take(n);
  }
  // All there is until the server closes.
  std::string read_to_end() {
    while (receive()) {
    }
    return std::exchange(pending_, {});
  }
  // True: the server has closed, and nothing came before that.
  bool is_ended() { return pending_.empty() && !receive() && is_ended_; }

  RawResponse read_response(bool has_body = true) {
    RawResponse response;
    response.head = read_until("\r\n\r\n");
    if (!response.head.ends_with("\r\n\r\n")) return {};
    if (has_body && response.header("transfer-encoding") == "chunked")
      response.body = read_chunks();
    else if (has_body && !response.header("content-length").empty())
      response.body = read_bytes(std::strtoul(response.header("content-length").c_str(), {}, 10));
    response.status = std::atoi(response.head.c_str() + std::strlen("HTTP/1.1 "));
    return response;
  }
  // The data of one chunk; "" of the last.
  std::string read_chunk() {
    const std::string size = read_until("\r\n");
    std::string data = read_bytes(std::strtoul(size.c_str(), nullptr, 16) + 2);
    EXPECT_TRUE(data.ends_with("\r\n"));
    return data.substr(0, std::max<size_t>(data.size(), 2) - 2);
  }

 private:
  void connect(const sockaddr* address, socklen_t size) {
    const timeval limit = {.tv_sec = 20, .tv_usec = 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    ::setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    const int on = 1;
    ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    is_connected_ = ::connect(fd_, address, size) == 0;
  }
  std::string read_chunks() {
    std::string all;
    for (std::string chunk; !(chunk = read_chunk()).empty();) all += chunk;
    return all;
  }
  std::string take(size_t n) {
    std::string taken = pending_.substr(0, n);
    pending_.erase(0, n);
    return taken;
  }
  bool receive() {
    char buffer[64 << 10];
    const ssize_t n = ::recv(fd_, buffer, sizeof buffer, 0);
    if (n > 0) pending_.append(buffer, static_cast<size_t>(n));
    is_ended_ = n == 0 || (n < 0 && errno == ECONNRESET);
    return n > 0;
  }

  int fd_ = -1;
  bool is_connected_ = false, is_ended_ = false;
  std::string pending_;
};

}  // namespace octavo
