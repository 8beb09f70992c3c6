#include "text/pretokenizer.h"

#include <gtest/gtest.h>

#include <string>

namespace octavo {
namespace {

std::string split(std::string_view name, std::string_view text) {
  const auto pre = PreTokenizer::create(name);
  EXPECT_TRUE(pre) << pre.error().message;
  if (!pre) return "";
  const auto ends = pre->split(text);
  EXPECT_TRUE(ends) << ends.error().message;
  if (!ends) return "";
  std::string joined;
  size_t begin = 0;
  for (const uint32_t end : *ends) {
    EXPECT_GT(end, begin);
    joined.append(begin ? "|" : "").append(text.substr(begin, end - begin));
    begin = end;
  }
  EXPECT_EQ(begin, text.size());
  return joined;
}

TEST(PreTokenizer, SplitsAsTheFamiliesDo) {
  const struct {
    const char *name, *text, *words;
  } cases[] = {
      {"gpt2", "", ""},
      {"gpt2", "I'm 1234, they'LL go!  x\n\n y ", "I|'m| 1234|,| they|'|LL| go|!| | x|\n\n| y| "},
      {"gpt-2", "한국어 かな　中文", "한국어| かな|　|中文"},
      {"smollm", "3.14159 12", "3|.|1|4|1|5|9| |1|2"},
      {"smollm", "１２３½Ⅷ", "１|２|３|½|Ⅷ"},
      {"smollm", "a  1", "a|  |1"},
      {"starcoder", "x = 10", "x| =| |1|0"},
      {"llama-bpe", "1234567 I'M it'S", "123|456|7| I|'M| it|'S"},
      {"llama-bpe", "a\r\n  \n b!\n\nc", "a|\r\n  \n| b|!\n\n|c"},
      {"qwen2", "12 ab\u2029c", "1|2| ab|\u2029c"},
      {"qwen2", "(foo) $bar", "(foo|)| $|bar"},
      {"deepseek-r1-qwen", "e\u0301x", "e|\u0301x"},
      {"qwen35", "e\u0301x", "e\u0301x"},
      {"tekken", "HelloWorld 12 CAMELcase", "Hello|World| |1|2| CAMELcase"},
      {"gpt-4o", "HelloWorld's 1234", "Hello|World's| |123|4"},
      {"deepseek-v3", "12345中文abc!x", "123|45|中文|abc|!x"},
      {"deepseek-llm", "ab cd  12中\n x  ", "ab| cd|  |12|中|\n| x|  "},
      {"deepseek-coder", "foo 42中", "foo| |4|2|中"},
      {"falcon", "a<=1234", "a|<=|123|4"},
      {"bloom", "Hi, you. ok", "Hi|,| you|.| ok"},
      {"bailingmoe", "I'll 12", "I|'ll| |1|2"},
      {"seed-coder", "a!\n", "a|!|\n"},
  };
  for (const auto& test : cases)
    EXPECT_EQ(split(test.name, test.text), test.words) << test.name << ": " << test.text;
}

// U+0085 is White_Space, U+180E has not been since Unicode 6.3.
TEST(PreTokenizer, SpaceMeansWhiteSpace) {
  EXPECT_EQ(split("qwen2", "a.\u0085b"), "a|.|\u0085b");
  EXPECT_EQ(split("gpt2", "a\u180E.b"), "a|\u180E.|b");
}

TEST(PreTokenizer, EveryNameOfTheTableCompilesAndKeepsTheText) {
  const std::string names = pretokenizer_names() + ", ";
  int count = 0;
  for (size_t begin = 0; begin < names.size(); ++count) {
    const size_t end = names.find(", ", begin);
    const std::string name = names.substr(begin, end - begin);
    EXPECT_NE(split(name, " It's 12,345 \t\n«é» 中文\u3000😀\r\n\0 end  "), "") << name;
    begin = end + 2;
  }
  EXPECT_GE(count, 40);
}

TEST(PreTokenizer, UnknownNamesAreRefused) {
  for (const char* name : {"", "nonsense", "default", "gpt", "qwen2 ", "mpt olmo"}) {
    const auto pre = PreTokenizer::create(name);
    ASSERT_FALSE(pre) << name;
    EXPECT_EQ(pre.error().code, ErrorCode::unsupported);
    EXPECT_NE(pre.error().message.find("qwen2, "), std::string::npos) << pre.error().message;
  }
}

// One run of a class, with and without something after it that makes a pattern go back over the
// run.
TEST(PreTokenizer, LongRunsEndWithinTheStepLimit) {
  for (const char* name :
       {"gpt2", "smollm", "llama-bpe", "qwen2", "qwen35", "tekken", "gpt-4o", "deepseek-llm",
        "deepseek-coder", "deepseek-v3", "falcon", "bloom", "bailingmoe", "seed-coder"}) {
    const auto pre = PreTokenizer::create(name);
    ASSERT_TRUE(pre);
    for (const std::string unit : {" ", "\n", "A", "a", "中", "!", "7", "\u0301", " \n", "\t "}) {
      for (const std::string tail : {"", "x", "\n", "!"}) {
        std::string text;
        for (int i = 0; i < 100000; ++i) text += unit;
        text += tail;
        const auto ends = pre->split(text);
        ASSERT_TRUE(ends) << name << " '" << unit << "' '" << tail << "': " << ends.error().message;
        EXPECT_EQ(ends->back(), text.size());
      }
    }
  }
}

}  // namespace
}  // namespace octavo
