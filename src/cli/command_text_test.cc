#include "cli/command_text.h"

#include <gtest/gtest.h>

namespace octavo::cli {
namespace {

std::string text_of(const std::vector<std::string>& arguments) {
  const auto line = parse_command_line(
      arguments, [](const std::string&) { return std::optional<std::string>(); });
  if (!line) return line.error().message;
  return command_text(std::get<Invocation>(*line));
}

TEST(CommandText, KeepsAllWordsOfAFlag) {
  const std::string text =
      text_of({"bench", "serve", "http://a:1", "--goodput", "ttft:500", "tpot:50", "--json"});
  EXPECT_NE(text.find("--goodput ttft:500 --goodput tpot:50"), std::string::npos) << text;
  EXPECT_TRUE(text.starts_with("octavo bench serve http://a:1 ")) << text;
  EXPECT_NE(text.find("--json"), std::string::npos) << text;
  const std::string lists =
      text_of({"bench", "latency", "m.gguf", "--depth", "0,4096", "--batch-size=1,8"});
  EXPECT_NE(lists.find("--depth 0,4096"), std::string::npos) << lists;
  EXPECT_NE(lists.find("--batch-size 1,8"), std::string::npos) << lists;
}

TEST(CommandText, QuotesForAShell) {
  EXPECT_EQ(text_of({"bench", "serve", "--label", "it's $HOME"}),
            "octavo bench serve --label 'it'\\''s $HOME'");
  EXPECT_EQ(text_of({"bench", "serve", "--label", ""}), "octavo bench serve --label ''");
  EXPECT_EQ(text_of({"bench", "serve", "--label=--json"}), "octavo bench serve --label=--json");
  EXPECT_EQ(text_of({"bench", "serve", "--extra-body", R"({"top_k":3})"}),
            R"(octavo bench serve --extra-body '{"top_k":3}')");
}

TEST(CommandText, MeansTheSameWhenItIsReadAgain) {
  EXPECT_EQ(text_of({"generate", "m", "--stop", "a", "--stop", "-b", "--logit-bias", "1=2,3=-4.5",
                     "--top-p=0.25", "--stop-token-ids", "3,4"}),
            text_of({"generate", "m", "--stop=a", "--stop=-b", "--logit-bias=1=2,3=-4.5", "--top-p",
                     "0.25", "--stop-token-ids=3,4"}));
  const std::string text = text_of({"generate", "m", "--logit-bias", "1=2,3=-4.5", "--stop=-b"});
  EXPECT_NE(text.find("--logit-bias 1=2,3=-4.5"), std::string::npos) << text;
  EXPECT_NE(text.find("--stop=-b"), std::string::npos) << text;
}

TEST(CommandText, DoesNotShowTheKey) {
  EXPECT_EQ(text_of({"bench", "serve", "--api-key", "secret"}), "octavo bench serve");
}

}  // namespace
}  // namespace octavo::cli
