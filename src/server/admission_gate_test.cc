#include "server/admission_gate.h"

#include <gtest/gtest.h>

namespace octavo {
namespace {

AdmissionGate gate_for(int max_queue_len, double max_queue_wait_s = 0) {
  return AdmissionGate({.max_queue_len = max_queue_len,
                        .max_queue_wait_s = max_queue_wait_s,
                        .max_num_seqs = 2,
                        .max_num_batched_tokens = 64});
}

TEST(AdmissionGate, RefusesWhatExceedsTheQueue) {
  AdmissionGate gate = gate_for(3);
  EXPECT_FALSE(gate.enter(2, 10));
  EXPECT_FALSE(gate.enter(1, 10));
  const auto refused = gate.enter(1, 10);
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->reason, "max_queue_len");
  EXPECT_EQ(gate.num_open(), 3);
  gate.leave(1, 10, {});
  EXPECT_FALSE(gate.enter(1, 10));
}

TEST(AdmissionGate, OneRequestLargerThanTheQueueIsTakenWhenThereIsNobodyElse) {
  AdmissionGate gate = gate_for(3);
  EXPECT_FALSE(gate.enter(5, 10));
  EXPECT_TRUE(gate.enter(1, 10));
}

TEST(AdmissionGate, CountsWhoWaits) {
  AdmissionGate gate = gate_for(100);
  EXPECT_FALSE(gate.enter(2, 10));
  EXPECT_FALSE(gate.enter(1, 20));
  EXPECT_EQ(gate.num_waiting(), 3);
  gate.start(2, 10);
  EXPECT_EQ(gate.num_waiting(), 1);
  gate.leave(2, 10, 1.0);
  gate.leave(1, 20, {});
  EXPECT_EQ(gate.num_open(), 0);
  EXPECT_EQ(gate.num_waiting(), 0);
}

void run_some(AdmissionGate& gate, double run_s, int count = 10) {
  for (int i = 0; i < count; ++i) {
    EXPECT_FALSE(gate.enter(1, 0));
    gate.start(1, 0);
    gate.leave(1, 0, run_s);
  }
}

// One slow step, which says that everything takes minutes.
StepTimeModel slow_once() {
  StepTimeModel model;
  model.observe({.prefill_tokens = 1}, 100);
  return model;
}

TEST(AdmissionGate, ALongPromptIsNoWait) {
  AdmissionGate gate = gate_for(100, 3);
  gate.on_step({}, 0, slow_once());
  EXPECT_GT(gate.expected_wait_s(64), 30);
  EXPECT_FALSE(gate.enter(1, 64)) << "nobody is there";
  gate.start(1, 64);
  EXPECT_FALSE(gate.enter(1, 64)) << "nobody waits";
  EXPECT_TRUE(gate.enter(1, 64)) << "somebody waits, for a prompt that is said to take a minute";
}

TEST(AdmissionGate, AnIdleServerRefusesNobody) {
  AdmissionGate gate = gate_for(100, 3);
  run_some(gate, 1000);
  for (int i = 0; i < 2; ++i) EXPECT_FALSE(gate.enter(1, 0));
  EXPECT_TRUE(gate.enter(1, 0)) << "answers are said to take long";
  for (int i = 0; i < 2; ++i) {
    gate.start(1, 0);
    gate.leave(1, 0, 1000.0);
  }
  EXPECT_FALSE(gate.enter(3, 0)) << "nobody is there: more choices than places";
}

// What the next request takes corrects it.
TEST(AdmissionGate, OneSlowStepIsForgotten) {
  StepTimeModel model = slow_once();
  for (int i = 0; i < 5; ++i) model.observe({.prefill_tokens = 16}, 0.1);
  AdmissionGate gate = gate_for(100, 3);
  gate.on_step({}, 0, model);
  EXPECT_LT(gate.expected_wait_s(64), 1);
}

// Answers take two seconds each; two run and three wait, so that the next one waits for four ends.
TEST(AdmissionGate, PredictsTheWaitFromHowLongAnswersTake) {
  AdmissionGate gate = gate_for(100, 3);
  run_some(gate, 2);
  for (int i = 0; i < 5; ++i) gate.enter(1, 0);
  EXPECT_NEAR(gate.expected_wait_s(0), 4, 1e-9);
  const auto refused = gate.enter(1, 0);
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->reason, "max_queue_wait");
  EXPECT_NEAR(refused->wait_s, 1, 1e-9);
}

