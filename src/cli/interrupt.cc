#include "cli/interrupt.h"

#include <semaphore.h>

#include <atomic>

namespace octavo::cli {
namespace {

// A signal handler can reach nothing but globals, and of all ways to wake a thread it may use
// sem_post only.
std::atomic<bool> interrupted;
sem_t wake;

extern "C" void on_interrupt(int) {
  interrupted.store(true);
  sem_post(&wake);
}
static_assert(std::atomic<bool>::is_always_lock_free);

void wait_for_wake() {
  while (sem_wait(&wake) != 0) {
  }
}

}  // namespace

InterruptGuard::InterruptGuard() {
  interrupted = false;
  sem_init(&wake, 0, 0);
  watcher_ = std::jthread([this] {
    wait_for_wake();
    if (interrupted) source_.request_stop();
  });
  struct sigaction action = {};
  action.sa_handler = on_interrupt;
  sigaction(SIGINT, &action, &previous_);
}

InterruptGuard::~InterruptGuard() {
  sigaction(SIGINT, &previous_, nullptr);
  sem_post(&wake);
  watcher_.join();
}

bool InterruptGuard::was_interrupted() const { return interrupted; }

}  // namespace octavo::cli
