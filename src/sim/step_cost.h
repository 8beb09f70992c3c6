// How long a simulated step takes: a formula in place of a model.
#pragma once

#include "sched/step_model.h"

namespace octavo {

// Seconds = step + prefill_token * prefill tokens + kv_token * KV tokens read + sequence *
// sequences that bring a single token + prefill_pair * prefill pairs.
struct StepCostFormula {
  double step = 0.010;
  double prefill_token = 0.0005;
  double kv_token = 0.000001;
  double sequence = 0.0005;
  double prefill_pair = 0.0000001;

  double seconds(const StepWork& work) const;

  // What a fitted model says. All 0 if it has observed nothing.
  static StepCostFormula of(const StepTimeModel& model);

  bool operator==(const StepCostFormula&) const = default;
};

}  // namespace octavo
