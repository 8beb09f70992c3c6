#include "bench/limits.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <vector>

#include "bench/median.h"

namespace octavo {
namespace {

constexpr int kPasses = 5;
constexpr int kReadPasses = 3;          // each takes tens of milliseconds, and it is measured often
constexpr double kPassSeconds = 0.005;  // at least, of a multiplying loop
constexpr size_t kReadUnit = 512;       // bytes, of Probes::read
constexpr size_t kMiB = size_t{1} << 20;

template <class Body>
double seconds_of(const Body& body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

size_t memory_to_read() {
  const long last_cache = std::max(sysconf(_SC_LEVEL3_CACHE_SIZE), 0L);
  return std::clamp(2 * static_cast<size_t>(last_cache), 256 * kMiB, 1024 * kMiB);
}

// Results of probes end here, so that none is computed in vain.
std::atomic<uint64_t> sink;

template <class T>
void consume(T value) {
  sink.fetch_xor(static_cast<uint64_t>(value), std::memory_order_relaxed);
}

// Calls body(thread) once on each thread.
template <class Body>
void on_all(ThreadPool& pool, const Body& body) {
  pool.on_each_thread([&](int index) { body(static_cast<size_t>(index)); });
}

// Rounds per second of all threads together.
template <class Probe>
double rounds_per_second(ThreadPool& pool, Probe probe) {
  int64_t rounds = 1000;
  const auto pass = [&] {
    return seconds_of([&] { on_all(pool, [&](size_t) { consume(probe(rounds)); }); });
  };
  while (pass() < kPassSeconds) rounds *= 2;
  std::vector<double> speeds;
  for (int i = 0; i < kPasses; ++i)
    speeds.push_back(static_cast<double>(rounds * pool.size()) / pass());
  return median(std::move(speeds));
}

}  // namespace

Result<LimitsProbe> LimitsProbe::create(const kernels::Ops& ops, ThreadPool& pool) {
  OCTAVO_TRY(AlignedBuffer memory, AlignedBuffer::allocate(memory_to_read()));
  // With large pages, if the system has them, as they show the memory's speed and not the page
  // table's.
  madvise(memory.data(), memory.size(), MADV_HUGEPAGE);
  // Each thread writes what it will read: pages come from the memory nearest to who writes first,
  // and pages never written would all be the one page of zeros.
  const size_t part = memory.size() / static_cast<size_t>(pool.size()) / kReadUnit * kReadUnit;
  on_all(pool,
         [&](size_t thread) { std::fill_n(memory.data() + thread * part, part, uint8_t{1}); });
  return LimitsProbe(ops, pool, std::move(memory), part);
}

double LimitsProbe::read_gb_s() {
  const double bytes = static_cast<double>(part_) * pool_->size();
  std::vector<double> speeds;
  for (int i = 0; i < kReadPasses; ++i)
    speeds.push_back(bytes / seconds_of([&] {
                       on_all(*pool_, [&](size_t thread) {
                         consume(probes_->read(memory_.data() + thread * part_, part_));
                       });
                     }) /
                     1e9);
  return median(std::move(speeds));
}

double LimitsProbe::int8_gmac_s() {
  return rounds_per_second(*pool_, probes_->int8) * kernels::kProbeInt8MacsPerRound / 1e9;
}

double LimitsProbe::fp32_gflop_s() {
  return 2 * rounds_per_second(*pool_, probes_->f32) * kernels::kProbeF32MacsPerRound / 1e9;
}

}  // namespace octavo
