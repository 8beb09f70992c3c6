#include "server/api_request.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "server/api_fields.h"
#include "server/api_json.h"

namespace octavo {
namespace {

using Json = nlohmann::ordered_json;

ApiLimits limits() {
  return {.vocab_size = 100, .max_model_len = 64, .has_priorities = true, .max_choices = 256};
}

std::string chat_body(std::string_view fields = "") {
  return fmt::format(R"({{"messages":[{{"role":"user","content":"Hi"}}]{}{}}})",
                     fields.empty() ? "" : ",", fields);
}
std::string completion_body(std::string_view fields = "") {
  return fmt::format(R"({{"prompt":"Hi"{}{}}})", fields.empty() ? "" : ",", fields);
}

ApiResult<ChatRequest> chat(std::string_view fields) {
  return parse_chat_request(chat_body(fields), limits());
}
ApiResult<CompletionRequest> completion(std::string_view fields) {
  return parse_completion_request(completion_body(fields), limits());
}

// The refused field; empty: it was not refused.
template <class T>
std::string refused(const ApiResult<T>& result, std::string_view code = "") {
  if (result) return "";
  EXPECT_EQ(result.error().status, 400);
  EXPECT_EQ(result.error().code, code);
  EXPECT_EQ(result.error().type, "invalid_request_error");
  EXPECT_GT(result.error().message.size(), 10u);
  return result.error().param.empty() ? "null" : result.error().param;
}
std::string refused_messages(std::string_view messages, std::string_view code = "") {
  return refused(parse_chat_request(fmt::format(R"({{"messages":{}}})", messages), limits()), code);
}
std::string refused_prompt(std::string_view prompt) {
  return refused(parse_completion_request(fmt::format(R"({{"prompt":{}}})", prompt), limits()));
}

TEST(ApiRequest, DefaultsOfBothEndpoints) {
  ApiLimits with_defaults = limits();
  with_defaults.defaults.temperature = 0.2;
  const auto a = parse_chat_request(chat_body(), with_defaults);
  ASSERT_TRUE(a) << a.error().message;
  EXPECT_FALSE(a->params.max_tokens);
  EXPECT_EQ(a->params.temperature, 0.2);
  EXPECT_FALSE(a->params.logprobs);
  EXPECT_FALSE(a->stream);
  EXPECT_FALSE(a->chat.add_generation_prompt);  // a default is no wish
  EXPECT_EQ(a->messages[0]["content"], "Hi");
  EXPECT_FALSE(a->model);
  const auto b = completion("");
  ASSERT_TRUE(b);
  EXPECT_EQ(b->params.max_tokens, 16);
  EXPECT_TRUE(b->add_special_tokens);
  EXPECT_EQ(std::get<std::string>(b->prompts.at(0)), "Hi");
}

TEST(ApiRequest, HowManyTokensAreGuessed) {
  EXPECT_FALSE(chat("")->num_speculative_tokens);
  EXPECT_EQ(chat(R"("num_speculative_tokens":0)")->num_speculative_tokens, 0);
  EXPECT_EQ(completion(R"("num_speculative_tokens":32)")->num_speculative_tokens, 32);
  for (const char* value : {"-1", "33", "1.5", "true", "\"4\"", "{}"})
    EXPECT_EQ(refused(chat(fmt::format(R"("num_speculative_tokens":{})", value))),
              "num_speculative_tokens");
}

TEST(ApiRequest, Prediction) {
  EXPECT_EQ(chat(R"("prediction":null)")->prediction, "");
  EXPECT_EQ(chat(R"("prediction":{"type":"content","content":"ab"})")->prediction, "ab");
  EXPECT_EQ(completion(R"("prediction":{"type":"content","content":[{"type":"text","text":"a"},
                       {"type":"text","text":"b"}]})")
                ->prediction,
            "ab");
  const std::pair<const char*, const char*> refusals[] = {
      {R"("ab")", "prediction"},
      {R"({"content":"ab"})", "prediction.type"},
      {R"({"type":"text","content":"ab"})", "prediction.type"},
      {R"({"type":"content"})", "prediction.content"},
      {R"({"type":"content","content":null})", "prediction.content"},
      {R"({"type":"content","content":[{"type":"text"}]})", "prediction.content[0].text"}};
  for (const auto& [value, param] : refusals)
    EXPECT_EQ(refused(chat(fmt::format(R"("prediction":{})", value))), param) << value;
}

