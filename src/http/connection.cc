#include "http/connection.h"

#include <algorithm>
#include <array>
#include <utility>

namespace octavo::http {
namespace {

namespace asio = boost::asio;
using ErrorCode = Transport::ErrorCode;
using Clock = std::chrono::steady_clock;

constexpr size_t kReadBytes = 4 << 10;    // each connection has a buffer of this size
constexpr size_t kInboxBytes = 64 << 10;  // pipelined bytes that are kept during an answer
constexpr size_t kKeptBytes = 16 << 10;   // of a buffer that has become empty
constexpr size_t kMinPendingChunks = 8;   // of a stream, however large
constexpr std::chrono::seconds kLinger{5};

double seconds_of(Clock::time_point time) {
  return std::chrono::duration<double>(time.time_since_epoch()).count();
}

// Frees what a large request or a slow reader has left behind.
void trim(std::string& empty) {
  if (empty.capacity() > kKeptBytes) std::string().swap(empty);
}

class ConnectionExchange : public Exchange {
 public:
  ConnectionExchange(std::shared_ptr<Connection> connection, uint64_t id, Request request,
                     MemoryBudget::Share memory)
      : connection_(std::move(connection)),
        id_(id),
        memory_(std::move(memory)),
        request_(std::move(request)) {}
  ~ConnectionExchange() override { connection_->dropped(id_); }

  const Request& request() const override { return request_; }
  std::string& body() override { return request_.body; }
  bool reserve(size_t bytes) override { return memory_.resize(bytes); }
  void respond(Response response) override { connection_->answer(id_, std::move(response)); }
  void begin_stream(Response head, StreamOptions options) override {
    connection_->begin_stream(id_, std::move(head), std::move(options));
  }
  bool write(std::string chunk) override { return connection_->write(id_, std::move(chunk)); }
  void when_written(std::function<void()> work) override {
    connection_->when_written(std::move(work));
  }
  void end_stream(std::string last) override { connection_->end_stream(id_, std::move(last)); }
  void on_disconnect(std::function<void()> gone) override {
    connection_->on_disconnect(id_, std::move(gone));
  }
  void post(std::function<void()> work) override { connection_->post(std::move(work)); }

 private:
  std::shared_ptr<Connection> connection_;
  uint64_t id_;
  MemoryBudget::Share memory_;  // of the request; given back after it
  Request request_;
};

}  // namespace

Connection::Connection(std::shared_ptr<IoLoop> loop, std::unique_ptr<Transport> transport,
                       std::shared_ptr<ConnectionSetup> setup, std::string remote_address,
                       bool is_tls)
    : loop_(std::move(loop)),
      io_(&loop_->context()),
      transport_(std::move(transport)),
      setup_(std::move(setup)),
      remote_address_(std::move(remote_address)),
      is_tls_(is_tls),
      changed_(*io_),
      room_(*io_),
      to_write_(*io_),
      write_deadline_(*io_),
      keep_alive_timer_(*io_) {
  ++setup_->num_connections;
}

Connection::~Connection() { --setup_->num_connections; }

void Connection::start(bool busy) {
  asio::co_spawn(*io_, run(shared_from_this(), busy), asio::detached);
}

void Connection::cut() { peer_gone(true); }

void Connection::end_if_idle() {
  if (idle_ && inbox_.empty()) cut();
}

// --- coroutines -----------------------------------------------------------------------------

// True: `timer` was cancelled, which says that something changed; false: the deadline has passed.
asio::awaitable<bool> Connection::wait(Timer& timer, Time deadline) {
  timer.expires_at(deadline);
  ErrorCode error;
  co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, error));
  co_return error == asio::error::operation_aborted;
}

asio::awaitable<void> Connection::run([[maybe_unused]] std::shared_ptr<Connection> self,
                                      bool busy) {
  bool has_failed = false;
  try {
    const bool ready = co_await handshake();
    if (ready) co_await serve_all(busy);
  } catch (...) {
    has_failed = true;  // no memory, most likely: this connection is given up
  }
  if (has_failed && open_ && answer_ == Answer::done) co_await give_up();
  peer_gone(true);
}

asio::awaitable<void> Connection::give_up() {
  try {
    std::string().swap(inbox_);
    refuse(503, "the server has no memory left for this request; try again later");
    co_await linger();
  } catch (...) {
    // Not even for that.
  }
}

