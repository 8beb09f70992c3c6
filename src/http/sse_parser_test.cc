#include "http/sse_parser.h"

#include <gtest/gtest.h>

#include <vector>

namespace octavo::http {
namespace {

std::vector<std::string> parse(const std::vector<std::string_view>& pieces) {
  std::vector<std::string> out;
  SseParser parser;
  for (const std::string_view piece : pieces)
    EXPECT_TRUE(parser.feed(
        piece, [&](const SseEvent& event) { out.push_back(event.type + "|" + event.data); }));
  return out;
}

constexpr std::string_view kStream =
    "\xEF\xBB\xBF: a comment\n"
    "data: one\n\n"
    "data:two\r\n\r\n"
    ": keep-alive\r\n\r\n"
    "event: error\rdata: three\rdata:  four\rid: 7\rretry: 10\r\r"
    "data\n\n"
    "event: nothing\n\n"
    "data: {\"a\":\"\xE4\xBD\xA0:\"}\n"
    "\n"
    "data: unfinished\n";
const std::vector<std::string> kEvents = {"|one", "|two", "error|three\n four", "|",
                                          "|{\"a\":\"\xE4\xBD\xA0:\"}"};

TEST(SseParser, ReadsEventsOfTheStandard) { EXPECT_EQ(parse({kStream}), kEvents); }

TEST(SseParser, DoesNotCareWhereBytesAreCut) {
  for (size_t at = 0; at <= kStream.size(); ++at)
    EXPECT_EQ(parse({kStream.substr(0, at), kStream.substr(at)}), kEvents) << at;
  std::vector<std::string_view> bytes;
  for (size_t i = 0; i < kStream.size(); ++i) bytes.push_back(kStream.substr(i, 1));
  EXPECT_EQ(parse(bytes), kEvents);
}

TEST(SseParser, GivesUpOnAnEventWithoutEnd) {
  SseParser parser(100);
  const auto none = [](const SseEvent&) { FAIL(); };
  EXPECT_TRUE(parser.feed("data: " + std::string(90, 'x'), none));
  EXPECT_FALSE(parser.feed(std::string(10, 'x'), none));
  EXPECT_FALSE(parser.feed("\n\n", none));
  SseParser lines(100);
  bool fits = true;
  for (int i = 0; i < 100; ++i) fits = lines.feed("data: y\n", none);
  EXPECT_FALSE(fits);
}

}  // namespace
}  // namespace octavo::http
