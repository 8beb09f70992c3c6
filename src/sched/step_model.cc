#include "sched/step_model.h"

#include <algorithm>
#include <cmath>

namespace octavo {
namespace {

// A step counts half after 350 more: long enough for an exact fit, short enough to follow a machine
// whose other users come and go.
constexpr double kForgetting = 0.998;
// Wide open: the first observations decide alone. Also the bound of the covariance, which would
// grow without end in directions that a long phase of equal steps does not show.
constexpr double kOpen = 1e4;
constexpr double kErrorWeight = 0.05;  // of the latest step in the moving mean

}  // namespace

StepTimeModel::StepTimeModel() {
  for (size_t i = 0; i < kTerms; ++i) covariance_[i][i] = kOpen;
}

// In units that bring all weights near milliseconds, which keeps the fit well conditioned.
StepTimeModel::Vector StepTimeModel::features(const StepWork& work) {
  return {1.0, work.prefill_tokens / 16.0, static_cast<double>(work.kv_tokens) / 1024.0,
          work.num_seqs / 4.0, static_cast<double>(work.prefill_pairs) / 16384.0};
}

double StepTimeModel::predict(const StepWork& work) const {
  const Vector x = features(work);
  double ms = 0;
  for (size_t i = 0; i < kTerms; ++i) ms += std::max(weights_[i], 0.0) * x[i];
  return ms / 1000;
}

void StepTimeModel::observe(const StepWork& work, double seconds) {
  const double ms = seconds * 1000;
  const double error = std::abs(predict(work) * 1000 - ms) / ms;
  error_ = num_observed_ == 0 ? error : error_ + kErrorWeight * (error - error_);
  ++num_observed_;

  // Divided by what was measured, so that short steps count as much as long ones.
  Vector x = features(work);
  for (double& value : x) value /= ms;
  Vector px{};
  double scale = kForgetting, predicted = 0;
  for (size_t i = 0; i < kTerms; ++i) {
    for (size_t j = 0; j < kTerms; ++j) px[i] += covariance_[i][j] * x[j];
    predicted += weights_[i] * x[i];
  }
  for (size_t i = 0; i < kTerms; ++i) scale += x[i] * px[i];
  // A step that was interrupted says little: one outlier must not move the fit by its whole error.
  const double residual = std::clamp(1.0 - predicted, -1.0, num_observed_ > 20 ? 0.5 : 1.0);
  for (size_t i = 0; i < kTerms; ++i) weights_[i] += px[i] / scale * residual;
  for (size_t i = 0; i < kTerms; ++i)
    for (size_t j = 0; j < kTerms; ++j)
      covariance_[i][j] = (covariance_[i][j] - px[i] * px[j] / scale) / kForgetting;
  double largest = 0;
  for (size_t i = 0; i < kTerms; ++i) largest = std::max(largest, covariance_[i][i]);
  if (largest > kOpen)
    for (Vector& row : covariance_)
      for (double& value : row) value *= kOpen / largest;
}

}  // namespace octavo
