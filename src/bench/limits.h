// What this machine can do at most, measured with the instruction set and on the threads that run
// the model: a speed says more beside the limit that bounds it.
#pragma once

#include "base/result.h"
#include "base/thread_pool.h"
#include "kernels/api.h"
#include "tensor/aligned_buffer.h"

namespace octavo {

struct MachineLimits {
  double read_gb_s = 0;     // reading memory, far more than the caches hold
  double int8_gmac_s = 0;   // multiply-adds of the products with 8-bit activations
  double fp32_gflop_s = 0;  // two for each multiply-add
};

// Owns the memory that is read. All threads of the pool work at once, each on its own part.
class LimitsProbe {
 public:
  // resource_exhausted if there is no memory for it: four times the last cache, 256 MiB to 2 GiB.
  static Result<LimitsProbe> create(const kernels::Ops& ops, ThreadPool& pool);

  // Each the median of a few passes of milliseconds. What a shared machine gives moves from second
  // to second, so that a limit is best measured right beside what is compared with it.
  double read_gb_s();
  double int8_gmac_s();
  double fp32_gflop_s();

 private:
  LimitsProbe(const kernels::Ops& ops, ThreadPool& pool, AlignedBuffer memory, size_t part)
      : probes_(&ops.probes), pool_(&pool), memory_(std::move(memory)), part_(part) {}

  const kernels::Probes* probes_;
  ThreadPool* pool_;
  AlignedBuffer memory_;
  size_t part_;  // bytes that each thread reads
};

}  // namespace octavo
