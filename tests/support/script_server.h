// A server on a free port of the loopback whose answers are bytes that a test writes, whole or cut.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace octavo {

// One connection. Nothing on it waits for more than ten seconds.
class ScriptPeer {
 public:
  explicit ScriptPeer(int fd) : fd_(fd) {
    timeval limit = {.tv_sec = 10, .tv_usec = 0};
    ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    const int on = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }

  void send(std::string_view bytes) { ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL); }
  void close() { ::shutdown(fd_, SHUT_RDWR); }

  // What comes until `bytes_after_head` after the blank line; nothing if it ends before.
  bool read_request(std::string& head, std::string& body) {
    size_t end = std::string::npos;
    while ((end = pending_.find("\r\n\r\n")) == std::string::npos)
      if (!receive()) return false;
    head = pending_.substr(0, end + 4);
    const size_t at = head.find("Content-Length: ");
    const size_t size = at == std::string::npos ? 0 : std::strtoul(&head[at + 16], nullptr, 10);
    while (pending_.size() < head.size() + size)
      if (!receive()) return false;
    body = pending_.substr(head.size(), size);
    pending_.erase(0, head.size() + size);
    return true;
  }

  // True: the client has hung up.
  bool wait_for_end() {
    while (receive()) {
    }
    return is_ended_;
  }

 private:
  bool receive() {
    char bytes[4096];
    const ssize_t count = ::recv(fd_, bytes, sizeof bytes, 0);
    is_ended_ = count == 0 || (count < 0 && errno == ECONNRESET);
    if (count > 0) pending_.append(bytes, static_cast<size_t>(count));
    return count > 0;
  }

  int fd_;
  std::string pending_;
  bool is_ended_ = false;
};

struct ScriptRequest {
  std::string head, body;
  int connection = 0;  // the how manieth
  std::string_view path() const {
    const std::string_view text = head;
    const size_t begin = text.find(' ') + 1;
    return text.substr(begin, text.find(' ', begin) - begin);
  }
};

class ScriptServer {
 public:
  using Script = std::function<void(const ScriptRequest& request, ScriptPeer& peer)>;

  // `script` is called for each request, on a thread of its connection.
  explicit ScriptServer(Script script) : script_(std::move(script)) {
    listener_ = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* raw = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(::bind(listener_, raw, size), 0);
    EXPECT_EQ(::listen(listener_, 512), 0);
    EXPECT_EQ(::getsockname(listener_, raw, &size), 0);
    port_ = ntohs(address.sin_port);
    acceptor_ = std::thread([this] { accept_all(); });
  }
  ScriptServer(const ScriptServer&) = delete;
  ScriptServer& operator=(const ScriptServer&) = delete;
  ~ScriptServer() { stop(); }

  void stop() {
    if (listener_ < 0) return;
    ::shutdown(listener_, SHUT_RDWR);
    acceptor_.join();
    for (const int fd : connections_) ::shutdown(fd, SHUT_RDWR);
    for (std::thread& thread : threads_) thread.join();
    for (const int fd : connections_) ::close(fd);
    ::close(std::exchange(listener_, -1));
  }

  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  uint16_t port() const { return port_; }

 private:
  void accept_all() {
    for (;;) {
      const int fd = ::accept(listener_, nullptr, nullptr);
      if (fd < 0) return;
      const int index = static_cast<int>(connections_.size());
      connections_.push_back(fd);
      threads_.emplace_back([this, fd, index] {
        ScriptPeer peer(fd);
        ScriptRequest request;
        request.connection = index;
        while (peer.read_request(request.head, request.body)) script_(request, peer);
      });
    }
  }

  Script script_;
  int listener_ = -1;
  uint16_t port_ = 0;
  std::thread acceptor_;
  std::vector<int> connections_;  // of accept_all() until it has ended
  std::vector<std::thread> threads_;
};

inline std::string http_answer(std::string_view status, std::string_view type,
                               std::string_view body) {
  return "HTTP/1.1 " + std::string(status) + "\r\nContent-Type: " + std::string(type) +
         "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
}

inline constexpr std::string_view kStreamHead =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";

inline std::string http_chunk(std::string_view text) {
  char size[32];
  std::snprintf(size, sizeof size, "%zx\r\n", text.size());
  return size + std::string(text) + "\r\n";
}
inline constexpr std::string_view kLastChunk = "0\r\n\r\n";

}  // namespace octavo