TEST(ApiRequest, EveryParameterArrives) {
  const auto r = completion(
      R"("model":"m","stream":true,"stream_options":{"include_usage":true,"continuous_usage_stats":true},
      "max_tokens":9,"min_tokens":2,"n":3,"temperature":0.5,"top_p":0.9,"top_k":5,"min_p":0.1,"seed":7,
      "presence_penalty":1,"frequency_penalty":-1,"repetition_penalty":1.5,"logit_bias":{"5":-1.5},
      "stop":"x","stop_token_ids":[4],"ignore_eos":true,"include_stop_str_in_output":true,
      "skip_special_tokens":false,"bad_words":["b"],"allowed_token_ids":[1,2],"logprobs":2,
      "prompt_logprobs":1,"echo":true,"return_token_ids":true,"truncate_prompt_tokens":8,"priority":-3,
      "cache_salt":"s","request_id":"abc","add_special_tokens":false)");
  ASSERT_TRUE(r) << r.error().message;
  EXPECT_EQ(r->model, "m");
  EXPECT_TRUE(r->stream && r->include_usage && r->continuous_usage_stats && r->echo);
  EXPECT_TRUE(r->return_token_ids && r->return_prompt_logprobs);
  EXPECT_EQ(r->truncate_prompt_tokens, 8);
  EXPECT_EQ(r->priority, -3);
  EXPECT_EQ(r->cache_salt, "s");
  EXPECT_EQ(r->request_id, "abc");
  EXPECT_FALSE(r->add_special_tokens);
  const SamplingParams& p = r->params;
  EXPECT_EQ(p.max_tokens, 9);
  EXPECT_EQ(p.min_tokens, 2);
  EXPECT_EQ(p.n, 3);
  EXPECT_EQ(p.temperature, 0.5);
  EXPECT_EQ(p.top_p, 0.9);
  EXPECT_EQ(p.top_k, 5);
  EXPECT_EQ(p.min_p, 0.1);
  EXPECT_EQ(p.seed, 7u);
  EXPECT_EQ(p.presence_penalty, 1);
  EXPECT_EQ(p.frequency_penalty, -1);
  EXPECT_EQ(p.repetition_penalty, 1.5);
  ASSERT_EQ(p.logit_bias.size(), 1u);
  EXPECT_EQ(p.logit_bias[0].id, TokenId{5});
  EXPECT_EQ(p.logit_bias[0].bias, -1.5f);
  EXPECT_EQ(p.stop, std::vector<std::string>{"x"});
  EXPECT_EQ(p.stop_token_ids, std::vector{TokenId{4}});
  EXPECT_TRUE(p.ignore_eos && p.include_stop_str_in_output);
  EXPECT_FALSE(p.skip_special_tokens);
  EXPECT_EQ(p.bad_words, std::vector<std::string>{"b"});
  EXPECT_EQ(p.allowed_token_ids, (std::vector{TokenId{1}, TokenId{2}}));
  EXPECT_EQ(p.logprobs, 2);
  EXPECT_EQ(p.prompt_logprobs, 1);
}

