// The small parts that have no file of their own here.
#include <gtest/gtest.h>

#include "cli/conversation.h"
#include "cli/perplexity_windows.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "cli/token_json.h"
#include "cli/version_text.h"
#include "kernels/isa.h"

namespace octavo::cli {
namespace {

std::vector<TokenId> ids(std::initializer_list<int32_t> numbers) {
  std::vector<TokenId> out;
  for (const int32_t n : numbers) out.push_back(TokenId{n});
  return out;
}

TEST(Windows, AreCutOneAfterTheOther) {
  const auto tokens = ids({1, 2, 3, 4, 5, 6, 7, 8});
  using Windows = std::vector<std::vector<TokenId>>;
  EXPECT_EQ(cut_into_windows(tokens, 4, std::nullopt),
            (Windows{ids({1, 2, 3, 4}), ids({5, 6, 7, 8})}));
  EXPECT_EQ(cut_into_windows(tokens, 3, std::nullopt),
            (Windows{ids({1, 2, 3}), ids({4, 5, 6}), ids({7, 8})}));
  // A last token alone has nothing before it to be predicted from.
  EXPECT_EQ(cut_into_windows(tokens, 7, std::nullopt), (Windows{ids({1, 2, 3, 4, 5, 6, 7})}));
  EXPECT_EQ(cut_into_windows(tokens, 100, std::nullopt), (Windows{tokens}));
  EXPECT_TRUE(cut_into_windows({}, 4, std::nullopt).empty());
  EXPECT_TRUE(cut_into_windows(ids({1}), 4, std::nullopt).empty());
}

TEST(Windows, StartWithBosWhereTheModelWantsIt) {
  using Windows = std::vector<std::vector<TokenId>>;
  EXPECT_EQ(cut_into_windows(ids({1, 2, 3, 4}), 4, TokenId{9}),
            (Windows{ids({9, 1, 2, 3}), ids({9, 4})}));
  EXPECT_EQ(cut_into_windows(ids({1, 2}), 2, TokenId{9}), (Windows{ids({9, 1}), ids({9, 2})}));
}

TEST(TokenJson, ReadsArrays) {
  EXPECT_EQ(*parse_token_ids(" [1, 2,\n3] ", "x"), ids({1, 2, 3}));
  EXPECT_TRUE(parse_token_ids("[]", "x")->empty());
  for (const std::string bad :
       {"", "1", "[1", "[1.5]", "[-1]", "[2147483648]", "[18446744073709551615]", "[\"1\"]",
        "[true]", "[[1]]", "{\"a\":1}", "[1] x", "null"}) {
    const auto result = parse_token_ids(bad, "the input");
    ASSERT_FALSE(result) << bad;
    EXPECT_EQ(result.error().code, ErrorCode::invalid_argument);
    EXPECT_TRUE(result.error().message.starts_with("the input ")) << result.error().message;
  }
}

TEST(TokenJson, RefusesDeepNestingWithoutKeepingIt) {
  const auto result = parse_token_ids(std::string(1 << 20, '['), "the input");
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().message.find("nested"), std::string::npos);
}

TEST(TokenJson, ReadsWindows) {
  const auto windows =
      parse_windows(R"({"model": "x", "windows": [[1, 2], [3]], "ctx": 512})", "x");
  ASSERT_TRUE(windows) << windows.error().message;
  EXPECT_EQ(*windows, (std::vector<std::vector<TokenId>>{ids({1, 2}), ids({3})}));
  for (const std::string bad : {"{}", "[]", R"({"windows": []})", R"({"windows": 1})",
                                R"({"windows": [1]})", R"({"windows": [[1], [-1]]})", "text"})
    EXPECT_FALSE(parse_windows(bad, "x")) << bad;
}

TEST(Terminal, ControlCharactersAreMadeVisible) {
  EXPECT_EQ(without_controls("a\tb\nc"), "a\tb\nc");
  EXPECT_EQ(without_controls("\x1b[2J"), "\xEF\xBF\xBD[2J");
  EXPECT_EQ(without_controls("a\x7F\r"), "a\xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_EQ(without_controls("\xC2\x9B"
                             "1m"),
            "\xEF\xBF\xBD"
            "1m");
  EXPECT_EQ(without_controls("\xC2\xA0\xC3\xA9\xF0\x9F\x98\x80"),
            "\xC2\xA0\xC3\xA9\xF0\x9F\x98\x80");
}

