// Answers that must be equal to the bit.
#pragma once

#include <gtest/gtest.h>

#include "engine/outputs.h"

namespace octavo::testing {

inline void expect_equal(const TokenLogprobs& a, const TokenLogprobs& b) {
  ASSERT_EQ(a.entries.size(), b.entries.size());
  for (size_t i = 0; i < a.entries.size(); ++i) {
    EXPECT_EQ(a.entries[i].id, b.entries[i].id);
    EXPECT_EQ(a.entries[i].logprob, b.entries[i].logprob);  // to the bit
  }
}

inline void expect_equal(const RequestOutput& a, const RequestOutput& b) {
  ASSERT_FALSE(a.error) << a.error->message;
  EXPECT_EQ(a.embedding, b.embedding);  // to the bit
  ASSERT_EQ(a.outputs.size(), b.outputs.size());
  ASSERT_EQ(a.prompt_logprobs.size(), b.prompt_logprobs.size());
  for (size_t i = 1; i < a.prompt_logprobs.size(); ++i)
    expect_equal(*a.prompt_logprobs[i], *b.prompt_logprobs[i]);
  for (size_t i = 0; i < a.outputs.size(); ++i) {
    EXPECT_EQ(a.outputs[i].token_ids, b.outputs[i].token_ids);
    EXPECT_EQ(a.outputs[i].text, b.outputs[i].text);
    EXPECT_EQ(a.outputs[i].finish_reason, b.outputs[i].finish_reason);
    ASSERT_EQ(a.outputs[i].logprobs.size(), b.outputs[i].logprobs.size());
    for (size_t k = 0; k < a.outputs[i].logprobs.size(); ++k)
      expect_equal(a.outputs[i].logprobs[k], b.outputs[i].logprobs[k]);
  }
}

}  // namespace octavo::testing
