// A persistent pool of compute threads; the caller is one of them. A run puts some of them to work
// together as a team, which goes through phases of shared work: a decode step is one run with a few
// hundred of them. A phase ends when its work is done, not when all threads have come: one that
// lost its core to another program, and holds no piece of the work, delays nobody and skips what
// was done without it. Whoever waits spins for a moment, then sleeps in the kernel: an idle program
// uses no CPU.
//
// One pool per process, made by the program and passed down. One thread at a time may call it.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/signal_word.h"
#include "base/thread_place.h"
#include "base/work_share.h"

namespace octavo {

class ThreadPool;

// One thread's place in a run. All threads of a team make the same calls of share(), each() and
// once(), with the same counts. Outside of what is called there, which is never called too late, a
// thread may be phases behind the others: it must not look at what they change.
class Team {
 public:
  int index() const { return index_; }  // 0: the thread that called run()
  int size() const { return size_; }

  // A phase: body(begin, end) is called until all of [0, count) is done by the team. Each thread
  // begins with a range of its own, the same for equal arguments; who is done takes pieces of
  // the others' ranges. All that was written in the phases before is seen.
  // even: in pieces of equal size, for work whose speed is that of one long read. least: in each
  // piece, for a piece should take longer than it takes to hand it out.
  enum class Sharing { balanced, even };
  template <class Body>
  void share(int64_t count, const Body& body, Sharing sharing = Sharing::balanced,
             int64_t least = 2);

  // The same with body(i) for 0 <= i < count, in this order, each on whichever thread is free.
  template <class Body>
  void each(int64_t count, const Body& body);

  // The same with body(), called once.
  template <class Body>
  void once(const Body& body) {
    each(1, [&](int64_t) { body(); });
  }

  // Returns when all phases that this thread has come through are over.
  void barrier();

  // Returns when all threads of the team have come here.
  void meet();

 private:
  friend class ThreadPool;
  Team(ThreadPool& pool, int index, int size, uint64_t phase)
      : pool_(pool), index_(index), size_(size), phase_(phase) {}

  std::pair<int64_t, int64_t> range(int64_t count, int index) const {
    return {count * index / size_, count * (index + 1) / size_};
  }
  template <class Body>
  int64_t take_from(int owner, int64_t count, Sharing sharing, int64_t least, const Body& body);
  template <class Work>
  void phase(const Work& work);

  ThreadPool& pool_;
  int index_, size_;
  uint64_t phase_;  // the next one of this thread
};

class ThreadPool {
 public:
  // num_threads - 1 threads are started. REQUIRES: num_threads >= 1. resource_exhausted if the
  // system refuses one of them.
  static Result<std::unique_ptr<ThreadPool>> create(int num_threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return static_cast<int>(workers_.size()) + 1; }
  int num_asleep() const;

  // Calls body(Team&) on the caller and on those of threads - 1 others that come before it is over;
  // returns when all are done. body must not throw and must not call the pool. REQUIRES: 1 <=
  // threads <= size().
  template <class Body>
  void run(int threads, const Body& body) {
    start([](const void* context, Team& team) { (*static_cast<const Body*>(context))(team); },
          &body, threads);
  }

  // Calls body(index) once on each thread of the pool, at once.
  template <class Body>
  void on_each_thread(const Body& body) {
    run(size(), [&](Team& team) {
      body(team.index());
      team.meet();
    });
  }

  // Calls body(begin, end) on disjoint ranges that cover [0, count), several for each thread;
  // returns when all are done. body must not throw and must not call the pool.
  template <class Body>
  void parallel_for(int64_t count, const Body& body) {
    if (count > 0)
      run(static_cast<int>(std::min<int64_t>(size(), count)),
          [&](Team& team) { team.share(count, body); });
  }

 private:
  friend class Team;
  using Function = void (*)(const void* context, Team& team);

  // What a thread has to do with the run, for those who wait for it.
  enum class Presence : uint8_t { away, in_run, in_phase };
  struct Seat {
    SignalWord runs;      // that its thread was told of
    PieceCounter pieces;  // of its range in the phase
    std::atomic<Presence> presence{Presence::away};
    ThreadPlace place;
  };