TEST(Terminal, MessagesAreOneLineOfText) {
  EXPECT_EQ(one_line("caf\xC3\xA9\t1"), "caf\xC3\xA9\t1");
  EXPECT_EQ(one_line("a\nb"),
            "a\xEF\xBF\xBD"
            "b");
  EXPECT_EQ(one_line("\xFF\x1b"), "\xEF\xBF\xBD\xEF\xBF\xBD");
}

TEST(Pacer, IsDueEverySoManySecondsAndNotAtOnce) {
  Pacer pacer(5);
  std::vector<int> due;
  for (int second = 0; second < 20; ++second)
    if (pacer.due(second)) due.push_back(second);
  EXPECT_EQ(due, (std::vector<int>{5, 10, 15}));
}

TEST(Table, AlignsColumns) {
  EXPECT_EQ(format_table({{"a", "1"}, {"long", "20"}}, "lr"), "a      1\nlong  20\n");
}

TEST(Table, HumanBytes) {
  EXPECT_EQ(human_bytes(0), "0 bytes");
  EXPECT_EQ(human_bytes(1023), "1023 bytes");
  EXPECT_EQ(human_bytes(56 * 1024), "56 KiB");
  EXPECT_EQ(human_bytes(int64_t{448} << 20), "0.4375 GiB");
  EXPECT_EQ(human_bytes(int64_t{2} << 30), "2 GiB");
  EXPECT_EQ(human_bytes(98362432), "93.81 MiB");
}

TEST(Conversation, DropsOldTurnsButNeverTheSystemMessage) {
  Conversation talk("be brief");
  for (const char* text : {"one", "two"}) {
    talk.add("user", text);
    talk.add("assistant", std::string("answer to ") + text);
  }
  talk.add("user", "three");
  ASSERT_TRUE(talk.drop_oldest_turn());
  EXPECT_EQ(talk.messages().size(), 4u);
  EXPECT_EQ(talk.messages()[0]["content"], "be brief");
  EXPECT_EQ(talk.messages()[1]["content"], "two");
  ASSERT_TRUE(talk.drop_oldest_turn());
  EXPECT_EQ(talk.messages()[1]["content"], "three");
  EXPECT_FALSE(talk.drop_oldest_turn()) << "the last message stays";
  EXPECT_EQ(talk.messages().size(), 2u);
  talk.drop_last();
  talk.clear();
  ASSERT_EQ(talk.messages().size(), 1u);
  EXPECT_EQ(talk.messages()[0]["role"], "system");
}

TEST(Version, SaysWhichInstructionSetRunsAndWhy) {
  const std::string best = version_text("");
  EXPECT_NE(best.find("commit: "), std::string::npos);
  EXPECT_NE(best.find("compiler: "), std::string::npos);
  EXPECT_NE(best.find("build type: "), std::string::npos);
  EXPECT_NE(best.find("(the best this machine has)"), std::string::npos);
  const std::string forced = version_text("ref");
  EXPECT_NE(forced.find("instruction set: ref (forced by OCTAVO_ISA)"), std::string::npos);
  for (const kernels::IsaChoice& choice : kernels::list_isas())
    EXPECT_NE(forced.find(std::string(choice.name)), std::string::npos) << choice.name;
  EXPECT_NE(version_text("sse9").find("none (OCTAVO_ISA=sse9"), std::string::npos);
}

}  // namespace
}  // namespace octavo::cli