asio::awaitable<void> Connection::serve_all(bool busy) {
  asio::co_spawn(*io_, read_loop(shared_from_this()), asio::detached);
  asio::co_spawn(*io_, write_loop(shared_from_this()), asio::detached);
  bool goes_on = !busy;
  if (busy) refuse(503, "the server has as many connections as it takes; try again later");
  while (goes_on) goes_on = co_await serve_one();
  co_await linger();
}

asio::awaitable<bool> Connection::handshake() {
  if (!is_tls_) co_return true;
  Timer deadline(*io_, setup_->limits.header_timeout);
  deadline.async_wait([self = shared_from_this()](const ErrorCode& error) {
    if (!error) self->cut();
  });
  ErrorCode error;
  co_await transport_->handshake(error);
  deadline.cancel();
  co_return !error && open_;
}

// No memory is the end of the connection, here and below.
asio::awaitable<void> Connection::read_loop([[maybe_unused]] std::shared_ptr<Connection> self) try {
  std::array<char, kReadBytes> buffer;
  ErrorCode error;
  const size_t max_inbox = std::max(kInboxBytes, setup_->limits.max_header_bytes + 1);
  while (open_) {
    if (inbox_.size() >= max_inbox && !discards_) {
      co_await wait(room_, Time::max());
      continue;
    }
    const size_t n = co_await transport_->read_some(buffer, error);
    if (error) break;
    if (!discards_) inbox_.append(buffer.data(), n);
    changed_.cancel();
  }
  peer_gone(error != asio::error::eof && error != asio::ssl::error::stream_truncated);
} catch (...) {
  peer_gone(true);
}

asio::awaitable<void> Connection::write_loop(
    [[maybe_unused]] std::shared_ptr<Connection> self) try {
  std::string bytes;
  while (open_) {
    if (outbox_.empty()) {
      co_await wait(to_write_, Time::max());
      continue;
    }
    bytes.clear();
    trim(bytes);
    bytes.swap(outbox_);
    is_writing_ = true;
    for (size_t done = 0; done < bytes.size() && open_;) {
      write_deadline_.expires_after(setup_->limits.write_timeout);
      write_deadline_.async_wait([self](const ErrorCode& error) {
        if (!error) self->peer_gone(true);
      });
      ErrorCode error;
      const size_t n = co_await transport_->write_some(std::string_view(bytes).substr(done), error);
      write_deadline_.cancel();
      if (error) peer_gone(true);
      done += n;
      pending_ -= std::min(n, pending_.load());
    }
    is_writing_ = false;
    changed_.cancel();  // `linger` waits for this
    tell_written();
  }
} catch (...) {
  peer_gone(true);
}

// False: the connection has to end.
asio::awaitable<bool> Connection::serve_one() {
  RequestReader reader(setup_->limits);
  MemoryBudget::Share memory(setup_->memory);
  const bool is_read = co_await read_request(reader, memory);
  if (!is_read) co_return false;
  keep_alive_ = reader.keep_alive();
  is_http10_ = reader.is_http10();
  Request request = reader.take();
  add_origin(request);
  answer_ = Answer::open;
  auto exchange = std::make_shared<ConnectionExchange>(shared_from_this(), ++exchange_id_,
                                                       std::move(request), std::move(memory));
  try {
    setup_->handler(std::move(exchange));
  } catch (...) {
    answer(exchange_id_, fault(500, "the server made a mistake"));
  }
  co_await wait_for_answer();
  co_return keep_alive_&& open_ && !eof_;
}

asio::awaitable<void> Connection::wait_for_answer() {
  while (open_ && answer_ != Answer::done) co_await wait(changed_, Time::max());
  if (answer_ != Answer::done) answer_ = Answer::lost;
  gone_ = nullptr;
}

