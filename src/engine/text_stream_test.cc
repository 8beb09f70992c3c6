#include "engine/text_stream.h"

#include <gtest/gtest.h>

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
  TextStream stream(c.stops, include);
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
  TextStream stream({"STOP"}, false);
  EXPECT_EQ(stream.push("abc"), "abc");
  EXPECT_EQ(stream.push("xST"), "x");
  EXPECT_EQ(stream.push("A"), "STA");
}

}  // namespace
}  // namespace octavo
