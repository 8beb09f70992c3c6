#include "base/thread_pool.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <system_error>

#include "base/spin.h"

namespace octavo {
namespace {

// Moves the calling thread, worker `index`, to a core of its own beside `first`, that of the pool's
// maker, and then leaves it to the system again. A new thread may begin on its maker's core; two
// that wait for each other there look like little work, and it took 20 ms until they were parted.
void start_on_own_core(int index, int first) {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return;
  const int others = CPU_COUNT(&allowed) - (first >= 0 && CPU_ISSET(first, &allowed) ? 1 : 0);
  if (others < 1) return;
  int skip = (index - 1) % others;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (core == first || !CPU_ISSET(core, &allowed) || skip-- > 0) continue;
    cpu_set_t own;
    CPU_ZERO(&own);
    CPU_SET(core, &own);
    // A refusal costs speed at the start only.
    sched_setaffinity(0, sizeof(own), &own);
    sched_setaffinity(0, sizeof(allowed), &allowed);
    return;
  }
}

// Who may take part in which run, and how many do, in one word: nobody joins a run that is closed.
constexpr uint64_t kOneThread = 1;         // 16 bits: that joined
constexpr uint64_t kOneAllowed = 1 << 16;  // 16 bits: threads of the team, 0 once it is closed
constexpr uint64_t kOneRun = uint64_t{1} << 32;

constexpr uint64_t joined(uint64_t entry) { return entry % kOneAllowed; }
constexpr int allowed(uint64_t entry) {
  return static_cast<int>(entry / kOneAllowed % (kOneRun / kOneAllowed));
}

// So long nobody asks why it takes so long: longer than the ends of ranges mostly are apart.
constexpr auto kPatience = std::chrono::microseconds(50);
// A thread that had no core for so long has lost it.
constexpr auto kGlance = std::chrono::microseconds(10);
// Waiting for threads that are at work costs a core, being woken tens of us.
constexpr auto kLongestSpin = std::chrono::milliseconds(2);
constexpr int kMostChanges = 4;  // of cores, while a thread waits once

}  // namespace

Result<std::unique_ptr<ThreadPool>> ThreadPool::create(int num_threads) {
  std::unique_ptr<ThreadPool> pool(new ThreadPool);
  pool->seats_ = std::make_unique<Seat[]>(static_cast<size_t>(num_threads));
  for (int i = 1; i < num_threads; ++i) {
    try {
      pool->workers_.emplace_back([self = pool.get(), i, core = sched_getcpu()] {
        start_on_own_core(i, core);
        self->work(i);
      });
    } catch (const std::system_error& error) {
      return fail(ErrorCode::resource_exhausted,
                  fmt::format("thread {} of {} cannot be started ({}); ask for fewer threads",
                              i + 1, num_threads, error.code().message()));
    }
  }
  return pool;
}

