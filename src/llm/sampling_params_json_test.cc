#include "llm/sampling_params_json.h"

#include <gtest/gtest.h>

namespace octavo {
namespace {

using nlohmann::json;

TEST(SamplingParamsJson, EveryFieldIsReadAsItIsWritten) {
  SamplingParams params;
  params.n = 2;
  params.temperature = 0.5;
  params.top_p = 0.25;
  params.top_k = 3;
  params.min_p = 0.125;
  params.seed = 18446744073709551615u;
  params.presence_penalty = 1;
  params.frequency_penalty = -1;
  params.repetition_penalty = 1.5;
  params.logit_bias = {{TokenId{5}, -1.5f}};
  params.stop = {"a", "b"};
  params.stop_token_ids = {TokenId{7}};
  params.ignore_eos = true;
  params.max_tokens = 9;
  params.min_tokens = 4;
  params.logprobs = 0;
  params.prompt_logprobs = 2;
  params.include_stop_str_in_output = true;
  params.skip_special_tokens = false;
  params.detokenize = false;
  params.allowed_token_ids = {TokenId{1}, TokenId{2}};
  params.bad_words = {"c"};
  const json written = to_json(params);
  SamplingParams read;
  const auto done = read_sampling_params(written, read);
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(json(to_json(read)), written);
  const json defaults = to_json(SamplingParams());
  for (const auto& [name, value] : written.items()) EXPECT_NE(defaults[name], value) << name;
}

TEST(SamplingParamsJson, LeavesWhatIsNotNamedAndUnsetsWithNull) {
  SamplingParams params;
  params.seed = 3;
  params.top_k = 4;
  params.stop = {"x"};
  ASSERT_TRUE(read_sampling_params(
      json::parse(R"({"max_tokens": null, "seed": null, "stop": "end"})"), params));
  EXPECT_FALSE(params.max_tokens);
  EXPECT_FALSE(params.seed);
  EXPECT_EQ(params.stop, std::vector<std::string>{"end"});
  EXPECT_EQ(params.top_k, 4);
}

TEST(SamplingParamsJson, RefusesWhatItDoesNotKnow) {
  struct Case {
    const char *text, *words;
  };
  for (const auto& [text, words] : {
           Case{R"([])", "must be an object"},
           Case{R"({"temprature": 1})", "did you mean temperature?"},
           Case{R"({"best_of": 1})", "no 'best_of'"},
           Case{R"({"n": 1.5})", "sampling_params.n must be an integer"},
           Case{R"({"n": 2147483648})", "32 bits"},
           Case{R"({"n": -2147483649})", "32 bits"},
           Case{R"({"n": 18446744073709551615})", "32 bits"},
           Case{R"({"n": null})", "sampling_params.n must be"},
           Case{R"({"temperature": "1"})", "temperature must be a number"},
           Case{R"({"seed": -1})", "seed must be an integer, 0 to"},
           Case{R"({"stop": [1]})", "stop must be a list of which each is a string"},
           Case{R"({"stop": {}})", "stop must be a list"},
           Case{R"({"stop_token_ids": "1"})", "must be a list"},
           Case{R"({"logit_bias": [1]})", "logit_bias must be an object"},
           Case{R"({"logit_bias": {"x": 1}})", "logit_bias must be an object"},
           Case{R"({"logit_bias": {"1": "x"}})", "logit_bias must be an object"},
           Case{R"({"allowed_token_ids": []})", "not empty"},
           Case{R"({"ignore_eos": 1})", "true or false"},
       }) {
    SamplingParams params;
    const auto done = read_sampling_params(json::parse(text), params);
    ASSERT_FALSE(done) << text;
    EXPECT_EQ(done.error().code, ErrorCode::invalid_argument);
    EXPECT_NE(done.error().message.find(words), std::string::npos) << done.error().message;
  }
}

}  // namespace
}  // namespace octavo