// B84.
TEST(ApiRequest, MaxTokens) {
  for (const std::string name : {"max_tokens", "max_completion_tokens"}) {
    for (const std::string_view wrong :
         {"-1", "-2147483648", "1099511627776", "1.5", "\"10\"", "true", "[]", "1e400", "1e300"})
      EXPECT_EQ(refused(chat(fmt::format("\"{}\":{}", name, wrong))), name) << wrong;
    EXPECT_EQ(chat(fmt::format("\"{}\":0", name))->params.max_tokens, 0);
    EXPECT_EQ(chat(fmt::format("\"{}\":8.0", name))->params.max_tokens, 8);
    EXPECT_EQ(chat(fmt::format("\"{}\":null", name))->params.max_tokens, std::nullopt);
  }
  EXPECT_EQ(completion(R"("max_tokens":null)")->params.max_tokens, 16);
  EXPECT_TRUE(completion(R"("max_tokens":null)")->max_tokens_is_default);
  EXPECT_FALSE(completion(R"("max_tokens":16)")->max_tokens_is_default);
  EXPECT_FALSE(chat(R"("max_completion_tokens":16)")->max_tokens_is_default);
  EXPECT_EQ(completion(R"("max_tokens":0,"echo":true)")->params.max_tokens, 0);
  const auto both = chat(R"("max_tokens":3,"max_completion_tokens":4)");  // the newer one counts
  EXPECT_EQ(both->params.max_tokens, 4);
  EXPECT_EQ(both->warnings.size(), 1U);
  EXPECT_EQ(chat(R"("max_tokens":3,"max_completion_tokens":3)")->params.max_tokens, 3);
  EXPECT_EQ(refused(completion(R"("max_tokens":3,"min_tokens":4)")), "min_tokens");
}

// B85.
TEST(ApiRequest, EmptyPromptsAndMessages) {
  for (const std::string_view wrong :
       {R"("")", "[]", "[[]]", R"([""])", R"(["a",""])", "null", "{}", "7", "true", "[[1],[]]",
        "[null]", "[{}]", "[[[1]]]", "[[\"a\"]]"})
    EXPECT_EQ(refused_prompt(wrong), "prompt") << wrong;
  EXPECT_EQ(refused(parse_completion_request("{}", limits())), "prompt");

  EXPECT_EQ(refused(parse_chat_request("{}", limits())), "messages");
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"[]", "messages"},
      {"null", "messages"},
      {"{}", "messages"},
      {"\"hi\"", "messages"},
      {"[{}]", "messages[0].role"},
      {"[7]", "messages[0]"},
      {R"([{"content":"x"}])", "messages[0].role"},
      {R"([{"role":"","content":"x"}])", "messages[0].role"},
      {R"([{"role":7,"content":"x"}])", "messages[0].role"},
      {R"([{"role":"wizard","content":"x"}])", "messages[0].role"},
      {R"([{"role":"user"}])", "messages[0].content"},
      {R"([{"role":"user","content":null}])", "messages[0].content"},
      {R"([{"role":"system","content":null}])", "messages[0].content"},
      {R"([{"role":"user","content":7}])", "messages[0].content"},
      {R"([{"role":"user","content":["x"]}])", "messages[0].content[0]"},
      {R"([{"role":"user","content":[{"text":"x"}]}])", "messages[0].content[0].type"},
      {R"([{"role":"user","content":[{"type":"text"}]}])", "messages[0].content[0].text"},
      {R"([{"role":"user","content":[{"type":"hologram"}]}])", "messages[0].content[0].type"},
  };
  for (const auto& [messages, param] : cases)
    EXPECT_EQ(refused_messages(messages), param) << messages;
}

// B86.
TEST(ApiRequest, NullsAndAssistantsWithoutContent) {
  for (const ApiField& field : api_fields()) {
    const std::string null = fmt::format("\"{}\":null", field.name);
    if (field.endpoints & kChat && field.name != "messages") {
      EXPECT_EQ(refused(chat(null)), "") << null;
    }
    if (field.endpoints & kCompletions && field.name != "prompt") {
      EXPECT_EQ(refused(completion(null)), "") << null;
    }
  }
  for (const std::string_view fine :
       {R"([{"role":"user","content":"x"},{"role":"assistant","content":null}])",
        R"([{"role":"user","content":"x"},{"role":"assistant","tool_calls":[],"refusal":null}])",
        R"([{"role":"system","content":""},{"role":"user","content":"x","name":"Ann"}])",
        R"([{"role":"developer","content":"a"},{"role":"user","content":[]}])",
        R"([{"role":"user","content":"x"},{"role":"assistant","content":[
             {"type":"refusal","refusal":"No."}],"refusal":"No."}])",
        R"([{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":""}]}])"})
    EXPECT_EQ(refused_messages(fine), "") << fine;
}

