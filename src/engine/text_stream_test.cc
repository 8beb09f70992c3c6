#include "engine/text_stream.h"

#include <gtest/gtest.h>

#include <random>

namespace octavo {
namespace {

struct Case {
  std::vector<std::string> stops;
  std::string text;
  std::string expected, expected_included;
  std::string stop;  // empty: not stopped
};

const Case kCases[] = {
    {{"DEFGHIJ"},
     "ABCDEFGHIJKL",
     "ABC",
     "ABCDEFGHIJ",
     "DEFGHIJ"},  // over several tokens, inside the last
    {{"DEFX"},
     "ABCDEFGHIJKL",
     "ABCDEFGHIJKL",
     "ABCDEFGHIJKL",
     ""},                                            // a beginning that leads nowhere
    {{"END"}, "text EN", "text EN", "text EN", ""},  // held back at the end, then released
    {{"ABC", "AB"}, "xABCx", "x", "xAB", "AB"},      // one is a prefix of the other
    {{"B", "AB"}, "xABx", "x", "xAB", "AB"},         // same end: the longer
    {{"a\U0001F600b"}, "xa\U0001F600bc", "x", "xa\U0001F600b", "a\U0001F600b"},
    {{"aab"}, "aaaab", "aa", "aaaab", "aab"},  // overlapping beginnings
    {{}, "plain", "plain", "plain", ""},
};

std::string run(const Case& c, bool include, size_t step, std::optional<std::string>* stopped) {
  const StopStrings stops(c.stops);
  TextStream stream(stops, include);
  std::string out;
  for (size_t at = 0; at < c.text.size() && !stream.stopped(); at += step)
    out += stream.push(std::string_view(c.text).substr(at, step));
  if (!stream.stopped()) out += stream.finish();
  *stopped = stream.stopped();
  return out;
}

TEST(TextStream, SameTextHoweverItIsCut) {
  for (const Case& c : kCases)
    for (size_t step = 1; step <= c.text.size(); ++step) {
      std::optional<std::string> stopped;
      EXPECT_EQ(run(c, false, step, &stopped), c.expected) << c.text << " by " << step;
      EXPECT_EQ(stopped.value_or(""), c.stop);
      EXPECT_EQ(run(c, true, step, &stopped), c.expected_included) << c.text << " by " << step;
    }
}

TEST(TextStream, ShowsAtOnceWhatCannotBeAStop) {
  const StopStrings stops({"STOP"});
  TextStream stream(stops, false);
  EXPECT_EQ(stream.push("abc"), "abc");
  EXPECT_EQ(stream.push("xST"), "x");
  EXPECT_EQ(stream.push("A"), "STA");
}

TEST(TextStream, PassingForgetsWhatWasBeginning) {
  const StopStrings stops({"STOP"});
  TextStream stream(stops, false);
  EXPECT_EQ(stream.push("xST"), "x");
  EXPECT_EQ(stream.pass("O"), "STO");
  EXPECT_EQ(stream.push("P"), "P");
}

// The same by looking through all that is there: over few letters, so that beginnings overlap.
struct Looked {
  std::string shown;
  const std::string* stop = nullptr;
};

Looked look(const std::vector<std::string>& stops, const std::string& text) {
  for (size_t end = 1; end <= text.size(); ++end) {
    Looked found;
    for (const std::string& stop : stops)
      if (text.substr(0, end).ends_with(stop) && (!found.stop || stop.size() > found.stop->size()))
        found = {text.substr(0, end - stop.size()), &stop};
    if (found.stop) return found;
  }
  size_t held = 0;
  for (const std::string& stop : stops)
    for (size_t n = 1; n < stop.size(); ++n)
      if (text.ends_with(stop.substr(0, n))) held = std::max(held, n);
  return {text.substr(0, text.size() - held)};
}

TEST(TextStream, AsLookingThroughAllOfTheText) {
  std::mt19937 dice(7);
  const auto word = [&](size_t most) {
    std::string text(1 + dice() % most, 'a');
    for (char& c : text) c = static_cast<char>('a' + dice() % 2);
    return text;
  };
  for (int round = 0; round < 3000; ++round) {
    std::vector<std::string> texts;
    for (size_t i = dice() % 4; i-- > 0;) texts.push_back(word(9));
    const StopStrings stops(texts);
    TextStream stream(stops, false);
    std::string text, shown;
    while (text.size() < 60 && !stream.stopped()) {
      const std::string piece = word(5);
      text += piece;
      shown += stream.push(piece);
      const Looked expected = look(texts, text);
      ASSERT_EQ(shown, expected.shown) << text;
      ASSERT_EQ(stream.stopped().value_or(""), expected.stop ? *expected.stop : "") << text;
    }
  }
}

}  // namespace
}  // namespace octavo
