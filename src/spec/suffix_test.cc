#include "spec/suffix.h"

#include <gtest/gtest.h>

#include "support/byte_tokens.h"

namespace octavo {
namespace {

// What is guessed after a text under one key, when the answer to another request is remembered
// under another.
size_t guessed(const PrefixKey& answered, const PrefixKey& asks) {
  SuffixDrafter drafter(SuffixOptions{});
  const auto answer = testing::byte_tokens("the quick brown fox"),
             text = testing::byte_tokens("the quick");
  drafter.finish({.id = SeqId{1}, .prompt = {}, .answer = answer, .key = answered});
  DraftTask task{.id = SeqId{2}, .tokens = text, .max_tokens = 4, .key = asks};
  DraftTask* const tasks[] = {&task};
  drafter.propose(tasks);
  return task.draft.size();
}

TEST(SuffixDrafter, AnswersServeRequestsWithTheirKeyAlone) {
  const PrefixKey keys[] = {{},
                            {.salt = "a", .adapter = ""},
                            {.salt = "", .adapter = "a"},
                            {.salt = "a", .adapter = "a"}};
  for (const PrefixKey& answered : keys)
    for (const PrefixKey& asks : keys)
      EXPECT_EQ(guessed(answered, asks), answered == asks ? 4u : 0u)
          << answered.salt << "/" << answered.adapter << " " << asks.salt << "/" << asks.adapter;
}

}  // namespace
}  // namespace octavo