TEST(ApiRequest, WhatIsNotServedIsNamed) {
  constexpr std::string_view kCode = "unsupported_parameter";
  const std::pair<std::string_view, std::string_view> messages[] = {
      {R"([{"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]}])",
       "messages[0].content[0]"},
      {R"([{"role":"user","content":[{"type":"input_audio"}]}])", "messages[0].content[0]"},
      {R"([{"role":"assistant","function_call":{"name":"f"}}])", "messages[0].function_call"},
      {R"([{"role":"function","content":"42"}])", "messages[0].role"},
  };
  for (const auto& [text, param] : messages) EXPECT_EQ(refused_messages(text, kCode), param);

  for (const std::string_view field :
       {R"("tool_choice":{"type":"custom"})", R"("response_format":{"type":"json_object"})",
        R"("functions":[{}])", R"("use_beam_search":true)", R"("best_of":2)",
        R"("structured_outputs":{"regex":"a"})", R"("guided_json":{})", R"("echo":true)",
        R"("modalities":["text","audio"])", R"("audio":{})", R"("chat_template":"{{ 1 }}")"})
    EXPECT_EQ(refused(chat(field), kCode), field.substr(1, field.find('"', 1) - 1)) << field;
  for (const std::string_view field :
       {R"("suffix":"x")", R"("best_of":2)", R"("prompt_embeds":"x")", R"("use_beam_search":true)",
        R"("response_format":{"type":"json_schema"})"})
    EXPECT_EQ(refused(completion(field), kCode), field.substr(1, field.find('"', 1) - 1));

  for (const std::string_view neutral :
       {R"("tools":[])", R"("tool_choice":"none")", R"("response_format":{"type":"text"})",
        R"("best_of":1)", R"("use_beam_search":false)", R"("parallel_tool_calls":true)",
        R"("user":"u","metadata":{"a":[1]},"store":true,"service_tier":"auto")",
        R"("of_neither_api":{"deep":[[]]})", R"("echo":false)"})
    EXPECT_EQ(refused(chat(neutral)), "") << neutral;
}

constexpr std::string_view kTool =
    R"({"type":"function","function":{"name":"f","description":"d","parameters":{},"strict":true}})";

std::string tools(std::string_view list, std::string_view rest = "") {
  return fmt::format(R"("tools":{}{})", list, rest);
}

TEST(ApiRequest, ToolsAndWhoMayCallThem) {
  const auto parsed = [](const std::string& fields) { return std::move(*chat(fields)); };
  const std::string list = fmt::format("[{}]", kTool);
  EXPECT_EQ(parsed(tools(list)).tools.dump(), list);
  EXPECT_TRUE(parsed(tools(list, R"(,"tool_choice":"none")")).tools.is_null());
  EXPECT_FALSE(parsed(tools(list, R"(,"tool_choice":"auto")")).tools.is_null());
  EXPECT_FALSE(parsed(R"("parallel_tool_calls":false)").parallel_tool_calls);
  EXPECT_FALSE(parsed(R"("include_reasoning":false)").include_reasoning);
  EXPECT_TRUE(parsed(R"("tool_choice":"auto","tools":[])").tools.is_null());
  EXPECT_EQ(refused(chat(tools(list, R"(,"tool_choice":"required")")), "unsupported_parameter"),
            "tool_choice");
  EXPECT_EQ(refused(chat(tools(list, R"(,"tool_choice":{"type":"function",
                                         "function":{"name":"f"}})")),
                    "unsupported_parameter"),
            "tool_choice");
}