// False: there is none, and whatever had to be said about it has been.
asio::awaitable<bool> Connection::read_request(RequestReader& reader, MemoryBudget::Share& memory) {
  const ServerLimits& limits = setup_->limits;
  idle_ = true;
  is_head_ = false;
  if (inbox_.empty()) trim(inbox_);
  Time deadline = Clock::now() + limits.idle_timeout;
  bool asked = false;
  while (open_) {
    if (idle_ && !inbox_.empty()) {
      idle_ = false;
      first_byte_s_ = seconds_of(Clock::now());
      deadline = Clock::now() + limits.header_timeout;
    }
    const auto before = reader.state();
    const auto state = reader.feed(inbox_);
    room_.cancel();
    if (state == RequestReader::State::fault) {
      refuse(reader.status(), reader.why());
      co_return false;
    }
    if (state != RequestReader::State::head && !std::exchange(asked, true) && is_refused(reader))
      co_return false;
    if (!memory.resize(reader.body_bytes())) {
      refuse(503, "the server holds as many bytes of requests as it takes; try again later");
      co_return false;
    }
    if (state == RequestReader::State::complete) co_return true;
    if (state != before) {
      deadline = Clock::now() + limits.body_timeout;
      if (reader.expects_continue() && inbox_.empty()) send("HTTP/1.1 100 Continue\r\n\r\n");
    }
    if (eof_ || (idle_ && setup_->stopping)) co_return false;
    const bool changed = co_await wait(changed_, deadline);
    if (changed) continue;
    if (!idle_) refuse(408, "the request did not arrive in time");
    co_return false;
  }
  co_return false;
}

bool Connection::is_refused(const RequestReader& reader) {
  is_head_ = reader.head().method == "HEAD";
  if (!setup_->on_head) return false;
  Request head = reader.head();
  add_origin(head);
  const auto response = setup_->on_head(head);
  if (response) refuse(*response);
  return response.has_value();
}

void Connection::add_origin(Request& request) const {
  request.remote_address = remote_address_;
  request.is_tls = is_tls_;
  request.received_s = first_byte_s_;
}

// Whatever was written is given out, and what the client still sends is read for a moment: closing
// on unread bytes would take the answer from it.
asio::awaitable<void> Connection::linger() {
  // `write_loop` gives up on a client that takes nothing.
  while (open_ && (!outbox_.empty() || is_writing_)) co_await wait(changed_, Time::max());
  if (!open_ || eof_) co_return;
  discards_ = true;
  inbox_.clear();
  room_.cancel();
  asio::co_spawn(*io_, end_sending(shared_from_this()), asio::detached);
  const Time end = Clock::now() + kLinger;
  while (open_ && !eof_) {
    const bool changed = co_await wait(changed_, end);
    if (!changed) co_return;
  }
}

asio::awaitable<void> Connection::end_sending([[maybe_unused]] std::shared_ptr<Connection> self) {
  ErrorCode ignored;
  co_await transport_->end_sending(ignored);
}

// --- writing --------------------------------------------------------------------------------

void Connection::send(std::string bytes) {
  if (!open_) return;
  pending_ += bytes.size();
  last_write_ = Clock::now();
  if (outbox_.empty())
    outbox_ = std::move(bytes);
  else
    outbox_ += bytes;
  to_write_.cancel();
}

void Connection::send_chunk(std::string_view data) {
  if (data.empty() || is_head_) return;
  send(is_http10_ ? std::string(data) : chunk_text(data));
}

Response Connection::fault(int status, const std::string& why) const {
  Response response = setup_->on_fault ? setup_->on_fault(status, why)
                                       : Response{.status = status,
                                                  .content_type = "text/plain; charset=utf-8",
                                                  .headers = {},
                                                  .body = why};
  if (status == 503) response.headers.push_back({"Retry-After", "1"});
  return response;
}

void Connection::refuse(const Response& response) {
  send(response_text(response, is_head_ ? Framing::no_body : Framing::length, false));
}

void Connection::refuse(int status, const std::string& why) { refuse(fault(status, why)); }

void Connection::finish_answer() {
  answer_ = Answer::done;
  keep_alive_timer_.cancel();
  changed_.cancel();
}

// The client sends no more; lost: nor does it read.
void Connection::peer_gone(bool lost) {
  eof_ = true;
  if (lost && open_.exchange(false)) {
    ErrorCode ignored;
    transport_->socket().close(ignored);
    write_deadline_.cancel();
    keep_alive_timer_.cancel();
  }
  for (Timer* timer : {&changed_, &room_, &to_write_}) timer->cancel();
  tell_written();
  if (answer_ != Answer::done)
    if (const auto gone = std::exchange(gone_, nullptr)) gone();
}

