// One connection: reads requests, hands each to the handler, writes the answers in order.
//
// Everything but what is marked so runs on the thread of its io_context. Three coroutines: `run`
// goes from request to request, `read_loop` always reads (so that a client that leaves is noticed
// during an answer, and pipelined bytes are kept), `write_loop` writes what lies in the outbox.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "http/io_loop.h"
#include "http/memory_budget.h"
#include "http/request_reader.h"
#include "http/response_text.h"
#include "http/transport.h"

namespace octavo::http {

// Of all connections of a server.
struct ConnectionSetup {
  ServerLimits limits;
  std::shared_ptr<MemoryBudget> memory;
  Handler handler;
  std::function<std::optional<Response>(const Request& head)> on_head;
  std::function<Response(int status, const std::string& why)> on_fault;
  std::atomic<bool> stopping{false};  // each ends after its present answer
  std::atomic<int> num_connections{0};
};

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(std::shared_ptr<IoLoop> loop, std::unique_ptr<Transport> transport,
             std::shared_ptr<ConnectionSetup> setup, std::string remote_address, bool is_tls);
  ~Connection();

  // busy: there are too many connections, and this one is told so.
  void start(bool busy);
  void cut();
  void end_if_idle();

  // --- of exchanges, from any thread; `id` is the exchange's ---
  void post(std::function<void()> work);
  void answer(uint64_t id, Response response);
  void begin_stream(uint64_t id, Response head, StreamOptions options);
  bool write(uint64_t id, std::string chunk);
  void when_written(std::function<void()> work);
  void end_stream(uint64_t id, std::string last);
  void on_disconnect(uint64_t id, std::function<void()> gone);
  void dropped(uint64_t id);

 private:
  using Timer = boost::asio::steady_timer;
  using Time = Timer::time_point;
  enum class Answer : uint8_t { open, streaming, done, lost };

  boost::asio::awaitable<void> run(std::shared_ptr<Connection> self, bool busy);
  boost::asio::awaitable<void> read_loop(std::shared_ptr<Connection> self);
  boost::asio::awaitable<void> write_loop(std::shared_ptr<Connection> self);
  boost::asio::awaitable<void> give_up();
  boost::asio::awaitable<bool> handshake();
  boost::asio::awaitable<void> serve_all(bool busy);
  boost::asio::awaitable<bool> serve_one();
  boost::asio::awaitable<bool> read_request(RequestReader& reader, MemoryBudget::Share& memory);
  boost::asio::awaitable<void> wait_for_answer();
  boost::asio::awaitable<void> linger();
  boost::asio::awaitable<void> end_sending(std::shared_ptr<Connection> self);
  boost::asio::awaitable<bool> wait(Timer& timer, Time deadline);
  void keep_alive_later(uint64_t id);

  bool is_refused(const RequestReader& reader);
  void add_origin(Request& request) const;
  void refuse(const Response& response);
  void refuse(int status, const std::string& why);
  Response fault(int status, const std::string& why) const;
  void send(std::string bytes);
  void send_chunk(std::string_view data);
  void peer_gone(bool lost);
  void tell_written();
  void finish_answer();
  bool is_current(uint64_t id, Answer state) const {
    return id == exchange_id_ && state == answer_;
  }

  std::shared_ptr<IoLoop> loop_;
  boost::asio::io_context* io_;
  std::unique_ptr<Transport> transport_;
  std::shared_ptr<ConnectionSetup> setup_;
  const std::string remote_address_;
  const bool is_tls_;

  Timer changed_, room_, to_write_, write_deadline_, keep_alive_timer_;
  std::string inbox_, outbox_;
  std::atomic<size_t> pending_{0};  // bytes of streams: in posts, outbox or being written
  std::atomic<size_t> max_pending_{0};
  std::atomic<bool> open_{true};  // bytes can be written
  bool eof_ = false;              // the client sends no more
  bool idle_ = true;              // waits for a first byte
  bool is_writing_ = false;
  bool discards_ = false;  // what comes is thrown away
  double first_byte_s_ = 0;

  uint64_t exchange_id_ = 0;  // of the present exchange
  Answer answer_ = Answer::done;
  bool keep_alive_ = false, is_http10_ = false, is_head_ = false;
  std::function<void()> gone_, written_;  // the exchange's
  StreamOptions stream_;
  Time last_write_{};
};

}  // namespace octavo::http