  ThreadPool() = default;
  void start(Function function, const void* context, int threads);
  void work(int index);
  int join(int index, uint64_t last_run);
  void take_part(int index, int threads);
  void end_run();
  Seat& seat(int index) { return seats_[static_cast<size_t>(index)]; }

  bool enter(uint64_t phase, int index);
  bool report(int64_t done, int64_t count);
  bool is_over(uint64_t phase) const { return phases_over_.value() > phase; }
  bool is_over_soon(uint64_t phase) const;
  void await_end_of(uint64_t phase, int index);
  template <class Done>
  void await(SignalWord& word, int index, Presence of, const Done& done);
  int next_present(int index, Presence of, int after);

  // The run, written before it is opened.
  Function function_ = nullptr;
  const void* context_ = nullptr;
  uint64_t run_ = 0, first_phase_ = 0, left_before_ = 0;
  std::atomic<bool> stop_{false};

  // Each on its own cache line; phases, runs and threads that left are those of all time.
  alignas(64) std::atomic<uint64_t> entry_{0};  // who may take part, and how many do: RunEntry
  SignalWord runs_over_, left_, phases_over_;
  alignas(64) std::atomic<int64_t> done_{0};  // of the work of this phase
  PieceCounter common_;                       // pieces of each()
  std::unique_ptr<Seat[]> seats_;
  std::mutex cores_change_;
  std::vector<std::thread> workers_;
};

// Four pieces of equal size, or most of it in one piece, for work that is faster in large ones.
// Products take two panels at a time.
inline Cut cut_range(int64_t count, Team::Sharing sharing, int64_t least) {
  const int64_t quarter = std::max((least + 1) / 2 * 2, (count + 7) / 8 * 2);
  if (sharing == Team::Sharing::even) return {count, quarter, quarter};
  return {count, count - count / 4, std::max(least, count / 16)};
}

template <class Body>
int64_t Team::take_from(int owner, int64_t count, Sharing sharing, int64_t least,
                        const Body& body) {
  const auto [first, last] = range(count, owner);
  const Cut cut = cut_range(last - first, sharing, least);
  int64_t done = 0;
  for (int64_t piece; (piece = pool_.seat(owner).pieces.take(phase_, cut.pieces())) >= 0;) {
    const int64_t begin = first + cut.begin(piece), end = first + cut.begin(piece + 1);
    body(begin, end);
    done += end - begin;
  }
  return done;
}

// A phase of which this thread does work(), unless it is late.
template <class Work>
void Team::phase(const Work& work) {
  if (pool_.enter(phase_, index_)) {
    work();
    pool_.seat(index_).presence.store(ThreadPool::Presence::in_run, std::memory_order_relaxed);
  }
  ++phase_;
}

// Who is done first waits for a moment before it looks at the others' ranges: it would slow down
// those who are about to be done.
template <class Body>
void Team::share(int64_t count, const Body& body, Sharing sharing, int64_t least) {
  if (count < 1) return;
  if (size_ == 1) return body(0, count);
  phase([&] {
    if (pool_.report(take_from(index_, count, sharing, least, body), count)) return;
    if (pool_.is_over_soon(phase_)) return;
    int64_t done = 0;
    for (int i = 1; i < size_; ++i)
      done += take_from((index_ + i) % size_, count, sharing, least, body);
    pool_.report(done, count);
  });
}

template <class Body>
void Team::each(int64_t count, const Body& body) {
  const auto some = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) body(i);
  };
  if (count < 1) return;
  if (size_ == 1) return some(0, count);
  phase([&] {
    const int64_t grain = (count - 1) / PieceCounter::kMaxPieces + 1;
    const Cut cut = {count, grain, grain};
    int64_t done = 0;
    for (int64_t piece; (piece = pool_.common_.take(phase_, cut.pieces())) >= 0;) {
      some(cut.begin(piece), cut.begin(piece + 1));
      done += cut.begin(piece + 1) - cut.begin(piece);
    }
    pool_.report(done, count);
  });
}

}  // namespace octavo
