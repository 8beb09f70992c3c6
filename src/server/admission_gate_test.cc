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
  EXPECT_FALSE(gate.enter(2, 10, 0));
  EXPECT_FALSE(gate.enter(1, 10, 0));
  const auto refused = gate.enter(1, 10, 0);
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->reason, "max_queue_len");
  EXPECT_EQ(gate.num_open(), 3);
  gate.leave(1, 10, false, 1);
  EXPECT_FALSE(gate.enter(1, 10, 1));
}

TEST(AdmissionGate, OneRequestLargerThanTheQueueIsTakenWhenThereIsNobodyElse) {
  AdmissionGate gate = gate_for(3);
  EXPECT_FALSE(gate.enter(5, 10, 0));
  EXPECT_TRUE(gate.enter(1, 10, 0));
}

TEST(AdmissionGate, CountsWhoWaits) {
  AdmissionGate gate = gate_for(100);
  EXPECT_FALSE(gate.enter(2, 10, 0));
  EXPECT_FALSE(gate.enter(1, 20, 0));
  EXPECT_EQ(gate.num_waiting(), 3);
  gate.start(2, 10);
  EXPECT_EQ(gate.num_waiting(), 1);
  gate.leave(2, 10, true, 1);
  gate.leave(1, 20, false, 1);
  EXPECT_EQ(gate.num_open(), 0);
  EXPECT_EQ(gate.num_waiting(), 0);
}

// Answers end once a second; two run and three wait, so that the next one waits for four ends.
TEST(AdmissionGate, PredictsTheWaitFromHowFastAnswersEnd) {
  AdmissionGate gate = gate_for(100, 3);
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(gate.enter(1, 0, i));
    gate.start(1, 0);
    gate.leave(1, 0, true, i);
  }
  for (int i = 0; i < 5; ++i) gate.enter(1, 0, 0);
  EXPECT_NEAR(gate.expected_wait_s(0, 10), 4, 1e-9);
  const auto refused = gate.enter(1, 0, 10);
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->reason, "max_queue_wait");
  EXPECT_NEAR(refused->wait_s, 1, 1e-9);
}

}  // namespace
}  // namespace octavo