TEST(AdmissionGate, ForgetsHowLongAnswersTookOnce) {
  AdmissionGate gate = gate_for(100);
  run_some(gate, 100, 64);
  run_some(gate, 2, 64);
  for (int i = 0; i < 2; ++i) gate.enter(1, 0);
  EXPECT_NEAR(gate.expected_wait_s(0), 1, 1e-9);
}

TEST(AdmissionGate, WaitsForNobodyWhileThereArePlaces) {
  AdmissionGate gate = gate_for(100);
  run_some(gate, 2);
  gate.enter(1, 0);
  EXPECT_EQ(gate.expected_wait_s(0), 0);
}

// Two may run, but the blocks suffice for one.
TEST(AdmissionGate, CountsThePlacesThatThereAreBlocksFor) {
  AdmissionGate gate = gate_for(100);
  run_some(gate, 2);
  gate.enter(1, 0);
  gate.on_step({.num_seqs = 1}, 1, {});
  EXPECT_NEAR(gate.expected_wait_s(0), 2, 1e-9);
  gate.on_step({.prefill_tokens = 5, .num_seqs = 1}, 1, {});
  EXPECT_NEAR(gate.expected_wait_s(0), 2, 1e-9) << "somebody was let in, which says nothing";
  gate.on_step({.num_seqs = 1}, 0, {});
  EXPECT_EQ(gate.expected_wait_s(0), 0);
}

// Steps of half a second, which read 64 tokens or, beside two answers, 62.
TEST(AdmissionGate, CountsThePromptsThatAreReadBeforeIt) {
  AdmissionGate gate = gate_for(100);
  StepTimeModel model;
  for (int i = 0; i < 100; ++i) model.observe({.prefill_tokens = 16 + i % 48}, 0.5);
  gate.on_step({}, 0, model);
  EXPECT_NEAR(gate.expected_wait_s(60), 0.5, 0.05);
  gate.enter(1, 128);
  EXPECT_NEAR(gate.expected_wait_s(60), 1.5, 0.15);
  gate.start(1, 128);
  EXPECT_NEAR(gate.expected_wait_s(60), 0.5, 0.05);
}

// A tenth of a second for answers, so that prompts get as much; they need a second.
TEST(AdmissionGate, KnowsThatPromptsShareStepsWithAnswers) {
  StepTimeModel model;
  for (int i = 0; i < 400; ++i) {
    model.observe({.num_seqs = 4}, 0.1);
    model.observe({.prefill_tokens = 16, .num_seqs = 4}, 0.35);
  }
  const StepWork answers{.num_seqs = 4};
  for (const double ratio : {0.0, 1.0}) {
    AdmissionGate gate({.max_queue_len = 100,
                        .max_num_seqs = 8,
                        .max_num_batched_tokens = 68,
                        .max_prefill_ratio = ratio});
    gate.on_step(answers, 0, model);
    EXPECT_NEAR(gate.expected_wait_s(64), ratio == 0 ? 1.1 : 2, 0.15);
  }
}

// Places and prompts are waited for at the same time.
TEST(AdmissionGate, DoesNotCountTheSameWaitTwice) {
  AdmissionGate gate = gate_for(100);
  run_some(gate, 2);
  StepTimeModel model;
  for (int i = 0; i < 100; ++i) model.observe({.prefill_tokens = 64}, 0.5);
  gate.on_step({}, 0, model);
  for (int i = 0; i < 2; ++i) gate.enter(1, 64);
  EXPECT_NEAR(gate.expected_wait_s(0), 1, 0.1);
}

}  // namespace
}  // namespace octavo