TEST(ApiRequest, WrongToolsAreNamed) {
  const std::pair<std::string, std::string_view> cases[] = {
      {tools("{}"), "tools"},
      {tools("[1]"), "tools[0]"},
      {tools(R"([{"type":"x"}])"), "tools[0].type"},
      {tools(R"([{"type":"function"}])"), "tools[0].function"},
      {tools(R"([{"type":"function","function":[]}])"), "tools[0].function"},
      {tools(R"([{"type":"function","function":{}}])"), "tools[0].function.name"},
      {tools(R"([{"type":"function","function":{"name":"a b"}}])"), "tools[0].function.name"},
      {tools(R"([{"type":"function","function":{"name":"f","parameters":[]}}])"),
       "tools[0].function.parameters"},
      {tools(R"([{"type":"function","function":{"name":"f","description":1}}])"),
       "tools[0].function.description"},
      {tools(R"([{"type":"function","function":{"name":"f","strict":1}}])"),
       "tools[0].function.strict"},
      {tools(fmt::format("[{0},{0}]", kTool)), "tools[1].function.name"},
      {R"("tool_choice":"required")", "tool_choice"},
      {R"("tool_choice":"always")", "tool_choice"},
      {R"("tool_choice":{})", "tool_choice.type"},
      {R"("tool_choice":{"type":"function"})", "tool_choice.function.name"},
      {tools(fmt::format("[{}]", kTool),
             R"(,"tool_choice":{"type":"function","function":{"name":"g"}})"),
       "tool_choice.function.name"},
      {R"("parallel_tool_calls":1)", "parallel_tool_calls"},
      {R"("include_reasoning":"yes")", "include_reasoning"},
  };
  for (const auto& [fields, param] : cases) EXPECT_EQ(refused(chat(fields)), param) << fields;
}

// Agents send back what they were sent.
TEST(ApiRequest, MessagesOfToolsAndTheirCalls) {
  constexpr std::string_view kTurn =
      R"([{{"role":"user","content":"x"}},{{"role":"assistant","content":null,
          "reasoning_content":"r","tool_calls":[{}]}},
          {{"role":"tool","tool_call_id":"call_1","content":"42"}}])";
  const auto turn = [&](std::string_view call) {
    return refused_messages(fmt::format(fmt::runtime(kTurn), call));
  };
  EXPECT_EQ(turn(R"({"id":"call_1","type":"function",
                     "function":{"name":"f","arguments":"{\"a\": 1}"}})"),
            "");
  EXPECT_EQ(turn(R"({"id":"","function":{"name":"f","arguments":{"a":1}}})"), "");
  EXPECT_EQ(turn(R"({"id":"1","function":{"name":"f","arguments":""}})"), "");
  EXPECT_EQ(turn("1"), "messages[1].tool_calls[0]");
  EXPECT_EQ(turn("{}"), "messages[1].tool_calls[0].id");
  EXPECT_EQ(turn(R"({"id":"1","type":"x"})"), "messages[1].tool_calls[0].type");
  EXPECT_EQ(turn(R"({"id":"1"})"), "messages[1].tool_calls[0].function");
  EXPECT_EQ(turn(R"({"id":"1","function":{}})"), "messages[1].tool_calls[0].function.name");
  for (const std::string_view wrong : {R"("[1]")", R"("{")", "1", "null", "[]"})
    EXPECT_EQ(turn(fmt::format(R"({{"id":"1","function":{{"name":"f","arguments":{}}}}})", wrong)),
              "messages[1].tool_calls[0].function.arguments")
        << wrong;
  EXPECT_EQ(refused_messages(R"([{"role":"tool","content":"42"}])"), "messages[0].tool_call_id");
  EXPECT_EQ(refused_messages(R"([{"role":"tool","content":"42","tool_call_id":1}])"),
            "messages[0].tool_call_id");
  EXPECT_EQ(refused_messages(R"([{"role":"user","content":"x","tool_calls":[{"id":"1"}]}])"),
            "messages[0].tool_calls");
  for (const std::string field : {"reasoning_content", "reasoning", "refusal", "name"})
    EXPECT_EQ(refused_messages(R"([{"role":"assistant",")" + field + R"(":[]}])"),
              "messages[0]." + field);
  EXPECT_EQ(refused_messages(R"([{"role":"user","content":[{"type":"refusal","refusal":"x"}]}])"),
            "messages[0].content[0].type");
  EXPECT_EQ(refused_messages(R"([{"role":"assistant","content":[{"type":"refusal"}]}])"),
            "messages[0].content[0].refusal");
}

TEST(ApiRequest, OwnTemplateNeedsTrust) {
  ApiLimits trusting = limits();
  trusting.trust_request_chat_template = true;
  const auto r = parse_chat_request(
      chat_body(R"("chat_template":"{{ x }}","chat_template_kwargs":{"z":1,"a":[2]})"), trusting);
  ASSERT_TRUE(r);
  EXPECT_EQ(r->chat_template, "{{ x }}");
  EXPECT_EQ(r->chat_template_kwargs.dump(), R"({"z":1,"a":[2]})");  // in its order
  const auto refusal = chat(R"("chat_template":"x")");
  EXPECT_NE(refusal.error().message.find("--trust-request-chat-template"), std::string::npos);
  EXPECT_EQ(refused(chat(R"("chat_template_kwargs":[])")), "chat_template_kwargs");
}

