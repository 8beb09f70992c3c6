#include "engine/engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <map>
#include <new>
#include <thread>

#include "engine/score.h"
#include "support/stub_model.h"
#include "support/tiny_tokenizer.h"

namespace octavo {
namespace {

using testing::hash_logits;
using testing::StubModel;

constexpr int kPrompt = 3;

Tokenizer tiny_tokenizer() { return std::move(*Tokenizer::create(testing::tiny_byte_spec())); }

std::vector<TokenId> bytes(std::string_view text) {
  std::vector<TokenId> ids;
  for (char c : text) ids.push_back(TokenId{static_cast<uint8_t>(c)});
  return ids;
}

// Says the script after a prompt of kPrompt tokens, then 'z' for ever.
StubModel::Logits script(std::vector<TokenId> tokens) {
  return [tokens](const std::vector<TokenId>& history, std::span<float> row) {
    const size_t i = history.size() - kPrompt;
    row[static_cast<size_t>(history.size() >= kPrompt && i < tokens.size() ? raw(tokens[i])
                                                                           : 'z')] = 10;
  };
}

struct Rig {
  explicit Rig(StubModel::Logits fill, int context = 128, int blocks = 64,
               SchedulerOptions scheduler = {})
      : tokenizer(tiny_tokenizer()),
        model(static_cast<int>(tokenizer.vocab_size()), context, blocks, std::move(fill)) {
    scheduler.max_num_batched_tokens = model.limits().max_num_batched_tokens;
    scheduler.max_num_seqs = std::min(scheduler.max_num_seqs, scheduler.max_num_batched_tokens);
    engine = std::move(*Engine::create(model, tokenizer, {.scheduler = scheduler}, 1000));
  }

  Result<RequestOutput> run(SamplingParams params, std::vector<TokenId> prompt = bytes("abc")) {
    streamed.clear();
    RequestEvents events;
    events.on_delta = [this](const ChoiceDelta& d) { streamed[d.index] += d.text; };
    return engine->run({.prompt_token_ids = std::move(prompt), .params = std::move(params)}, events,
                       cancel.get_token());
  }

