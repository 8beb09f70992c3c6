#include "cli/batch_line.h"

#include <gtest/gtest.h>

namespace octavo::cli {
namespace {

TEST(BatchLine, ReadsEachForm) {
  SamplingParams defaults;
  defaults.top_k = 5;
  defaults.max_tokens = 99;
  const auto text = parse_batch_line(
      R"({"prompt": "a", "sampling_params": {"max_tokens": 3}, "priority": -2, "cache_salt": "s",
          "num_speculative_tokens": 0})",
      defaults);
  ASSERT_TRUE(text.line) << text.line.error().message;
  EXPECT_EQ(std::get<std::string>(text.line->content), "a");
  EXPECT_EQ(text.line->params.max_tokens, 3);
  EXPECT_EQ(text.line->params.top_k, 5);
  EXPECT_EQ(text.line->priority, -2);
  EXPECT_EQ(text.line->cache_salt, "s");
  EXPECT_EQ(text.line->num_speculative_tokens, 0);
  EXPECT_TRUE(text.echo.empty());

  const auto ids = parse_batch_line(R"({"prompt_token_ids": [1, 2], "id": 7})", defaults);
  ASSERT_TRUE(ids.line);
  EXPECT_EQ(std::get<std::vector<TokenId>>(ids.line->content).size(), 2u);
  EXPECT_EQ(ids.line->params.max_tokens, 99);
  EXPECT_EQ(ids.echo.dump(), R"({"id":7})");

  const auto chat = parse_batch_line(
      R"({"messages": [{"role": "user", "content": "x"}], "custom_id": "q-1",
          "add_generation_prompt": false, "continue_final_message": true})",
      defaults);
  ASSERT_TRUE(chat.line);
  EXPECT_EQ(std::get<nlohmann::ordered_json>(chat.line->content).size(), 1u);
  EXPECT_TRUE(chat.line->chat.continue_final_message);
  EXPECT_EQ(chat.line->chat.add_generation_prompt, false);
  EXPECT_EQ(chat.echo.dump(), R"({"custom_id":"q-1"})");
}

TEST(BatchLine, ToolsKeepTheOrderOfTheirMembers) {
  const auto chat = parse_batch_line(
      R"({"messages": [{"role": "user", "content": "x"}], "chat_template_kwargs": {"z": 1, "a": 2},
          "tools": [{"type": "function", "function": {"name": "f", "description": "d"}}]})",
      {});
  ASSERT_TRUE(chat.line) << chat.line.error().message;
  EXPECT_EQ(chat.line->tools.dump(),
            R"([{"type":"function","function":{"name":"f","description":"d"}}])");
  EXPECT_EQ(chat.line->chat_template_kwargs.dump(), R"({"z":1,"a":2})");
  EXPECT_TRUE(parse_batch_line(R"({"messages": [], "tools": []})", {}).line->tools.is_null());
}

TEST(BatchLine, RefusesTheRest) {
  struct Case {
    std::string text, words;
  };
  const std::string deep = std::string(100000, '[');
  for (const auto& [text, words] : std::vector<Case>{
           {"text", "not a JSON object"},
           {"[1]", "not a JSON object"},
           {R"({"prompt": "a")", "not a JSON object"},
           {"{\"prompt\": \"\xff\"}", "not UTF-8 at byte 12"},
           {R"({"prompt": "a", "prompt": "b"})", "'prompt' is there twice"},
           {R"({"prompt": "a", "sampling_params": {"n": 1, "n": 2}})", "'n' is there twice"},
           {R"({"prompt": )" + deep, "nested"},
           {R"({})", "exactly one of"},
           {R"({"prompt": "a", "messages": []})", "exactly one of"},
           {R"({"prompt": 1})", "prompt must be a string"},
           {R"({"prompt_token_ids": "1"})", "prompt_token_ids"},
           {R"({"prompt_token_ids": [1.5]})", "no token id"},
           {R"({"prompt": "a", "promt": 1})", "unknown name 'promt'"},
           {R"({"prompt": "a", "sampling_params": {"max_token": 1}})", "did you mean max_tokens?"},
           {R"({"prompt": "a", "sampling_params": {"temperature": -1}})", "temperature is -1"},
           {R"({"prompt": "a", "sampling_params": 1})", "must be an object"},
           {R"({"prompt": "a", "priority": 1.5})", "priority"},
           {R"({"prompt": "a", "priority": 18446744073709551615})", "priority"},
           {R"({"prompt": "a", "cache_salt": 1})", "cache_salt"},
           {R"({"prompt": "a", "num_speculative_tokens": 33})", "num_speculative_tokens"},
           {R"({"prompt": "a", "num_speculative_tokens": -1})", "num_speculative_tokens"},
           {R"({"prompt": "a", "num_speculative_tokens": "0"})", "num_speculative_tokens"},
           {R"({"prompt": "a", "custom_id": {}})", "custom_id"},
           {R"({"prompt": "a", "add_generation_prompt": true})", "needs messages"},
           {R"({"messages": [], "continue_final_message": 1})", "true or false"},
           {R"({"messages": [], "tools": [{"type": "x"}]})", "tools[0].type must be"},
           {R"({"messages": [], "chat_template_kwargs": 1})", "must be an object"},
           {R"({"prompt": "a", "tools": []})", "needs messages"},
       }) {
    const auto parsed = parse_batch_line(text, {});
    ASSERT_FALSE(parsed.line) << text;
    EXPECT_EQ(parsed.line.error().code, ErrorCode::invalid_argument);
    EXPECT_NE(parsed.line.error().message.find(words), std::string::npos)
        << parsed.line.error().message;
  }
}

TEST(BatchLine, ARefusedLineKeepsItsName) {
  const auto parsed = parse_batch_line(R"({"custom_id": "q", "prompt": 1})", {});
  EXPECT_FALSE(parsed.line);
  EXPECT_EQ(parsed.echo.dump(), R"({"custom_id":"q"})");
}

}  // namespace
}  // namespace octavo::cli
