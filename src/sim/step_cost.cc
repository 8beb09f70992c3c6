#include "sim/step_cost.h"

#include <algorithm>

namespace octavo {

double StepCostFormula::seconds(const StepWork& work) const {
  return step + prefill_token * work.prefill_tokens +
         kv_token * static_cast<double>(work.kv_tokens) + sequence * work.num_seqs +
         prefill_pair * static_cast<double>(work.prefill_pairs);
}

// The model is linear: what one kind of work adds is what a lot of it adds, divided.
StepCostFormula StepCostFormula::of(const StepTimeModel& model) {
  constexpr int kMuch = 1'000'000;
  const double empty = model.predict({});
  const auto share = [&](const StepWork& work) {
    return std::max(model.predict(work) - empty, 0.0) / kMuch;
  };
  return {.step = empty,
          .prefill_token = share({.prefill_tokens = kMuch}),
          .kv_token = share({.kv_tokens = kMuch}),
          .sequence = share({.num_seqs = kMuch}),
          .prefill_pair = share({.prefill_pairs = kMuch})};
}

}  // namespace octavo
