#include "text/utf8.h"

#include <gtest/gtest.h>

#include <string>

namespace octavo {
namespace {

using namespace std::string_literals;

std::string repair(std::string_view bytes) {
  Utf8Repair repair;
  std::string out;
  repair.push(bytes, out);
  repair.finish(out);
  return out;
}

TEST(Utf8, FindsTheFirstInvalidByte) {
  const struct {
    std::string text;
    std::optional<size_t> at;
  } cases[] = {
      {"", std::nullopt},
      {"plain ascii, longer than eight bytes", std::nullopt},
      {"\0 is fine"s, std::nullopt},
      {"é中😀\U0010FFFF", std::nullopt},
      {"\xED\x9F\xBF\xEE\x80\x80", std::nullopt},  // the characters around the surrogates
      {"\x80", 0},
      {"12345678901\xFF", 11},
      {"a\xC0\x80", 1},      // overlong
      {"a\xE0\x9F\xBF", 1},  // overlong
      {"\xF0\x8F\xBF\xBF", 0},
      {"\xED\xA0\x80", 0},      // surrogate
      {"\xF4\x90\x80\x80", 0},  // above U+10FFFF
      {"ab\xC3", 2},
      {"ab\xE4\xB8", 2},
      {"ab\xC3(", 2},
  };
  for (const auto& test : cases) EXPECT_EQ(find_invalid_utf8(test.text), test.at) << test.text;
}

TEST(Utf8, AppendsEveryLength) {
  std::string out;
  for (const char32_t character : {U'a', U'é', U'中', U'😀'}) append_utf8(out, character);
  EXPECT_EQ(out, "aé中😀");
  EXPECT_EQ(utf8_char_size(out, 1), 2u);
  EXPECT_EQ(utf8_char_size(out, 3), 3u);
  EXPECT_EQ(utf8_char_size(out, 6), 4u);
}

// The examples of the Unicode Standard, tables 3-8 to 3-11: one U+FFFD per maximal subpart.
TEST(Utf8, RepairsByMaximalSubparts) {
  const std::string r = "\uFFFD";
  const struct {
    std::string bytes, text;
  } cases[] = {
      {"ok", "ok"},
      {"\x61\xF1\x80\x80\xE1\x80\xC2\x62\x80\x63\x80\xBF\x64",
       "a" + r + r + r + "b" + r + "c" + r + r + "d"},
      {"\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41", r + r + r + r + r + r + r + r + "A"},
      {"\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41", r + r + r + r + r + r + r + r + "A"},
      {"\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42", r + r + r + r + r + "A" + r + r + "B"},
      {"\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41", r + r + r + r + "A"},
      {"\xC3(", r + "("},
      {"a\xF0\x9F\x98", "a" + r},
  };
  for (const auto& test : cases) EXPECT_EQ(repair(test.bytes), test.text);
}

TEST(Utf8, RepairDoesNotDependOnHowBytesArrive) {
  const std::string bytes = "aé\xE4\xB8中😀\xED\xA0\x80\xF0\x9F\xC3";
  for (size_t first = 0; first <= bytes.size(); ++first) {
    for (size_t second = first; second <= bytes.size(); ++second) {
      Utf8Repair repairer;
      std::string out;
      repairer.push(std::string_view(bytes).substr(0, first), out);
      repairer.push(std::string_view(bytes).substr(first, second - first), out);
      repairer.push(std::string_view(bytes).substr(second), out);
      repairer.finish(out);
      EXPECT_EQ(out, repair(bytes)) << first << " " << second;
    }
  }
}

TEST(Utf8, HoldsBackOnlyTheUnfinishedCharacter) {
  Utf8Repair repairer;
  std::string out;
  repairer.push("ready \xF0\x9F", out);
  EXPECT_EQ(out, "ready ");
  repairer.push("\x98\x80!", out);
  EXPECT_EQ(out, "ready 😀!");
}

}  // namespace
}  // namespace octavo
