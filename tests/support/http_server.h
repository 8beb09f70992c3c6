// Servers on a free port of the loopback, for tests of what a server does with bytes.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "http/server.h"

namespace octavo {

constexpr std::chrono::seconds kTestPatience{20};

// What one thread hands to another. take() gives up after a while, with a T of its own.
template <class T>
class Mailbox {
 public:
  void put(T item) {
    const std::lock_guard lock(mutex_);
    items_.push_back(std::move(item));
    is_there_.notify_all();
  }
  T take() {
    std::unique_lock lock(mutex_);
    const bool is_there = is_there_.wait_for(lock, kTestPatience, [&] { return !items_.empty(); });
    EXPECT_TRUE(is_there) << "waited in vain";
    if (!is_there) return {};
    T item = std::move(items_.front());
    items_.pop_front();
    return item;
  }

 private:
  std::mutex mutex_;
  std::condition_variable is_there_;
  std::deque<T> items_;
};

using Exchanges = Mailbox<std::shared_ptr<http::Exchange>>;

// Whether it becomes true while anybody would wait.
inline bool eventually(const std::function<bool()>& is_true) {
  const auto end = std::chrono::steady_clock::now() + kTestPatience;
  while (!is_true()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

inline http::ServerOptions options_of(http::Handler handler) {
  http::ServerOptions options;
  options.port = 0;
  options.handler = std::move(handler);
  return options;
}

// Nobody answers but whoever takes the exchanges.
inline http::ServerOptions options_of(Exchanges& exchanges) {
  return options_of([&exchanges](std::shared_ptr<http::Exchange> exchange) {
    exchanges.put(std::move(exchange));
  });
}

inline std::unique_ptr<http::Server> serve(http::ServerOptions options) {
  auto server = http::Server::start(std::move(options));
  EXPECT_TRUE(server) << server.error().message;
  return server ? std::move(*server) : nullptr;
}

// Answers "METHOD path|query|body".
inline void echo(const std::shared_ptr<http::Exchange>& exchange) {
  const http::Request& request = exchange->request();
  exchange->respond(
      {.content_type = "text/plain",
       .body = request.method + " " + request.path + "|" + request.query + "|" + request.body});
}

inline http::ServerOptions echo_options() { return options_of(echo); }

inline std::string get_request(const std::string& path, const std::string& headers = "") {
  return "GET " + path + " HTTP/1.1\r\nHost: h\r\n" + headers + "\r\n";
}
inline std::string post_request(const std::string& path, const std::string& body) {
  return "POST " + path + " HTTP/1.1\r\nHost: h\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\n\r\n" + body;
}

}  // namespace octavo