ThreadPool::~ThreadPool() {
  stop_ = true;
  for (int i = 1; i < size(); ++i) seat(i).runs.advance();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::start(Function function, const void* context, int threads) {
  if (threads == 1) {
    Team alone(*this, 0, 1, 0);
    return function(context, alone);
  }
  function_ = function;
  context_ = context;
  run_ = runs_over_.value() + 1;
  first_phase_ = phases_over_.value();
  left_before_ = left_.value();
  seat(0).place.take();
  entry_.store(run_ * kOneRun + static_cast<uint64_t>(threads) * kOneAllowed,
               std::memory_order_release);
  for (int i = 1; i < threads; ++i) seat(i).runs.advance();
  take_part(0, threads);
  end_run();
}

void ThreadPool::work(int index) {
  seat(index).place.take();
  SignalWord& runs = seat(index).runs;
  for (uint64_t seen = 0, last_run = 0;;) {
    runs.await_change(seen);
    seen = runs.value();
    if (stop_) return;
    const int threads = join(index, last_run);
    if (threads == 0) continue;  // it is over, or goes on without this thread
    take_part(index, threads);
    last_run = run_;
    // The caller may have lost its core: until it has seen that all is done nothing goes on.
    await(runs_over_, index, Presence::in_run, [&] { return runs_over_.value() >= last_run; });
    seat(index).presence.store(Presence::away, std::memory_order_relaxed);
    left_.advance();
  }
}

// The number of threads of the run that is open now; 0: none is, or it is no matter of this thread.
// Told of one run, it may come as late as to the next.
int ThreadPool::join(int index, uint64_t last_run) {
  uint64_t entry = entry_.load(std::memory_order_acquire);
  while (index < allowed(entry) && entry / kOneRun != last_run % kOneRun)
    if (entry_.compare_exchange_weak(entry, entry + kOneThread, std::memory_order_acq_rel))
      return allowed(entry);
  return 0;
}

void ThreadPool::take_part(int index, int threads) {
  seat(index).place.note_core();
  seat(index).presence.store(Presence::in_run, std::memory_order_release);
  Team team(*this, index, threads, first_phase_);
  function_(context_, team);
  team.barrier();
}

void ThreadPool::end_run() {
  const uint64_t entry = entry_.fetch_and(~(kOneRun - kOneAllowed), std::memory_order_acq_rel);
  runs_over_.advance();
  const uint64_t all = left_before_ + joined(entry);
  await(left_, 0, Presence::in_run, [&] { return left_.value() == all; });
}

// Whether there is still something to do in a phase of this thread's.
bool ThreadPool::enter(uint64_t phase, int index) {
  if (phase > 0) await_end_of(phase - 1, index);
  if (is_over(phase)) return false;
  seat(index).place.note_core();
  seat(index).presence.store(Presence::in_phase, std::memory_order_release);
  return true;
}

// The last one clears the counter, which nobody uses at that moment, and lets the others go. True
// if the caller is that one.
bool ThreadPool::report(int64_t done, int64_t count) {
  if (done == 0 || done_.fetch_add(done, std::memory_order_acq_rel) + done < count) return false;
  done_.store(0, std::memory_order_relaxed);
  phases_over_.advance();
  return true;
}

bool ThreadPool::is_over_soon(uint64_t phase) const {
  for (int i = 0; i < 16; ++i) {
    if (is_over(phase)) return true;
    pause_in_loop();
  }
  return false;
}

void ThreadPool::await_end_of(uint64_t phase, int index) {
  if (!is_over(phase))
    await(phases_over_, index, Presence::in_phase, [&] { return is_over(phase); });
}

int ThreadPool::next_present(int index, Presence of, int after) {
  for (int i = 1; i <= size(); ++i) {
    const int other = (after + i) % size();
    if (other != index && seat(other).presence.load(std::memory_order_acquire) >= of) return other;
  }
  return -1;
}

// Returns when done(), which `word` changes with. Spins as long as a thread that is waited for is
// seen to run; one that does not gets the core of this one, which has no work.
template <class Done>
void ThreadPool::await(SignalWord& word, int index, Presence of, const Done& done) {
  if (spin_until(done, kPatience)) return;
  const auto end = std::chrono::steady_clock::now() + kLongestSpin;
  for (int other = index, changes = 0; std::chrono::steady_clock::now() < end;) {
    other = next_present(index, of, std::max(other, 0));
    const int64_t before = other < 0 ? 0 : seat(other).place.running_ns();
    if (spin_until(done, kGlance)) return;
    if (other < 0) break;
    if (seat(other).place.running_ns() != before) continue;
    if (changes++ == kMostChanges) break;
    if (!seat(index).place.change_with(seat(other).place, cores_change_)) break;
  }
  for (uint64_t old = word.value(); !done(); old = word.value()) word.sleep_while(old);
}

int ThreadPool::num_asleep() const {
  int count = phases_over_.num_asleep() + runs_over_.num_asleep() + left_.num_asleep();
  for (int i = 1; i < size(); ++i) count += seats_[static_cast<size_t>(i)].runs.num_asleep();
  return count;
}

void Team::barrier() {
  if (size_ > 1 && phase_ > 0) pool_.await_end_of(phase_ - 1, index_);
}

void Team::meet() {
  if (size_ == 1) return;
  phase([&] { pool_.report(1, size_); });
  barrier();
}

}  // namespace octavo
