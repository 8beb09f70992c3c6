#include "cli/stop_signals.h"

#include <semaphore.h>

#include <atomic>

namespace octavo::cli {
namespace {

// A signal handler can reach nothing but globals, and of all ways to wake a thread it may use
// sem_post only.
std::atomic<int> num_signals;
sem_t wake;

extern "C" void on_stop_signal(int) {
  num_signals.fetch_add(1);
  sem_post(&wake);
}
static_assert(std::atomic<int>::is_always_lock_free);

void wait_for_wake() {
  while (sem_wait(&wake) != 0) {
  }
}

bool is_ignored(int signal) {
  struct sigaction action = {};
  return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace

StopSignals::StopSignals(std::initializer_list<int> signals) {
  num_signals = 0;
  sem_init(&wake, 0, 0);
  watcher_ = std::jthread([this](std::stop_token closing) {
    while (!closing.stop_requested()) {
      wait_for_wake();
      if (num_signals > 0) first_.request_stop();
      if (num_signals > 1) second_.request_stop();
    }
  });
  struct sigaction action = {};
  action.sa_handler = on_stop_signal;
  for (const int signal : signals) {
    if (signal == SIGHUP && is_ignored(signal)) continue;
    previous_.push_back({signal, {}});
    sigaction(signal, &action, &previous_.back().second);
  }
}

StopSignals::~StopSignals() {
  for (const auto& [signal, action] : previous_) sigaction(signal, &action, nullptr);
  watcher_.request_stop();
  sem_post(&wake);
  watcher_.join();
}

bool StopSignals::came() const { return num_signals > 0; }

}  // namespace octavo::cli