  Tokenizer tokenizer;
  StubModel model;
  std::map<int, std::string> streamed;
  std::stop_source cancel;
  std::unique_ptr<Engine> engine;
};

SamplingParams greedy(int max_tokens) {
  SamplingParams params;
  params.temperature = 0;
  params.max_tokens = max_tokens;
  return params;
}

TEST(Engine, StopStringsOverTokens) {
  for (bool include : {false, true}) {
    Rig s(script(bytes("ABCDEFGHIJKL")));
    SamplingParams params = greedy(20);
    params.stop = {"DEFGHIJ"};
    params.include_stop_str_in_output = include;
    const auto out = s.run(params);
    ASSERT_TRUE(out) << out.error().message;
    const CompletionOutput& answer = out->outputs[0];
    EXPECT_EQ(answer.text, include ? "ABCDEFGHIJ" : "ABC");
    EXPECT_EQ(s.streamed[0], answer.text);
    EXPECT_EQ(answer.finish_reason, FinishReason::stop);
    EXPECT_EQ(std::get<std::string>(answer.stop_reason), "DEFGHIJ");
  }
}

TEST(Engine, CharactersAreNeverSplitAndACutOneIsRepaired) {
  Rig s(script(bytes("\xF0\x9F\x98\x80 \xE4\xB8\xAD")));
  const auto whole = s.run(greedy(8));
  EXPECT_EQ(whole->outputs[0].text, "\xF0\x9F\x98\x80 \xE4\xB8\xAD");
  EXPECT_EQ(s.streamed[0], whole->outputs[0].text);
  const auto cut = s.run(greedy(2));
  EXPECT_EQ(cut->outputs[0].text, "\xEF\xBF\xBD");
  EXPECT_EQ(s.streamed[0], cut->outputs[0].text);
}

TEST(Engine, EndTokens) {
  Rig s(script({TokenId{'a'}, TokenId{263}, TokenId{'b'}, TokenId{'c'}}));
  auto out = s.run(greedy(4));
  EXPECT_EQ(out->outputs[0].text, "a");
  EXPECT_EQ(out->outputs[0].token_ids.size(), 2u);  // the end token counts, and shows nothing
  EXPECT_EQ(out->outputs[0].finish_reason, FinishReason::stop);
  EXPECT_TRUE(std::holds_alternative<std::monostate>(out->outputs[0].stop_reason));

  SamplingParams params = greedy(4);
  params.ignore_eos = true;
  out = s.run(params);
  EXPECT_EQ(out->outputs[0].text, "abc");
  EXPECT_EQ(out->outputs[0].finish_reason, FinishReason::length);

  params.stop_token_ids = {TokenId{'b'}};
  out = s.run(params);
  EXPECT_EQ(out->outputs[0].text, "a");
  EXPECT_EQ(std::get<TokenId>(out->outputs[0].stop_reason), TokenId{'b'});

  params.include_stop_str_in_output = true;
  EXPECT_EQ(s.run(params)->outputs[0].text, "ab");
}

TEST(Engine, MinTokensHoldsBackEveryEnd) {
  Rig s([](const std::vector<TokenId>&, std::span<float> row) {
    row[263] = 5;
    row['x'] = 4;
  });
  SamplingParams params = greedy(10);
  params.min_tokens = 3;
  params.stop = {"xx"};
  const auto out = s.run(params);
  EXPECT_EQ(out->outputs[0].token_ids.size(), 4u);  // three x, then the end token
  EXPECT_EQ(out->outputs[0].text, "xxx");
}

struct LengthCase {
  int prompt;
  std::optional<int> max_tokens;
  int expected;  // tokens generated; -1: refused
};

TEST(Engine, LengthsAgainstAContextOf32) {
  const LengthCase cases[] = {{31, std::nullopt, 1},
                              {31, 1, 1},
                              {31, 2, -1},
                              {32, std::nullopt, -1},
                              {32, 1, -1},
                              {32, 0, 0},
                              {33, 0, -1},
                              {10, 0, 0},
                              {10, std::nullopt, 22},
                              {10, 22, 22},
                              {10, 23, -1},
                              {1, 1, 1}};
  for (const LengthCase& c : cases) {
    Rig s(hash_logits, 32);
    SamplingParams params = greedy(0);
    params.max_tokens = c.max_tokens;
    const auto out =
        s.run(params, std::vector<TokenId>(static_cast<size_t>(c.prompt), TokenId{'p'}));
    if (c.expected < 0) {
      ASSERT_FALSE(out) << c.prompt;
      EXPECT_EQ(out.error().code, ErrorCode::context_overflow);
      EXPECT_TRUE(out.error().message.starts_with("this model's maximum context length is 32 "));
      EXPECT_NE(out.error().message.find(std::to_string(c.prompt)), std::string::npos);
      EXPECT_NE(out.error().message.find("32"), std::string::npos);
      continue;
    }
    ASSERT_TRUE(out) << out.error().message;
    EXPECT_EQ(out->outputs[0].token_ids.size(), static_cast<size_t>(c.expected)) << c.prompt;
    EXPECT_EQ(out->outputs[0].finish_reason, FinishReason::length);
  }
}

TEST(Engine, BadPromptsAreRefusedAndTheEngineLives) {
  Rig s(hash_logits);
  for (const std::vector<TokenId>& prompt :
       {std::vector<TokenId>{}, {TokenId{-1}}, {TokenId{99999}}, {TokenId{'a'}, TokenId{265}}}) {
    const auto out = s.run(greedy(4), prompt);
    ASSERT_FALSE(out);
    EXPECT_EQ(out.error().code, ErrorCode::invalid_argument);
  }
  EXPECT_TRUE(s.run(greedy(4)));
}

TEST(Engine, BadPredictionsAreRefused) {
  Rig s(hash_logits);
  for (const int id : {-1, 265, 99999}) {
    const auto prediction = std::make_shared<std::vector<TokenId>>(3, TokenId{id});
    const auto out = s.engine->run(
        {.prompt_token_ids = {TokenId{'a'}}, .params = greedy(4), .prediction = prediction});
    ASSERT_FALSE(out);
    EXPECT_EQ(out.error().code, ErrorCode::invalid_argument);
    EXPECT_NE(out.error().message.find("prediction"), std::string::npos);
  }
}

TEST(Engine, BadLogitsAreAnErrorNeverATokenZero) {
  for (float bad : {std::nanf(""), INFINITY}) {
    Rig s([bad](const std::vector<TokenId>& history, std::span<float> row) {
      if (history.size() == 6) row[5] = bad;
    });
    const auto out = s.run(greedy(8));
    ASSERT_FALSE(out);
    EXPECT_EQ(out.error().code, ErrorCode::numeric_error);
    EXPECT_TRUE(s.run(greedy(2)));
  }
}

TEST(Engine, ChoicesShareThePromptAndCopyOnWrite) {
  Rig s(hash_logits);
  SamplingParams params;
  params.seed = 7;
  params.max_tokens = 40;
  const auto one = s.run(params, bytes("a prompt of twenty-one"));
  params.n = 5;
  const int copies = s.model.copies;
  const auto five = s.run(params, bytes("a prompt of twenty-one"));
  EXPECT_EQ(five->outputs.size(), 5u);
  EXPECT_GT(s.model.copies, copies);
  EXPECT_EQ(five->outputs[0].token_ids, one->outputs[0].token_ids);  // company changes nothing
  EXPECT_NE(five->outputs[1].token_ids, five->outputs[0].token_ids);
  for (const CompletionOutput& choice : five->outputs)
    EXPECT_EQ(s.streamed[choice.index], choice.text);
  const auto again = s.run(params, bytes("a prompt of twenty-one"));
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(again->outputs[i].token_ids, five->outputs[i].token_ids);
}

TEST(Engine, GreedyChoicesAreAllowedAndEqual) {
  Rig s(hash_logits);
  SamplingParams params = greedy(12);
  params.n = 12;  // more than fit one forward of the stub
  const auto out = s.run(params);
  ASSERT_EQ(out->outputs.size(), 12u);
  for (const CompletionOutput& choice : out->outputs)
    EXPECT_EQ(choice.token_ids, out->outputs[0].token_ids);
}

TEST(Engine, SameAnswerWithoutTheCache) {
  SamplingParams params;
  params.seed = 3;
  params.max_tokens = 30;
  params.n = 2;
  Rig with(hash_logits), without(hash_logits, 128, 64, {.keep_kv = false});
  const auto a = with.run(params), b = without.run(params);
  for (size_t i = 0; i < 2; ++i) EXPECT_EQ(a->outputs[i].token_ids, b->outputs[i].token_ids);
  EXPECT_GT(without.model.forwards, with.model.forwards);
}

TEST(Engine, SeedIsReportedAndRepeatsTheAnswer) {
  Rig s(hash_logits);
  SamplingParams params;
  params.max_tokens = 20;
  const auto first = s.run(params);
  params.seed = first->seed;
  EXPECT_EQ(s.run(params)->outputs[0].token_ids, first->outputs[0].token_ids);
}

TEST(Engine, Logprobs) {
  Rig s(hash_logits);
  SamplingParams params = greedy(3);
  params.logprobs = 2;
  params.prompt_logprobs = 0;
  const auto out = s.run(params, bytes("a prompt longer than one chunk"));
  ASSERT_EQ(out->prompt_logprobs.size(), 30u);
  EXPECT_FALSE(out->prompt_logprobs[0]);
  for (size_t i = 1; i < 30; ++i) {
    ASSERT_TRUE(out->prompt_logprobs[i]);
    EXPECT_EQ(out->prompt_logprobs[i]->chosen, out->prompt_token_ids[i]);
    EXPECT_EQ(out->prompt_logprobs[i]->entries.size(), 1u);
  }
  ASSERT_EQ(out->outputs[0].logprobs.size(), 3u);
  EXPECT_EQ(out->outputs[0].logprobs[0].chosen, out->outputs[0].token_ids[0]);
  EXPECT_EQ(out->outputs[0].logprobs[0].entries.size(), 2u);
}

TEST(Engine, CancelEndsEveryChoiceOnce) {
  Rig s(hash_logits);
  SamplingParams params = greedy(100);
  params.n = 3;
  int texts = 0, ends = 0;
  RequestEvents events;
  events.on_delta = [&](const ChoiceDelta&) {
    if (++texts == 7) s.cancel.request_stop();
  };
  events.on_finish = [&](const RequestOutput&) { ++ends; };
  const auto out = s.engine->run({bytes("abc"), params, 0, {}}, events, s.cancel.get_token());
  ASSERT_EQ(out->outputs.size(), 3u);
  for (const CompletionOutput& choice : out->outputs) {
    EXPECT_EQ(choice.finish_reason, FinishReason::abort);
    EXPECT_EQ(choice.token_ids.size(), 3u);
  }
  EXPECT_EQ(ends, 1);
}

// Blocks come back whatever way a request ends: ten times the pool's worth of requests.
TEST(Engine, NoBlockIsLost) {
  Rig s(hash_logits, 128, 9);
  for (int i = 0; i < 40; ++i) {
    SamplingParams params = greedy(i % 4 == 0 ? 0 : 60);
    params.n = i % 4 == 1 ? 2 : 1;
    if (i % 4 == 2) params.stop = {"A", "B", "C", "D", "E"};
    ASSERT_TRUE(s.run(params)) << i;
  }
  s.engine->inspect([](EngineCore& core) {
    EXPECT_TRUE(core.scheduler().check());
    EXPECT_EQ(core.scheduler().pool().num_held(), 0);
  });
}

// A model that throws, in the forward or in the logits, when it meets the token '!'.
class ThrowingModel : public StubModel {
 public:
  ThrowingModel(int vocab_size, bool in_forward)
      : StubModel(vocab_size, 128, 64,
                  [in_forward](const std::vector<TokenId>& history, std::span<float> row) {
                    if (!in_forward && history.back() == TokenId{'!'}) throw std::bad_alloc();
                    const bool fails = history.front() == TokenId{'x'};
                    row[static_cast<size_t>(history.size() == 6 && fails ? '!' : 'a')] = 10;
                  }),
        in_forward_(in_forward) {}

