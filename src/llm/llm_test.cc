#include "llm/llm.h"

#include <gtest/gtest.h>

#include <map>
#include <semaphore>
#include <set>
#include <thread>
#include <utility>

#include "support/paths.h"

namespace octavo {
namespace {

std::string tiny_model() { return testing::test_data("tiny/llama-tied/llama-tied-F32.gguf"); }

EngineOptions tiny() { return {.model = tiny_model(), .threads = 2}; }

SamplingParams greedy(int max_tokens) {
  SamplingParams params;
  params.temperature = 0;
  params.max_tokens = max_tokens;
  params.ignore_eos = true;
  return params;
}

std::vector<TokenId> ids(std::initializer_list<int32_t> numbers) {
  std::vector<TokenId> out;
  for (const int32_t n : numbers) out.push_back(TokenId{n});
  return out;
}

// Prompts of different lengths, told apart by their first token.
std::vector<Prompt> some_prompts(int count) {
  std::vector<Prompt> prompts;
  for (int i = 0; i < count; ++i)
    prompts.push_back(std::vector<TokenId>(static_cast<size_t>(1 + i % 7), TokenId{10 + i}));
  return prompts;
}

TEST(LLM, AnswersInTheOrderOfThePrompts) {
  LLM llm(tiny());
  const auto prompts = some_prompts(20);
  std::vector<SamplingParams> params;
  for (int i = 0; i < 20; ++i) params.push_back(greedy(1 + (i * 7) % 13));
  const auto outputs = llm.generate(prompts, params);
  ASSERT_EQ(outputs.size(), 20u);
  for (size_t i = 0; i < 20; ++i) {
    ASSERT_FALSE(outputs[i].error) << outputs[i].error->message;
    EXPECT_TRUE(outputs[i].finished);
    EXPECT_GE(outputs[i].request_id, 0);
    EXPECT_EQ(outputs[i].prompt_token_ids, std::get<std::vector<TokenId>>(prompts[i].content));
    EXPECT_EQ(static_cast<int>(outputs[i].outputs[0].token_ids.size()), *params[i].max_tokens);
    EXPECT_EQ(outputs[i].outputs[0].token_ids,
              llm.generate(prompts[i], params[i]).outputs[0].token_ids);
  }
}

TEST(LLM, Embeds) {
  LLM llm(tiny());
  const auto prompts = some_prompts(10);
  const auto outputs = llm.embed(prompts);
  ASSERT_EQ(outputs.size(), 10u);
  EXPECT_EQ(llm.get_default_pooling_params().type, PoolingType::last);
  for (size_t i = 0; i < 10; ++i) {
    ASSERT_FALSE(outputs[i].error) << outputs[i].error->message;
    double squares = 0;
    for (const float x : outputs[i].embedding) squares += double{x} * double{x};
    EXPECT_NEAR(squares, 1, 1e-5);
    EXPECT_TRUE(outputs[i].outputs.empty());
    EXPECT_EQ(llm.embed(std::span(&prompts[i], 1))[0].embedding, outputs[i].embedding);
  }
  const auto cut = llm.embed(prompts, {.type = PoolingType::mean, .dimensions = 5});
  EXPECT_EQ(cut[0].embedding.size(), 5u);
  const auto wrong = llm.embed(prompts, {.dimensions = 1 << 20});
  EXPECT_EQ(wrong[0].error->code, ErrorCode::invalid_argument);
  EXPECT_TRUE(wrong[0].embedding.empty());
}

TEST(LLM, TakesPromptsInManyForms) {
  LLM llm(tiny());
  const SamplingParams params = greedy(3);
  const std::vector<std::string> texts = {"one", "two"};
  const auto expected = llm.generate(texts, params);
  ASSERT_EQ(expected.size(), 2u);
  EXPECT_EQ(expected[0].prompt, "one");
  EXPECT_EQ(expected[1].prompt_token_ids, *llm.encode("two"));
  EXPECT_EQ(llm.generate({"one", "two"}, params)[1].outputs[0].text, expected[1].outputs[0].text);
  EXPECT_EQ(llm.generate({"one"}, params).size(), 1u);
  const std::vector<std::vector<TokenId>> by_ids = {*llm.encode("two")};
  const auto from_ids = llm.generate(by_ids, params);
  EXPECT_EQ(from_ids[0].outputs[0].token_ids, expected[1].outputs[0].token_ids);
  EXPECT_FALSE(from_ids[0].prompt);
  const std::string& text = expected[0].outputs[0].text;
  EXPECT_EQ(llm.decode(expected[0].outputs[0].token_ids), text);
  EXPECT_TRUE(llm.generate(std::vector<Prompt>(), params).empty());
}

TEST(LLM, DefaultsAreThoseOfVllm) {
  LLM llm(tiny());
  SamplingParams params;
  EXPECT_EQ(params.max_tokens, 16);
  params.ignore_eos = true;
  EXPECT_EQ(llm.generate("a", params).outputs[0].token_ids.size(), 16u);
}

TEST(LLM, OneBadPromptFailsAlone) {
  LLM llm(tiny());
  std::vector<Prompt> prompts = {
      "good", ids({100000}), std::string("\xff"), ids({}), std::vector<TokenId>(1000, TokenId{5}),
      "good"};
  prompts.push_back("urgent");
  prompts.back().priority = -1;  // under fcfs
  SamplingParams params = greedy(4);
  params.n = 2;
  const auto outputs = llm.generate(prompts, params);
  for (const size_t good : {0u, 5u}) {
    ASSERT_FALSE(outputs[good].error);
    EXPECT_EQ(outputs[good].outputs[1].token_ids.size(), 4u);
  }
  for (const size_t bad : {1u, 2u, 3u, 4u, 6u}) {
    ASSERT_TRUE(outputs[bad].error) << bad;
    EXPECT_EQ(outputs[bad].error->code,
              bad == 4 ? ErrorCode::context_overflow : ErrorCode::invalid_argument);
    ASSERT_EQ(outputs[bad].outputs.size(), 2u);
    EXPECT_EQ(outputs[bad].outputs[1].finish_reason, FinishReason::error);
  }
  EXPECT_EQ(outputs[4].prompt_token_ids.size(), 1000u) << "what was sent, not what would fit";
}

TEST(LLM, TheQueueBoundsNoCall) {
  EngineOptions options = tiny();
  options.max_queue_len = 2;
  LLM llm(options);
  const auto prompts = some_prompts(30);
  // From two threads at once, which share the two places.
  std::vector<RequestOutput> others;
  std::jthread other([&] { others = llm.generate(prompts, greedy(3)); });
  const auto outputs = llm.generate(prompts, greedy(3));
  other.join();
  ASSERT_EQ(others.size(), 30u);
  for (size_t i = 0; i < 30; ++i) {
    EXPECT_FALSE(outputs[i].error);
    EXPECT_EQ(outputs[i].outputs[0].token_ids, others[i].outputs[0].token_ids);
  }
}

TEST(LLM, WhatCannotBeReturnedIsThrown) {
  EXPECT_THROW(LLM({.model = "/none.gguf"}), LLMError);
  const auto none = LLM::load({.model = "/none.gguf"});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::not_found);
  LLM llm(tiny());
  const std::vector<SamplingParams> two(2);
  EXPECT_THROW(llm.generate(some_prompts(3), std::span(two)), LLMError);
}

TEST(LLM, StreamsJoinToTheAnswers) {
  LLM llm(tiny());
  SamplingParams params = greedy(10);
  params.logprobs = 1;
  params.n = 2;
  const auto prompts = some_prompts(5);
  const auto expected = llm.generate(prompts, params);
  std::map<std::pair<size_t, int>, StreamEvent> joined;
  std::set<size_t> ended;
  Stream stream = llm.stream(prompts, params);
  while (auto event = stream.next()) {
    ASSERT_FALSE(ended.contains(event->prompt_index)) << "an event after the last";
    if (event->output) {
      ended.insert(event->prompt_index);
      const auto& output = event->output->outputs;
      const auto& same = expected[event->prompt_index].outputs;
      for (size_t c = 0; c < 2; ++c) {
        EXPECT_EQ(output[c].token_ids, same[c].token_ids);
        const StreamEvent& all = joined[std::pair(event->prompt_index, static_cast<int>(c))];
        EXPECT_EQ(output[c].text, all.text);
        double sum = 0;
        for (const auto& position : output[c].logprobs) sum += position.entries[0].logprob;
        EXPECT_EQ(output[c].cumulative_logprob, sum);
      }
      continue;
    }
    StreamEvent& all = joined[{event->prompt_index, event->choice}];
    all.text += event->text;
    EXPECT_EQ(event->token_ids.size(), event->logprobs.size());
    all.token_ids.insert(all.token_ids.end(), event->token_ids.begin(), event->token_ids.end());
  }
  EXPECT_EQ(ended.size(), 5u);
  for (const auto& [place, all] : joined)
    EXPECT_EQ(all.token_ids,
              expected[place.first].outputs[static_cast<size_t>(place.second)].token_ids);
}

// Steps of the engine, counted out, so that a cancellation comes before the end on any machine.
class Gate {
 public:
  EngineOptions options() {
    EngineOptions options = tiny();
    options.on_step = [this](const StepReport&) { steps_.acquire(); };
    return options;
  }
  void open() { steps_.release(100'000); }

 private:
  std::counting_semaphore<> steps_{5};
};

TEST(LLM, OnePromptOfAStreamIsCancelled) {
  Gate gate;
  LLM llm(gate.options());
  Stream stream = llm.stream({ids({1}), ids({2})}, greedy(200));
  std::vector<RequestOutput> outputs(2);
  bool cancelled = false;
  while (auto event = stream.next()) {
    if (event->output) outputs[event->prompt_index] = std::move(*event->output);
    if (std::exchange(cancelled, true)) continue;
    stream.cancel(0);
    gate.open();
  }
  EXPECT_EQ(outputs[0].outputs[0].finish_reason, FinishReason::abort);
  EXPECT_LT(outputs[0].outputs[0].token_ids.size(), 10u) << "within a step";
  EXPECT_EQ(outputs[1].outputs[0].token_ids.size(), 200u);
  EXPECT_EQ(llm.get_metrics().scheduler.num_running, 0);
}

TEST(LLM, ACancelledCallReturnsWhatThereIs) {
  Gate gate;
  EngineOptions options = gate.options();
  options.max_queue_len = 2;
  LLM llm(options);
  std::stop_source stop;
  const auto on_event = [&](const StreamEvent&) {
    if (stop.request_stop()) gate.open();
  };
  const auto outputs = llm.generate(some_prompts(6), greedy(200),
                                    {.on_event = on_event, .cancel = stop.get_token()});
  ASSERT_EQ(outputs.size(), 6u);
  for (const RequestOutput& output : outputs) {
    EXPECT_TRUE(output.finished);
    EXPECT_FALSE(output.error);
    ASSERT_EQ(output.outputs.size(), 1u);
    EXPECT_EQ(output.outputs[0].finish_reason, FinishReason::abort);
  }
  EXPECT_FALSE(outputs[0].outputs[0].token_ids.empty());
  EXPECT_TRUE(outputs[5].outputs[0].token_ids.empty()) << "it never began";
  EXPECT_EQ(llm.generate("a", greedy(2)).outputs[0].token_ids.size(), 2u) << "places came back";
}

TEST(LLM, AStreamLeftEarlyEndsItsRequests) {
  LLM llm(tiny());
  {
    Stream stream = llm.stream(some_prompts(4), greedy(200));
    ASSERT_TRUE(stream.next());
  }
  const EngineMetrics metrics = llm.get_metrics();
  EXPECT_EQ(metrics.scheduler.num_running, 0);
  EXPECT_EQ(metrics.scheduler.num_waiting, 0);
}

TEST(LLM, PinnedPrefixesOutliveAReset) {
  LLM llm(tiny());
  const std::vector<TokenId> shared(70, TokenId{7});
  const auto cached = [&](TokenId last, const std::string& salt = "") {
    Prompt prompt = shared;
    std::get<std::vector<TokenId>>(prompt.content).push_back(last);
    prompt.cache_salt = salt;
    return llm.generate(prompt, greedy(1)).num_cached_tokens;
  };
  EXPECT_EQ(cached(TokenId{1}), 0);
  EXPECT_GE(cached(TokenId{2}), 64);
  EXPECT_EQ(cached(TokenId{2}, "other"), 0);
  llm.reset_prefix_cache();
  EXPECT_EQ(cached(TokenId{3}), 0);
  const auto pinned = llm.pin_prefix(shared);
  ASSERT_TRUE(pinned) << pinned.error().message;
  EXPECT_EQ(*pinned, 70);
  llm.reset_prefix_cache();
  EXPECT_GE(cached(TokenId{4}), 64);
  llm.unpin_prefixes();
  llm.reset_prefix_cache();
  EXPECT_EQ(cached(TokenId{5}), 0);
  EXPECT_GT(llm.get_metrics().prefix_cache.prompts.hit_tokens, 0);

  EngineOptions without = tiny();
  without.enable_prefix_caching = false;
  EXPECT_EQ(LLM(without).pin_prefix(shared).error().code, ErrorCode::unsupported);
}

TEST(LLM, ChatIsGenerationAfterTheRenderedTemplate) {
  LLM llm(tiny());
  const ChatMessages messages = {{"user", "Hi"}, {"assistant", "Hello, "}};
  const RequestOutput answer = llm.chat({{"user", "Hi"}}, greedy(5));
  ASSERT_FALSE(answer.error) << answer.error->message;
  EXPECT_NE(answer.prompt->find("Hi"), std::string::npos);
  EXPECT_EQ(llm.generate(answer.prompt_token_ids, greedy(5)).outputs[0].token_ids,
            answer.outputs[0].token_ids);
  const auto both = llm.chat(std::vector<ChatMessages>{{{"user", "Hi"}}, {}}, greedy(5));
  EXPECT_EQ(both[0].outputs[0].token_ids, answer.outputs[0].token_ids);
  EXPECT_TRUE(both[1].error) << "no messages";
  const RequestOutput continued = llm.chat(
      messages, greedy(5), {.add_generation_prompt = false, .continue_final_message = true});
  ASSERT_FALSE(continued.error) << continued.error->message;
  EXPECT_TRUE(continued.prompt->ends_with("Hello, "));
}

TEST(LLM, ParametersReachTheSampler) {
  LLM llm(tiny());
  SamplingParams params = greedy(8);
  const auto free = llm.generate(ids({5, 6, 7}), params).outputs[0];
  params.detokenize = false;
  const auto silent = llm.generate(ids({5, 6, 7}), params).outputs[0];
  EXPECT_EQ(silent.text, "");
  EXPECT_EQ(silent.token_ids, free.token_ids);
  params.allowed_token_ids = ids({42});
  EXPECT_EQ(llm.generate(ids({5}), params).outputs[0].token_ids,
            std::vector<TokenId>(8, TokenId{42}));
  params.allowed_token_ids = {};
  params.bad_words = {"\xff"};
  EXPECT_EQ(llm.generate(ids({5}), params).error->code, ErrorCode::invalid_argument);
}

}  // namespace
}  // namespace octavo
