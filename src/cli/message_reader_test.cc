#include "cli/message_reader.h"

#include <gtest/gtest.h>

#include <vector>

namespace octavo::cli {
namespace {

// Each message that these lines make, and the prompts that were shown.
struct Read {
  std::vector<std::string> messages, prompts;
  Result<void> status;
};

Read read_all(const std::vector<std::string>& lines, size_t max_bytes = 1000) {
  Read all;
  size_t next = 0;
  const LineSource source = [&](std::string_view prompt) -> Result<std::optional<std::string>> {
    all.prompts.emplace_back(prompt);
    return next < lines.size() ? std::optional(lines[next++]) : std::nullopt;
  };
  for (;;) {
    const auto message = read_message(source, max_bytes);
    if (!message) all.status = tl::make_unexpected(message.error());
    if (!message || !*message) return all;
    all.messages.push_back(**message);
  }
}

using Texts = std::vector<std::string>;

TEST(MessageReader, ALineIsAMessage) {
  EXPECT_EQ(read_all({"a", "", "say \"\"\" b"}).messages, (Texts{"a", "", "say \"\"\" b"}));
}

TEST(MessageReader, QuotesHoldSeveralLines) {
  const Read read = read_all({"\"\"\"", "a", "", "  b", "\"\"\"", "c"});
  EXPECT_EQ(read.messages, (Texts{"a\n\n  b", "c"}));
  EXPECT_EQ(read.prompts, (Texts{"> ", "... ", "... ", "... ", "... ", "> ", "> "}));
  EXPECT_EQ(read_all({"\"\"\"a", "b\"\"\""}).messages, Texts{"a\nb"});
  EXPECT_EQ(read_all({"\"\"\"a\"\"\""}).messages, Texts{"a"});
  EXPECT_EQ(read_all({"\"\"\"\"\"\""}).messages, Texts{""});
  EXPECT_EQ(read_all({"\"\"\"", "\"\"\""}).messages, Texts{""});
}

TEST(MessageReader, TheEndOfInputEndsAMessage) {
  EXPECT_EQ(read_all({"\"\"\"", "a", "b"}).messages, Texts{"a\nb"});
}

TEST(MessageReader, ALongMessageIsRefused) {
  EXPECT_FALSE(read_all({"\"\"\"", std::string(600, 'a'), std::string(600, 'b')}).status);
}

}  // namespace
}  // namespace octavo::cli