// A default is nothing that a client said.
TEST(ApiRequest, OnlyWhatIsAskedForContradicts) {
  EXPECT_EQ(refused(chat(R"("continue_final_message":true)")), "");
  EXPECT_EQ(refused(chat(R"("continue_final_message":true,"add_generation_prompt":null)")), "");
  EXPECT_EQ(refused(chat(R"("continue_final_message":true,"add_generation_prompt":false)")), "");
  EXPECT_EQ(refused(chat(R"("continue_final_message":true,"add_generation_prompt":true)")),
            "continue_final_message");
}

TEST(ApiRequest, EffortAndVerbosityAreWords) {
  EXPECT_EQ(chat(R"("reasoning_effort":"low","verbosity":"high")")->chat.reasoning_effort, "low");
  EXPECT_EQ(chat(R"("reasoning_effort":"low","verbosity":"high")")->chat.verbosity, "high");
  EXPECT_EQ(chat("")->chat.reasoning_effort, "");
  EXPECT_EQ(refused(chat(R"("reasoning_effort":"huge")")), "reasoning_effort");
  EXPECT_EQ(refused(chat(R"("verbosity":"none")")), "verbosity");
}

TEST(ApiRequest, ControlTokensAreTheCallersInPromptsOnly) {
  EXPECT_TRUE(completion("")->parse_special);
  EXPECT_FALSE(completion(R"("parse_special":false)")->parse_special);
  EXPECT_FALSE(chat("")->add_special_tokens);
  EXPECT_TRUE(chat(R"("add_special_tokens":true)")->add_special_tokens);
}

// B90: what each JSON type is to each field.
TEST(ApiRequest, WrongTypesNameTheField) {
  const std::string_view values[] = {"true",
                                     "7",
                                     "-7",
                                     "1.5",
                                     R"("x")",
                                     "[]",
                                     "[[]]",
                                     "{}",
                                     "[1,\"a\"]",
                                     R"({"a":1})",
                                     "18446744073709551616",
                                     "-9e99"};
  int num_refused = 0;
  for (const ApiField& field : api_fields()) {
    for (const std::string_view value : values) {
      const std::string body = fmt::format(R"({{"{}":{}}})", field.name, value);
      const std::string with_rest = fmt::format("\"{}\":{}", field.name, value);
      const bool is_content = field.name == "messages" || field.name == "prompt";
      std::vector<ApiError> errors;
      if (field.endpoints & kChat)
        if (auto r = is_content ? parse_chat_request(body, limits()) : chat(with_rest); !r)
          errors.push_back(r.error());
      if (field.endpoints & kCompletions)
        if (auto r = is_content ? parse_completion_request(body, limits()) : completion(with_rest);
            !r)
          errors.push_back(r.error());
      for (const ApiError& error : errors) {
        ++num_refused;
        EXPECT_EQ(error.status, 400);
        EXPECT_EQ(error.param.substr(0, error.param.find_first_of(".[")), field.name) << value;
      }
    }
  }
  EXPECT_GT(num_refused, 500);
}