// --- of exchanges ---------------------------------------------------------------------------

void Connection::post(std::function<void()> work) { loop_->post(std::move(work)); }

void Connection::answer(uint64_t id, Response response) {
  post([self = shared_from_this(), id, response = std::move(response)]() mutable {
    if (!self->is_current(id, Answer::open)) return;
    self->keep_alive_ = self->keep_alive_ && !response.close && !self->setup_->stopping;
    self->send(response_text(std::move(response),
                             self->is_head_ ? Framing::no_body : Framing::length,
                             self->keep_alive_));
    self->finish_answer();
  });
}

void Connection::begin_stream(uint64_t id, Response head, StreamOptions options) {
  max_pending_ = options.max_pending_bytes;
  post([self = shared_from_this(), id, head = std::move(head), options = std::move(options)] {
    if (!self->is_current(id, Answer::open)) return;
    self->answer_ = Answer::streaming;
    self->stream_ = options;
    self->keep_alive_ = self->keep_alive_ && !head.close && !self->is_http10_;
    self->send(response_text(head, self->is_http10_ ? Framing::to_close : Framing::chunked,
                             self->keep_alive_));
    self->send_chunk(head.body);
    if (self->open_ && options.keep_alive_interval.count() > 0) self->keep_alive_later(id);
  });
}

void Connection::keep_alive_later(uint64_t id) {
  keep_alive_timer_.expires_at(last_write_ + stream_.keep_alive_interval);
  keep_alive_timer_.async_wait([self = shared_from_this(), id](const ErrorCode& error) {
    if (error || !self->is_current(id, Answer::streaming)) return;
    if (Clock::now() >= self->last_write_ + self->stream_.keep_alive_interval) {
      if (self->outbox_.empty()) self->send_chunk(self->stream_.keep_alive);
      self->last_write_ = Clock::now();
    }
    self->keep_alive_later(id);
  });
}

bool Connection::write(uint64_t id, std::string chunk) {
  // Of large chunks the bound is a number, or who asks for those could not be served at all.
  const size_t bound = std::max<size_t>(max_pending_, kMinPendingChunks * chunk.size());
  const bool has_begun = max_pending_ > 0;
  if (!open_ || !has_begun || pending_ + chunk.size() > bound) return false;
  // Counted now: the writer may call many times before the first post is carried out.
  pending_ += chunk.size();
  post([self = shared_from_this(), id, chunk = std::move(chunk)] {
    self->pending_ -= std::min(chunk.size(), self->pending_.load());
    if (self->is_current(id, Answer::streaming)) self->send_chunk(chunk);
  });
  return true;
}

void Connection::when_written(std::function<void()> work) {
  post([self = shared_from_this(), work = std::move(work)] {
    // What an answer before this one waited for will not come any more.
    if (auto before = std::exchange(self->written_, work)) self->post(std::move(before));
    self->tell_written();
  });
}

void Connection::tell_written() {
  if (open_ && (is_writing_ || !outbox_.empty())) return;
  if (auto work = std::exchange(written_, nullptr)) post(std::move(work));
}

void Connection::end_stream(uint64_t id, std::string last) {
  post([self = shared_from_this(), id, last = std::move(last)] {
    if (!self->is_current(id, Answer::streaming)) return;
    self->send_chunk(last);
    if (self->is_http10_)
      self->keep_alive_ = false;
    else if (!self->is_head_)
      self->send("0\r\n\r\n");
    if (self->setup_->stopping) self->keep_alive_ = false;
    self->finish_answer();
  });
}

void Connection::on_disconnect(uint64_t id, std::function<void()> gone) {
  post([self = shared_from_this(), id, gone = std::move(gone)] {
    if (id != self->exchange_id_ || self->answer_ == Answer::done) return;
    if (self->eof_ || self->answer_ == Answer::lost) return gone();
    self->gone_ = gone;
  });
}

void Connection::dropped(uint64_t id) {
  post([self = shared_from_this(), id] {
    if (self->is_current(id, Answer::streaming)) return self->cut();
    if (!self->is_current(id, Answer::open)) return;
    if (self->eof_) return self->cut();
    self->answer(id, self->fault(500, "the request was dropped without an answer"));
  });
}

}  // namespace octavo::http
