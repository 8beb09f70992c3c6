#include "bench/dialogues.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace octavo {
namespace {

std::vector<Dialogue> made(DialogueSpec spec) {
  auto dialogues = make_dialogues(spec);
  EXPECT_TRUE(dialogues);
  return *dialogues;
}

std::vector<TokenId> first(const Dialogue& dialogue, size_t count) {
  const auto& ids = dialogue.turns[0].token_ids;
  return {ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(count)};
}

TEST(Dialogues, RandomPromptsHaveNothingInCommon) {
  const auto all = made({.num_prompts = 5, .seed = 1});
  ASSERT_EQ(all.size(), 5u);
  for (const Dialogue& dialogue : all) {
    EXPECT_EQ(dialogue.turns[0].token_ids.size(), 512u);
    EXPECT_EQ(dialogue.turns[0].output_tokens, 128);
  }
  EXPECT_NE(first(all[0], 16), first(all[1], 16));
  EXPECT_EQ(first(all[0], 512), first(made({.num_prompts = 9, .seed = 1})[0], 512));
}

TEST(Dialogues, SharedPrefixesAreShared) {
  const auto all = made({.data_set = DataSet::shared_prefix,
                         .num_prompts = 4,
                         .input = Lengths::fixed(3),
                         .prefix_tokens = 20,
                         .prefix_groups = 2});
  EXPECT_EQ(all[0].turns[0].token_ids.size(), 23u);
  EXPECT_EQ(first(all[0], 20), first(all[2], 20));
  EXPECT_NE(first(all[0], 20), first(all[1], 20));
}

TEST(Dialogues, ConversationsHaveTurns) {
  const auto all = made({.data_set = DataSet::multi_turn, .num_prompts = 10, .turns = 4});
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].turns.size(), 4u);
  EXPECT_EQ(all[2].turns.size(), 2u);
}

TEST(Dialogues, MixedOnesAreShortAndLong) {
  const auto all = made({.data_set = DataSet::mixed, .num_prompts = 100});
  const auto is_long = [](const Dialogue& d) { return d.turns[0].token_ids.size() >= 1024; };
  const auto count = std::count_if(all.begin(), all.end(), is_long);
  EXPECT_GT(count, 5);
  EXPECT_LT(count, 50);
}

TEST(Dialogues, ReadLinesOfAFile) {
  const auto all = parse_dialogues(
      "{\"prompt\":\"hello\",\"output_tokens\":5}\n\n"
      "{\"prompt_token_ids\":[1,2]}\r\n"
      "{\"messages\":[{\"role\":\"user\",\"content\":\"\xE4\xBD\xA0\"}],\"output_tokens\":6}",
      "f", {.output = Lengths::fixed(9)});
  ASSERT_TRUE(all) << all.error().message;
  ASSERT_EQ(all->size(), 3u);
  EXPECT_EQ((*all)[0].turns[0].text, "hello");
  EXPECT_EQ((*all)[0].turns[0].output_tokens, 5);
  EXPECT_EQ((*all)[1].turns[0].token_ids, (std::vector{TokenId{1}, TokenId{2}}));
  EXPECT_EQ((*all)[1].turns[0].output_tokens, 9);
  EXPECT_EQ((*all)[2].turns[0].messages, "[{\"content\":\"\xE4\xBD\xA0\",\"role\":\"user\"}]");
  EXPECT_EQ(
      parse_dialogues("{\"prompt\":\"a\"}\n{\"prompt\":\"b\"}\n", "f", {.num_prompts = 1})->size(),
      1u);
}

TEST(Dialogues, NameTheLineThatIsBad) {
  for (const char* line :
       {"", "[]", "{}", "{\"prompt\":1}", "{\"prompt\":\"a\",\"messages\":[]}",
        "{\"prompt\":\"a\",\"max\":1}", "{\"prompt\":\"a\",\"output_tokens\":0}",
        "{\"prompt_token_ids\":[-1]}", "{\"prompt_token_ids\":[\"a\"]}", "{\"messages\":{}}"}) {
    const auto all = parse_dialogues(std::string("\n") + line, "file", {});
    ASSERT_FALSE(all) << line;
    EXPECT_NE(all.error().message.find("file"), std::string::npos);
    if (*line) {
      EXPECT_NE(all.error().message.find("line 2"), std::string::npos);
    }
  }
}

TEST(Dialogues, TakeTimesFromATrace) {
  const auto trace = parse_trace(
      "{\"arrival_s\":7,\"prompt_tokens\":3,\"output_tokens\":2}\n"
      "{\"arrival_s\":5,\"prompt_tokens\":4,\"output_tokens\":1}\n",
      "t");
  ASSERT_TRUE(trace);
  const auto all = make_dialogues(*trace, {.data_set = DataSet::trace});
  ASSERT_TRUE(all);
  EXPECT_EQ((*all)[0].arrival_s, 0);
  EXPECT_EQ((*all)[1].arrival_s, 2);
  EXPECT_EQ((*all)[1].turns[0].token_ids.size(), 3u);
  EXPECT_EQ(make_dialogues(*trace, {.num_prompts = 1})->size(), 1u);
}

TEST(Dialogues, EqualIdsAreEqualWords) {
  EXPECT_EQ(words_of({TokenId{0}, TokenId{1}, TokenId{128}}), "the of the");
  EXPECT_EQ(words_of({}), "");
}

}  // namespace
}  // namespace octavo