TEST(ApiRequest, RangesNameTheField) {
  for (const std::string_view field : {R"("temperature":-0.1)",
                                       R"("top_p":0)",
                                       R"("top_p":1.1)",
                                       R"("top_k":-2)",
                                       R"("min_p":2)",
                                       R"("presence_penalty":2.1)",
                                       R"("frequency_penalty":-3)",
                                       R"("repetition_penalty":0)",
                                       R"("logit_bias":{"5":101})",
                                       R"("logit_bias":{"5":1e300})",
                                       R"("logit_bias":{"100":1})",
                                       R"("logit_bias":{"x":1})",
                                       R"("logit_bias":{"-1":1})",
                                       R"("stop":"")",
                                       R"("stop":["a",""])",
                                       R"("stop_token_ids":[100])",
                                       R"("stop_token_ids":[-1])",
                                       R"("allowed_token_ids":[])",
                                       R"("allowed_token_ids":[1000])",
                                       R"("bad_words":[""])",
                                       R"("prompt_logprobs":21)",
                                       R"("truncate_prompt_tokens":0)",
                                       R"("truncate_prompt_tokens":65)",
                                       R"("truncate_prompt_tokens":-2)",
                                       R"("cache_salt":"")",
                                       R"("request_id":"a b")",
                                       R"("request_id":"")",
                                       R"("n":0)",
                                       R"("n":-1)",
                                       R"("n":257)",
                                       R"("n":1000000000)",
                                       R"("seed":18446744073709551616)",
                                       R"("seed":1.5)"}) {
    const std::string name(field.substr(1, field.find('"', 1) - 1));
    EXPECT_EQ(refused(chat(field)), name) << field;
    EXPECT_EQ(refused(completion(field)), name) << field;
  }
  EXPECT_EQ(refused(completion(R"("logprobs":21)")), "logprobs");
  EXPECT_EQ(refused(completion(R"("logprobs":-1)")), "logprobs");
  EXPECT_EQ(refused(chat(R"("logprobs":true,"top_logprobs":21)")), "top_logprobs");
  EXPECT_EQ(refused(chat(R"("top_logprobs":2)")), "top_logprobs");
  EXPECT_EQ(refused(chat(R"("logprobs":5)")), "logprobs");

  ApiLimits no_priorities = limits();
  no_priorities.has_priorities = false;
  EXPECT_EQ(refused(parse_chat_request(chat_body(R"("priority":1)"), no_priorities)), "priority");
  EXPECT_EQ(refused(parse_chat_request(chat_body(R"("priority":0)"), no_priorities)), "");
}

TEST(ApiRequest, Logprobs) {
  EXPECT_EQ(chat(R"("logprobs":true)")->params.logprobs, 0);
  EXPECT_EQ(chat(R"("logprobs":true,"top_logprobs":5)")->params.logprobs, 5);
  EXPECT_EQ(chat(R"("logprobs":false,"top_logprobs":0)")->params.logprobs, std::nullopt);
  const auto echo = completion(R"("logprobs":1,"echo":true)");
  EXPECT_EQ(echo->params.prompt_logprobs, 1);
  EXPECT_FALSE(echo->return_prompt_logprobs);
  EXPECT_FALSE(completion(R"("logprobs":1)")->params.prompt_logprobs);
}

TEST(ApiRequest, StreamOptions) {
  EXPECT_EQ(refused(chat(R"("stream_options":{"include_usage":true})")), "stream_options");
  EXPECT_EQ(refused(chat(R"("stream":false,"stream_options":{})")), "stream_options");
  EXPECT_EQ(refused(chat(R"("stream":true,"stream_options":[])")), "stream_options");
  EXPECT_EQ(refused(chat(R"("stream":true,"stream_options":{"include_usage":1})")),
            "stream_options.include_usage");
  EXPECT_TRUE(chat(R"("stream":true,"stream_options":{"include_usage":true})")->include_usage);
  EXPECT_FALSE(
      chat(R"("stream":true,"stream_options":{"include_usage":null,"x":1})")->include_usage);
  EXPECT_FALSE(chat(R"("stream":true,"stream_options":{"continuous_usage_stats":true})")
                   ->continuous_usage_stats);
}

TEST(ApiRequest, SeedsOfBothSigns) {
  EXPECT_EQ(chat(R"("seed":18446744073709551615)")->params.seed, UINT64_MAX);
  EXPECT_EQ(chat(R"("seed":-1)")->params.seed, UINT64_MAX);
  EXPECT_EQ(chat(R"("seed":-9223372036854775808)")->params.seed, uint64_t{1} << 63);
  EXPECT_EQ(chat(R"("seed":12.0)")->params.seed, 12u);
}

