// What a run says about its steps, of an engine or of a simulation.
#pragma once

#include <vector>

#include "bench/result.h"
#include "sched/scheduler.h"

namespace octavo {

// A sample without its times.
StepSample sample_step(const Step& step, const Scheduler& scheduler);

// Snapshots of the block map are thinned out when there are twice as many as wanted, so that those
// that are left lie evenly over the run, however long it becomes.
class BlockMapRecorder {
 public:
  explicit BlockMapRecorder(int wanted) : wanted_(static_cast<size_t>(wanted)) {}

  void take(double time_s, const Scheduler& scheduler, std::vector<BlockMapRow>& rows);

 private:
  size_t wanted_;
  int64_t step_ = 0, every_ = 1;
  std::vector<BlockUse> uses_;
};

}  // namespace octavo
