#include "text/normal_form.h"

#include <gtest/gtest.h>

namespace octavo {
namespace {

TEST(Nfc, Normalises) {
  const std::pair<const char*, const char*> cases[] = {
      {"", ""},
      {"plain", "plain"},
      {"caf\u00E9", "caf\u00E9"},
      {"cafe\u0301", "caf\u00E9"},
      {"\u1112\u1161\u11AB", "\uD55C"},
      {"\u304B\u3099", "\u304C"},
      {"q\u0307\u0323", "q\u0323\u0307"},      // marks in canonical order
      {"d\u0307\u0323", "\u1E0D\u0307"},       // ... and then joined
      {"\u0344", "\u0308\u0301"},              // never composed again
      {"\u212B\u2126", "\u00C5\u03A9"},        // singletons
      {"\uFB01 \u00BD", "\uFB01 \u00BD"},      // compatibility characters stay
      {"\U0001D15E", "\U0001D157\U0001D165"},  // excluded from composition
      {"\xF0\x9F\x98\x80", "\xF0\x9F\x98\x80"},
  };
  for (const auto& [text, expected] : cases) EXPECT_EQ(normalize_nfc(text), expected) << text;
}

// Alternating classes are the worst case for sorting by exchange: 400,000 marks would take hours.
TEST(Nfc, LongRunsOfMarksAreSorted) {
  std::string text = "q", expected = "q";
  for (int i = 0; i < 200000; ++i) text += "\u0307\u0323";
  for (int i = 0; i < 200000; ++i) expected += "\u0323";
  for (int i = 0; i < 200000; ++i) expected += "\u0307";
  EXPECT_EQ(normalize_nfc(text), expected);
}

}  // namespace
}  // namespace octavo
