#include "sched/step_model.h"

#include <gtest/gtest.h>

#include <random>

namespace octavo {
namespace {

struct Truth {
  double a, b, c, d, e;
  double seconds(const StepWork& w) const {
    return a + b * w.prefill_tokens + c * static_cast<double>(w.kv_tokens) + d * w.num_seqs +
           e * static_cast<double>(w.prefill_pairs);
  }
};

StepWork draw(std::mt19937& random) {
  StepWork work;
  const int sequences = static_cast<int>(random() % 33);
  for (int i = 0; i < sequences; ++i) work.add_decode(static_cast<int>(random() % 2000));
  if (random() % 2 == 0 || sequences == 0)
    work.add_prefill(static_cast<int>(random() % 2000), 1 + static_cast<int>(random() % 512));
  return work;
}

// Fits `steps` noisy steps, then compares with the truth.
double worst_error(StepTimeModel& model, const Truth& truth, int steps, double noise) {
  std::mt19937 random(3);
  std::uniform_real_distribution<double> factor(1 - noise, 1 + noise);
  for (int i = 0; i < steps; ++i) {
    const StepWork work = draw(random);
    model.observe(work, truth.seconds(work) * factor(random));
  }
  double worst = 0;
  for (int i = 0; i < 100; ++i) {
    const StepWork work = draw(random);
    worst = std::max(worst, std::abs(model.predict(work) / truth.seconds(work) - 1));
  }
  return worst;
}

constexpr Truth kSmall = {2e-3, 2.5e-4, 6e-7, 1e-4, 2e-7};

TEST(StepTimeModel, LearnsTheCostsFromFewSteps) {
  StepTimeModel model;
  EXPECT_EQ(model.predict({}), 0);
  EXPECT_LT(worst_error(model, kSmall, 60, 0), 0.01);
  EXPECT_LT(model.relative_error(), 0.1);
}

TEST(StepTimeModel, IsNotMovedMuchByNoise) {
  StepTimeModel model;
  EXPECT_LT(worst_error(model, kSmall, 400, 0.1), 0.05);
  EXPECT_LT(model.relative_error(), 0.1);
}

TEST(StepTimeModel, FollowsAMachineThatBecomesSlower) {
  StepTimeModel model;
  worst_error(model, kSmall, 500, 0.02);
  const Truth slower = {4e-3, 5e-4, 12e-7, 2e-4, 4e-7};
  EXPECT_LT(worst_error(model, slower, 3000, 0.02), 0.05);
}

TEST(StepTimeModel, OneInterruptedStepIsNoNews) {
  StepTimeModel model;
  worst_error(model, kSmall, 500, 0.02);
  StepWork work;
  for (int i = 0; i < 8; ++i) work.add_decode(500);
  const double before = model.predict(work);
  model.observe(work, 3);  // a core was taken away
  EXPECT_NEAR(model.predict(work), before, 0.15 * before);
}

// A long phase of equal steps must not make the fit fall apart when something else comes.
TEST(StepTimeModel, StaysSoundThroughEqualSteps) {
  StepTimeModel model;
  worst_error(model, kSmall, 200, 0.02);
  StepWork work;
  work.add_decode(100);
  std::mt19937 random(5);
  std::uniform_real_distribution<double> factor(0.9, 1.1);
  for (int i = 0; i < 100'000; ++i) model.observe(work, kSmall.seconds(work) * factor(random));
  EXPECT_NEAR(model.predict(work) / kSmall.seconds(work), 1, 0.1);
  EXPECT_LT(worst_error(model, kSmall, 100, 0.02), 0.1);
}

}  // namespace
}  // namespace octavo
