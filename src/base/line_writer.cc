#include "base/line_writer.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <climits>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <string_view>
#include <system_error>
#include <utility>

namespace octavo {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kPoll_ms = 50;
constexpr std::chrono::seconds kLastWords{1};

}  // namespace

struct LineWriter::State {
  explicit State(Options given) : options(std::move(given)) {}

  const Options options;
  mutable std::mutex mutex;  // of what follows
  std::condition_variable changed;
  std::deque<std::string> lines;
  size_t num_bytes = 0;  // of them
  int64_t num_dropped = 0, num_told = 0;
  bool is_closing = false, has_ended = false;
  Clock::time_point give_up = Clock::time_point::max();

  bool next(std::string& line);
  std::string take_first();
  bool may_wait();
  bool wait_until_writable();
  void write(std::string_view line);
  void run();
};

// False: there is none, and none will come.
bool LineWriter::State::next(std::string& line) {
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return is_closing || !lines.empty(); });
  if (lines.empty() || Clock::now() >= give_up) return false;
  if (num_told < num_dropped && options.dropped_line) {
    line = options.dropped_line(num_dropped - num_told);
    num_told = num_dropped;
    return true;
  }
  line = take_first();
  return true;
}

std::string LineWriter::State::take_first() {
  std::string line = std::move(lines.front());
  lines.pop_front();
  num_bytes -= line.size();
  return line;
}

bool LineWriter::State::may_wait() {
  const std::lock_guard lock(mutex);
  return Clock::now() < give_up;
}

bool LineWriter::State::wait_until_writable() {
  pollfd file{options.file_descriptor, POLLOUT, 0};
  while (may_wait())
    if (::poll(&file, 1, kPoll_ms) > 0) return (file.revents & POLLNVAL) == 0;
  return false;
}

// In pieces that a pipe which can be written takes whole: more could wait for the reader.
void LineWriter::State::write(std::string_view line) {
  while (!line.empty()) {
    if (!wait_until_writable()) return;
    const ssize_t n =
        ::write(options.file_descriptor, line.data(), std::min<size_t>(line.size(), PIPE_BUF));
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n <= 0) return;
    line.remove_prefix(static_cast<size_t>(n));
  }
}

void LineWriter::State::run() {
  try {
    for (std::string line; next(line);) write(line);
  } catch (...) {
    // No memory for a line: nothing is written any more, which is no reason to end the program.
  }
  const std::lock_guard lock(mutex);
  has_ended = true;
  changed.notify_all();
}

LineWriter::LineWriter(Options options) : state_(std::make_shared<State>(std::move(options))) {
  try {
    thread_ = std::thread([state = state_] { state->run(); });
  } catch (const std::system_error&) {
    state_->has_ended = true;  // no thread to be had, and so no lines
  }
}

LineWriter::~LineWriter() {
  std::unique_lock lock(state_->mutex);
  state_->is_closing = true;
  state_->give_up = Clock::now() + kLastWords;
  state_->changed.notify_all();
  const bool ended = state_->changed.wait_until(lock, state_->give_up + kLastWords,
                                                [this] { return state_->has_ended; });
  lock.unlock();
  if (!thread_.joinable()) return;
  if (ended)
    thread_.join();
  else
    thread_.detach();
}

void LineWriter::write(std::string line) {
  const std::lock_guard lock(state_->mutex);
  State& state = *state_;
  state.num_bytes += line.size();
  state.lines.push_back(std::move(line));
  while (state.lines.size() > state.options.max_lines ||
         state.num_bytes > state.options.max_bytes) {
    state.take_first();
    ++state.num_dropped;
  }
  state.changed.notify_one();
}

int64_t LineWriter::num_dropped() const {
  const std::lock_guard lock(state_->mutex);
  return state_->num_dropped;
}

}  // namespace octavo