  bool forward(const ForwardBatch& batch) override {
    if (in_forward_ && std::ranges::count(batch.tokens, TokenId{'!'}) > 0) throw std::bad_alloc();
    return StubModel::forward(batch);
  }

 private:
  bool in_forward_;
};

TEST(Engine, AModelThatThrowsEndsThatStepsRequestsAlone) {
  for (bool in_forward : {false, true}) {
    const Tokenizer tokenizer = tiny_tokenizer();
    ThrowingModel model(static_cast<int>(tokenizer.vocab_size()), in_forward);
    SchedulerOptions scheduler;
    scheduler.max_num_batched_tokens = 8;
    scheduler.max_num_seqs = 4;
    const auto engine =
        std::move(*Engine::create(model, tokenizer, {.scheduler = scheduler}, 1000));
    const auto run = [&](std::string_view prompt, int n) {
      SamplingParams params = greedy(20);
      params.n = n;
      return engine->run({bytes(prompt), params, 0, {}});
    };
    const auto good = run("abc", 1);
    ASSERT_TRUE(good);
    for (int n : {1, 3}) {
      const auto bad = run("xyz", n);
      ASSERT_FALSE(bad);
      EXPECT_EQ(bad.error().code, ErrorCode::numeric_error);
      EXPECT_NE(bad.error().message.find("bad_alloc"), std::string::npos) << bad.error().message;
      const auto next = run("abc", 1);
      ASSERT_TRUE(next);
      EXPECT_EQ(next->outputs[0].text, good->outputs[0].text);
      engine->inspect([](EngineCore& core) {
        EXPECT_TRUE(core.scheduler().check());
        EXPECT_EQ(core.scheduler().pool().num_held(), 0);
        EXPECT_EQ(core.num_requests(), 0);
      });
    }
  }
}

TEST(Engine, AnEmbeddingEndsWithThePrompt) {
  Rig s(script({}));
  const auto embed = [&](PoolingParams pooling, std::string_view prompt) {
    bool told = false;
    RequestEvents events;
    events.on_delta = [](const ChoiceDelta&) { FAIL() << "there is no text"; };
    events.on_prompt_done = [&](const RequestOutput&) { told = true; };
    auto output = s.engine->run({.prompt_token_ids = bytes(prompt), .pooling = pooling}, events);
    EXPECT_EQ(told, output.has_value());
    return output;
  };
  const std::string prompt(100, 'q');  // many chunks
  const auto output = embed({PoolingType::mean}, prompt);
  ASSERT_TRUE(output) << output.error().message;
  EXPECT_TRUE(output->outputs.empty());
  EXPECT_EQ(output->embedding.size(), 8u);
  EXPECT_GT(output->metrics.last_token_ts, 0);
  EXPECT_EQ(output->num_cached_tokens, 0);
  // What is cached has no hidden states: only the last token's are looked at with a prefix found.
  EXPECT_EQ(embed({PoolingType::mean}, prompt)->num_cached_tokens, 0);
  EXPECT_EQ(embed({PoolingType::cls}, prompt)->num_cached_tokens, 0);
  const auto last = embed({PoolingType::last}, prompt);
  EXPECT_GT(last->num_cached_tokens, 0);
  EXPECT_EQ(last->embedding, embed({PoolingType::last}, prompt)->embedding);
  EXPECT_EQ(embed({PoolingType::last, true, 3}, prompt)->embedding.size(), 3u);
  EXPECT_TRUE(embed({PoolingType::last}, std::string(128, 'q')));  // the whole context
  for (const auto& [pooling, text] : {std::pair{PoolingParams{.dimensions = 9}, prompt},
                                      {PoolingParams{.dimensions = -1}, prompt},
                                      {PoolingParams{}, std::string(129, 'q')},
                                      {PoolingParams{}, std::string()}})
    EXPECT_FALSE(embed(pooling, text));
}

TEST(Engine, ScoreIsTheSumOfNegativeLogProbabilities) {
  Rig s([](const std::vector<TokenId>& history, std::span<float> row) {
    row[static_cast<size_t>(raw(history.back())) + 1] = 1;
  });
  const auto score = octavo::score(*s.engine, bytes("abcdefghijkl"));
  ASSERT_TRUE(score);
  const double vocab = static_cast<double>(s.tokenizer.vocab_size());
  EXPECT_EQ(score->predicted_tokens, 11);
  EXPECT_NEAR(score->nll, 11 * (std::log(vocab - 1 + std::exp(1.0)) - 1), 1e-4);
  EXPECT_FALSE(octavo::score(*s.engine, bytes("a")));
}

// Whoever watches sees each of them, however many came at once.
TEST(Engine, EveryCommandIsASignOfLife) {
  Rig s(script({}));
  std::vector<int64_t> beats;
  s.engine->inspect([&](EngineCore&) {
    for (int i = 0; i < 3; ++i)
      s.engine->post([&](EngineCore& core) { beats.push_back(core.heartbeat().num_beats()); });
  });
  s.engine->inspect([](EngineCore&) {});
  ASSERT_EQ(beats.size(), 3u);
  EXPECT_LT(beats[0], beats[1]);
  EXPECT_LT(beats[1], beats[2]);
}

// They take ten times as long as all steps together may wait for commands.
TEST(Engine, AnswersGoOnWhileManyCommandsCome) {
  Rig s(script({}), /*context=*/4096, /*blocks=*/512);
  std::atomic<int> num_tokens = 0;
  std::stop_source stop;
  RequestEvents events;
  events.on_delta = [&](const ChoiceDelta&) { ++num_tokens; };
  std::vector<int> seen;
  const auto come = [&](EngineCore&) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    seen.push_back(num_tokens);
  };
  events.on_prompt_done = [&](const RequestOutput&) {
    for (int i = 0; i < 30; ++i) s.engine->post(come);
  };
  ASSERT_TRUE(s.engine->run({.prompt_token_ids = bytes("abc"), .params = greedy(1000)}, events));
  s.engine->inspect([](EngineCore&) {});
  ASSERT_EQ(seen.size(), 30u);
  EXPECT_GE(seen.back(), seen.front() + 5);
}

TEST(Engine, RequestsShareWhatTheirListsSay) {
  Rig s(script(bytes("ABCD")));
  SamplingParams params = greedy(10);
  params.stop = {"CD"};
  params.bad_words = {"B"};
  params.logit_bias = {{TokenId{'x'}, 50}};
  params.allowed_token_ids = {TokenId{'A'}, TokenId{'B'}, TokenId{'C'}, TokenId{'D'}, TokenId{'y'}};
  const auto own = s.run(params);
  ASSERT_TRUE(own) << own.error().message;
  const auto rules = s.engine->take_rules(params);
  ASSERT_TRUE(rules);
  EXPECT_TRUE(params.stop.empty() && params.bad_words.empty() && params.logit_bias.empty() &&
              params.allowed_token_ids.empty());
  for (int i = 0; i < 2; ++i) {
    const auto shared =
        s.engine->run({.prompt_token_ids = bytes("abc"), .params = params, .rules = *rules});
    ASSERT_TRUE(shared) << shared.error().message;
    EXPECT_EQ(shared->outputs[0].text, own->outputs[0].text);
    EXPECT_EQ(shared->outputs[0].stop_reason, own->outputs[0].stop_reason);
  }
  params.bad_words = {"\xff"};
  const auto no_text = s.engine->take_rules(params);
  ASSERT_FALSE(no_text);
  EXPECT_EQ(no_text.error().code, ErrorCode::invalid_argument);
}

}  // namespace
}  // namespace octavo
