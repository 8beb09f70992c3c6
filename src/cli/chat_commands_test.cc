#include "cli/chat_commands.h"

#include <gtest/gtest.h>

namespace octavo::cli {
namespace {

TEST(ChatCommands, AreWordsAfterASlash) {
  EXPECT_EQ((**parse_chat_command("/help")).command, ChatCommand::help);
  EXPECT_EQ((**parse_chat_command("/exit ")).command, ChatCommand::exit);
  const auto system = parse_chat_command("/system  Be brief.\nAlways.");
  EXPECT_EQ((**system).command, ChatCommand::system);
  EXPECT_EQ((**system).argument, "Be brief.\nAlways.");
  EXPECT_EQ((**parse_chat_command("/system")).argument, "");
}

TEST(ChatCommands, OtherSlashesAreMessages) {
  for (const std::string_view line :
       {"/", "", "hello", "/etc/passwd", "/tmp is full", " /help", "/2", "//", "/Help"}) {
    const auto parsed = parse_chat_command(line);
    ASSERT_TRUE(parsed) << line;
    EXPECT_FALSE(parsed->has_value()) << line;
  }
}

TEST(ChatCommands, AnUnknownWordIsRefused) {
  for (const std::string_view line : {"/nothing", "/clear it", "/exit now"}) {
    const auto parsed = parse_chat_command(line);
    ASSERT_FALSE(parsed) << line;
    EXPECT_EQ(parsed.error().code, ErrorCode::invalid_argument);
    EXPECT_NE(parsed.error().message.find("/help"), std::string::npos);
  }
}

TEST(ChatCommands, HelpNamesEachOnce) {
  std::string all;
  for (const std::string& line : chat_help()) all += line + "\n";
  for (const std::string_view name : {"/help", "/clear", "/retry", "/system [TEXT]", "/exit"})
    EXPECT_NE(all.find(name), std::string::npos) << name;
}

}  // namespace
}  // namespace octavo::cli