TEST(ApiRequest, TruncationLeavesRoomForTheAnswer) {
  EXPECT_EQ(completion(R"("truncate_prompt_tokens":-1)")->truncate_prompt_tokens, 48);
  EXPECT_EQ(chat(R"("truncate_prompt_tokens":-1)")->truncate_prompt_tokens, 63);
  EXPECT_EQ(chat(R"("truncate_prompt_tokens":-1,"max_tokens":500)")->truncate_prompt_tokens, 1);
}

TEST(ApiRequest, ModelNames) {
  EXPECT_EQ(chat(R"("model":"org/name")")->model, "org/name");
  EXPECT_EQ(chat(R"("model":"")")->model, "");  // which there is not, as Adapters finds
  EXPECT_FALSE(chat(R"("model":null)")->model);
  EXPECT_EQ(refused(chat(R"("model":7)")), "model");
}

// B92.
TEST(ApiRequest, ListsOfPrompts) {
  const auto parse = [](std::string_view prompt, std::string_view rest = "") {
    return parse_completion_request(fmt::format(R"({{"prompt":{}{}}})", prompt, rest), limits());
  };
  EXPECT_EQ(parse(R"(["a","b","c"])")->prompts.size(), 3u);
  EXPECT_EQ(std::get<std::vector<TokenId>>(parse("[1,2]")->prompts.at(0)).size(), 2u);
  EXPECT_EQ(parse("[[1],[2,3.0]]")->prompts.size(), 2u);
  for (const std::string_view wrong :
       {R"(["a",[1]])", R"([[1],"a"])", R"([1,"a"])", R"(["a",1])", "[[1],2]", "[100]", "[-1]",
        "[[99],[100]]", "[1.5]", "[1e30]"})
    EXPECT_EQ(refused(parse(wrong)), "prompt") << wrong;

  std::string many = "[\"a\"";
  for (int i = 1; i < 256; ++i) many += ",\"a\"";
  EXPECT_EQ(parse(many + "]")->prompts.size(), 256u);
  EXPECT_EQ(refused(parse(many + "]", R"(,"n":2)")), "n");
  EXPECT_EQ(refused(parse(many + ",\"a\"]")), "prompt");
  EXPECT_EQ(refused(parse("\"a\"", R"(,"n":257)")), "n");
  EXPECT_EQ(parse("\"a\"", R"(,"n":256)")->params.n, 256);
}

TEST(ApiRequest, TokenizeInBothShapes) {
  const auto parse = [](std::string_view body) { return parse_tokenize_request(body, limits()); };
  const auto vllm = parse(R"({"model":"m","prompt":"Hi","return_token_strs":true})");
  ASSERT_TRUE(vllm);
  EXPECT_EQ(vllm->text, "Hi");
  EXPECT_TRUE(vllm->add_special_tokens && vllm->parse_special && vllm->return_token_strs);
  EXPECT_FALSE(vllm->is_llama_shape);
  const auto llama = parse(R"({"content":"Hi","with_pieces":true,"parse_special":false})");
  ASSERT_TRUE(llama);
  EXPECT_TRUE(llama->is_llama_shape && llama->return_token_strs);
  EXPECT_FALSE(llama->add_special_tokens || llama->parse_special);
  const auto chat_shape = parse(R"({"messages":[{"role":"user","content":"x"}]})");
  ASSERT_TRUE(chat_shape);
  EXPECT_EQ(chat_shape->messages->size(), 1u);
  EXPECT_FALSE(chat_shape->add_special_tokens);
  EXPECT_EQ(refused(parse("{}")), "prompt");
  EXPECT_EQ(refused(parse(R"({"prompt":"a","content":"b"})")), "prompt");
  EXPECT_EQ(refused(parse(R"({"prompt":7})")), "prompt");
  EXPECT_TRUE(parse(R"({"prompt":""})"));

  EXPECT_EQ(parse_detokenize_request(R"({"tokens":[1,2]})", limits())->tokens.size(), 2u);
  EXPECT_EQ(refused(parse_detokenize_request(R"({"tokens":[100]})", limits())), "tokens");
  EXPECT_EQ(refused(parse_detokenize_request(R"({"tokens":"a"})", limits())), "tokens");
  EXPECT_EQ(refused(parse_detokenize_request("{}", limits())), "tokens");
}

}  // namespace
}  // namespace octavo
