#include "sched/step_model.h"

#include <algorithm>
#include <cmath>

namespace octavo {
namespace {

// A step counts half after 140 more of its kind: long enough for a good fit, short enough to follow
// a machine whose other users come and go.
constexpr double kForgetting = 0.995;
constexpr double kErrorWeight = 0.05;  // of the latest step in the moving mean of errors
// Sweeps of the solver after each step. It goes on from the last solution, which is close.
constexpr int kSweeps = 8;
constexpr double kRidge = 1e-9;  // where no step has said anything, the weights stay as they are

}  // namespace

// In units that bring all weights near milliseconds.
StepTimeModel::Vector StepTimeModel::features(const StepWork& work) {
  return {1.0,
          work.prefill_tokens / 16.0,
          static_cast<double>(work.kv_tokens) / 1024.0,
          work.num_seqs / 4.0,
          static_cast<double>(work.prefill_pairs) / 16384.0,
          work.draft_tokens / 4.0,
          work.draft_tokens > 0 ? 1.0 : 0.0};
}

double StepTimeModel::dot(const Vector& x) const {
  double sum = 0;
  for (size_t i = 0; i < kTerms; ++i) sum += weights_[i] * x[i];
  return sum;
}

double StepTimeModel::predict(const StepWork& work) const { return dot(features(work)) / 1000; }

void StepTimeModel::Evidence::add(const Vector& x, double weight) {
  for (size_t i = 0; i < kTerms; ++i) {
    for (size_t j = 0; j < kTerms; ++j)
      products[i][j] = kForgetting * products[i][j] + weight * x[i] * x[j];
    sums[i] = kForgetting * sums[i] + weight * x[i];
  }
}

void StepTimeModel::observe(const StepWork& work, double seconds) {
  const double ms = seconds * 1000;
  // Divided by what was measured, so that short steps count as much as long ones.
  Vector x = features(work);
  for (double& value : x) value /= ms;
  const double error = std::abs(dot(x) - 1);
  // A step that was interrupted says little: one that is far off counts for less.
  const double usual = 3 * std::max(error_, 0.03);
  const double weight = num_observed_ == 0 || error < usual ? 1 : usual / error;
  error_ = num_observed_ == 0 ? error : error_ + kErrorWeight * (std::min(error, 1.0) - error_);
  ++num_observed_;
  evidence_[work.prefill_tokens > 0].add(x, weight);
  solve();
}

// Each weight in turn to its best value beside the others, but never below 0: no kind of work makes
// a step shorter.
void StepTimeModel::solve() {
  for (int sweep = 0; sweep < kSweeps; ++sweep)
    for (size_t i = 0; i < kTerms; ++i) {
      double slope = evidence_[0].sums[i] + evidence_[1].sums[i];
      for (size_t j = 0; j < kTerms; ++j)
        slope -= (evidence_[0].products[i][j] + evidence_[1].products[i][j]) * weights_[j];
      const double curvature = evidence_[0].products[i][i] + evidence_[1].products[i][i] + kRidge;
      weights_[i] = std::max(weights_[i] + slope / curvature, 0.0);
    }
}

}  // namespace octavo
