#include "server/request_log.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string>

#include "base/file_descriptor.h"

namespace octavo {
namespace {

// What `act` writes into a log.
template <class Act>
std::string written(LogOptions options, Act&& act) {
  std::array<int, 2> ends{};
  EXPECT_EQ(pipe(ends.data()), 0);
  const FileDescriptor reader(ends[0]);
  {
    const FileDescriptor writer(ends[1]);
    options.file_descriptor = writer.get();
    Log log(options);
    act(log);
  }
  std::string text(65536, '\0');
  const ssize_t n = ::read(reader.get(), text.data(), text.size());
  text.resize(n > 0 ? static_cast<size_t>(n) : 0);
  return text;
}

RequestLine line_with(int status, std::string path = "/v1/models") {
  return {.request_id = "id",
          .remote_address = "127.0.0.1",
          .method = "GET",
          .path = std::move(path),
          .status = status};
}

TEST(RequestLog, LinesBeginWithTheTimeAndTheLevel) {
  const auto act = [](Log& log) {
    log.say(LogLevel::warning, "one \"word\"");
    log.request(line_with(200));
  };
  EXPECT_TRUE(::testing::internal::RE::FullMatch(
      written({}, act), ::testing::internal::RE(
                            "[0-9]+-[0-9]+-[0-9]+ [0-9]+:[0-9]+:[0-9]+.[0-9]+ warning one "
                            "\"word\"\n[^\n]* info request_id=id [^\n]* status=200 ms=[^\n]*\n")));
  const std::string json = written({.format = LogFormat::json}, act);
  const auto first = nlohmann::json::parse(json.substr(0, json.find('\n')));
  EXPECT_EQ(first["level"], "warning");
  EXPECT_EQ(first["message"], "one \"word\"");
  EXPECT_EQ(first["time"].get<std::string>().size(), 29u);
}

TEST(RequestLog, WhatIsAskedForIsWritten) {
  const auto levels = [](LogLevel level) {
    return written({.level = level}, [](Log& log) {
      RequestLine quiet = line_with(503);
      quiet.is_quiet = true;
      log.request(quiet);
      for (const int status : {200, 429, 503, 500}) log.request(line_with(status));
    });
  };
  const auto count = [](const std::string& text, std::string_view word) {
    int n = 0;
    for (size_t at = 0; (at = text.find(word, at)) != std::string::npos; ++at) ++n;
    return n;
  };
  const std::string all = levels(LogLevel::debug);
  EXPECT_EQ(count(all, " debug "), 1);
  EXPECT_EQ(count(all, " info "), 2);
  EXPECT_EQ(count(all, " warning "), 1);
  EXPECT_EQ(count(all, " error "), 1);
  EXPECT_EQ(count(levels(LogLevel::info), "\n"), 4);
  EXPECT_EQ(count(levels(LogLevel::error), "\n"), 1);
  EXPECT_EQ(levels(LogLevel::off), "");
}

// U+009B begins a control sequence for a terminal, as a byte and as a character.
TEST(RequestLog, NothingInItSteersATerminal) {
  const std::string path =
      "/a\x9b"
      "31m\xc2\x9b"
      "31m\x1b[31m\x7f\n/b";
  for (const LogFormat format : {LogFormat::text, LogFormat::json}) {
    const std::string text = written({.format = format}, [&](Log& log) {
      log.request(line_with(404, path));
      log.say(LogLevel::error, path);
    });
    for (size_t i = 0; i < text.size(); ++i) {
      const auto c = static_cast<unsigned char>(text[i]);
      EXPECT_TRUE(c >= 0x20 || c == '\n') << i;
      EXPECT_NE(c, 0x7f) << i;
      EXPECT_FALSE(c == 0xc2 && static_cast<unsigned char>(text[i + 1]) < 0xa0) << i;
    }
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2);
    EXPECT_NE(text.find("\\u009b31m\\u001b[31m\\u007f"), std::string::npos) << text;
    EXPECT_NE(text.find("\xEF\xBF\xBD"
                        "31m"),
              std::string::npos)
        << text;
  }
}

TEST(RequestLog, TextOfOtherLanguagesStaysAsItIs) {
  const auto act = [](Log& log) { log.say(LogLevel::info, "日本語 größer"); };
  EXPECT_NE(written({}, act).find("日本語 größer"), std::string::npos);
  EXPECT_NE(written({.format = LogFormat::json}, act).find("日本語 größer"), std::string::npos);
}

}  // namespace
}  // namespace octavo
