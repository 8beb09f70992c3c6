// Nothing changes an answer, with real models: tokens and log-probabilities of each request alone
// are equal, to the bit, to those in any company, however it is scheduled, cut and cached.
#include <gtest/gtest.h>

#include <condition_variable>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <random>

#include "engine/load.h"
#include "support/expect_same.h"
#include "support/paths.h"

namespace octavo {
namespace {

using namespace testing;
using Json = nlohmann::json;

struct Setting {
  const char* name;
  EngineOptions options;
  int num_blocks = 0;  // of the KV cache; 0: as many as there are contexts
};

EngineOptions base(const std::string& model) {
  EngineOptions options{.model = model, .threads = 2};
  options.max_num_seqs = 16;
  return options;
}

// Every way of serving that the options know.
std::vector<Setting> settings(const std::string& model, int few_blocks) {
  const EngineOptions plain = base(model);
  std::vector<Setting> all;
  const auto add = [&](const char* name, auto change, int num_blocks = 0) {
    EngineOptions options = plain;
    change(options);
    all.push_back({name, options, num_blocks});
  };
  using O = EngineOptions&;
  add("plain", [](O) {});
  add("one token a step", [](O o) { o.max_num_seqs = o.max_num_batched_tokens = 1; });
  add("chunks of seven", [](O o) { o.max_num_seqs = o.max_num_batched_tokens = 7; });
  add("blocks of 16", [](O o) { o.block_size = 16; });
  add("no prefix cache", [](O o) { o.enable_prefix_caching = false; });
  add("shared blocks read by each", [](O o) { o.shared_prefix_attention = false; });
  add(
      "few blocks", [](O o) { o.block_size = 16; }, 18);
  add(
      "few blocks, no prefix cache",
      [](O o) {
        o.block_size = 16;
        o.enable_prefix_caching = false;
      },
      few_blocks);
  add("longest match", [](O o) {
    o.scheduling_policy = SchedulingPolicy::longest_prefix_match;
    o.max_num_seqs = 3;
  });
  add("shortest first", [](O o) {
    o.scheduling_policy = SchedulingPolicy::shortest_prefill_first;
    o.max_num_seqs = 3;
  });
  add("static batches", [](O o) {
    o.scheduling_mode = SchedulingMode::static_batch;
    o.max_num_seqs = 5;
  });
  add("contiguous", [](O o) { o.kv_layout = KvCacheLayout::contiguous; });
  add("time limit", [](O o) { o.max_inter_token_ms = 0.5; });
  const auto exits_early = [](O o) {
    o.speculative_config =
        R"({"method": "early_exit", "skip_layers": [1], "num_speculative_tokens": 4,
            "adaptive": false, "draft_confidence_threshold": 0})";
  };
  add("early exit", exits_early);
  add(
      "early exit, few blocks",
      [&](O o) {
        exits_early(o);
        o.block_size = 16;
      },
      18);
  add("early exit, static batches", [&](O o) {
    exits_early(o);
    o.scheduling_mode = SchedulingMode::static_batch;
    o.max_num_seqs = 5;
  });
  add("early exit, contiguous", [&](O o) {
    exits_early(o);
    o.kv_layout = KvCacheLayout::contiguous;
  });
  return all;
}

// Every way of guessing, beside every way of serving that guesses could disturb. `drafter`: a model
// with the same tokens.
std::vector<Setting> draft_settings(const std::string& model, const std::string& drafter,
                                    int few_blocks) {
  const std::string other = R"("method": "draft_model", "model": ")" + drafter + R"(", )";
  std::vector<Setting> all;
  const auto add = [&](const char* name, const std::string& config, auto change,
                       int num_blocks = 0) {
    EngineOptions options = base(model);
    options.speculative_config = "{" + config + R"(, "adaptive": false})";
    change(options);
    all.push_back({name, options, num_blocks});
  };
  using O = EngineOptions&;
  add("ngram", R"("method": "ngram", "prompt_lookup_min": 1, "num_speculative_tokens": 5)",
      [](O) {});
  add("suffix", R"("method": "suffix", "num_speculative_tokens": 9, "branching_factor": 3)",
      [](O o) { o.block_size = 16; });
  add("draft model", other + R"("num_speculative_tokens": 3)", [](O) {});
  add("draft model, trees", other + R"("num_speculative_tokens": 7, "branching_factor": 3)",
      [](O o) { o.block_size = 16; });
  add("draft model, one at a time", other + R"("num_speculative_tokens": 7)",
      [](O o) { o.max_num_seqs = 1; });
  add(
      "draft model, few blocks", other + R"("num_speculative_tokens": 8)",
      [](O o) { o.block_size = 16; }, 18);
  add(
      "draft model, no prefix cache", other + R"("num_speculative_tokens": 1)",
      [](O o) {
        o.block_size = 16;
        o.enable_prefix_caching = false;
      },
      few_blocks);
  add("draft model, static batches", other + R"("num_speculative_tokens": 4)", [](O o) {
    o.scheduling_mode = SchedulingMode::static_batch;
    o.max_num_seqs = 5;
  });
  add("draft model, contiguous", other + R"("num_speculative_tokens": 4)",
      [](O o) { o.kv_layout = KvCacheLayout::contiguous; });
  add("several, chunks of eleven",
      R"("method": "ngram,suffix,draft_model", "model": ")" + drafter +
          R"(", "num_speculative_tokens": 6, "branching_factor": 2)",
      [](O o) { o.max_num_seqs = o.max_num_batched_tokens = 11; });
  return all;
}

// Prompts that share beginnings, choices, seeds, and log-probabilities of prompts and answers.
std::vector<Request> vary(const std::vector<std::vector<TokenId>>& prompts, int max_tokens) {
  std::vector<Request> requests;
  for (size_t i = 0; i < prompts.size(); ++i)
    for (int again = 0; again < 2; ++again) {
      Request r{.prompt_token_ids = prompts[i]};
      r.params.max_tokens = max_tokens - static_cast<int>(i % 5);
      r.params.temperature = again;
      r.params.seed = 11 + i;
      r.params.n = again == 1 && i % 2 == 0 ? 3 : 1;
      r.params.logprobs = 3;
      if (i % 3 == 1) r.params.prompt_logprobs = 2;
      if (i % 4 == 2) r.params.repetition_penalty = 1.2;
      r.params.ignore_eos = i % 2 == 1;
      requests.push_back(std::move(r));
    }
  return requests;
}

std::vector<RequestOutput> run_all(Engine& engine, const std::vector<Request>& requests) {
  std::vector<RequestOutput> outputs(requests.size());
  std::mutex mutex;
  std::condition_variable finished;
  size_t done = 0;
  for (size_t i = 0; i < requests.size(); ++i) {
    RequestEvents events;
    events.on_finish = [&, i](RequestOutput output) {
      const std::lock_guard lock(mutex);
      outputs[i] = std::move(output);
      ++done;
      finished.notify_one();
    };
    const auto id = engine.submit(requests[i], std::move(events));
    if (id) continue;
    ADD_FAILURE() << id.error().message;
    return outputs;
  }
  std::unique_lock lock(mutex);
  finished.wait(lock, [&] { return done == requests.size(); });
  return outputs;
}

Result<LoadedEngine> load(const Setting& setting) {
  EngineOptions options = setting.options;
  if (setting.num_blocks > 0) {
    OCTAVO_TRY(const LoadedEngine probe, load_model(options));
    options.kv_cache_memory_bytes =
        setting.num_blocks * (probe.bytes_per_block + probe.draft_bytes_per_block);
  }
  return load_engine(options);
}

std::vector<RequestOutput> each_alone(const EngineOptions& options,
                                      const std::vector<Request>& requests) {
  EngineOptions alone = options;
  alone.max_num_seqs = 1;
  alone.enable_prefix_caching = false;
  auto engine = load_engine(alone);
  EXPECT_TRUE(engine) << engine.error().message;
  std::vector<RequestOutput> outputs;
  for (const Request& request : requests) outputs.push_back(run_all(*engine->engine, {request})[0]);
  return outputs;
}

struct Seen {
  int64_t preemptions = 0, hit_tokens = 0, draft_tokens = 0, accepted_tokens = 0;

  void add(const Seen& other) {
    preemptions += other.preemptions;
    hit_tokens += other.hit_tokens;
    draft_tokens += other.draft_tokens;
    accepted_tokens += other.accepted_tokens;
  }
};

Seen expect_same_answers(const std::vector<Setting>& settings,
                         const std::vector<Request>& requests) {
  Seen seen;
  const std::vector<RequestOutput> expected = each_alone(settings[0].options, requests);
  for (const Setting& setting : settings) {
    SCOPED_TRACE(setting.name);
    const auto engine = load(setting);
    EXPECT_TRUE(engine) << engine.error().message;
    if (!engine) continue;
    const std::vector<RequestOutput> outputs = run_all(*engine->engine, requests);
    for (size_t i = 0; i < requests.size(); ++i) {
      SCOPED_TRACE(i);
      expect_equal(outputs[i], expected[i]);
    }
    engine->engine->inspect([&](EngineCore& core) {
      EXPECT_TRUE(core.scheduler().check());
      EXPECT_EQ(core.scheduler().pool().num_held(), 0);
      seen.preemptions += core.scheduler().stats().num_preemptions;
      seen.hit_tokens += core.scheduler().prefix_tree().stats().prompts.hit_tokens;
      if (!core.speculator()) return;
      seen.draft_tokens += core.speculator()->stats().num_draft_tokens;
      seen.accepted_tokens += core.speculator()->stats().num_accepted_tokens;
    });
  }
  return seen;
}

std::vector<std::vector<TokenId>> random_prompts(uint32_t seed, int vocabulary) {
  std::mt19937 random(seed);
  std::vector<TokenId> shared;
  for (int i = 0; i < 150; ++i)
    shared.push_back(
        TokenId{4 + static_cast<int>(random() % static_cast<uint32_t>(vocabulary - 4))});
  std::vector<std::vector<TokenId>> prompts;
  for (int i = 0; i < 8; ++i) {
    const auto common = static_cast<size_t>(i < 3 ? 100 : random() % 150);
    prompts.emplace_back(shared.begin(), shared.begin() + static_cast<long>(common));
    for (auto own = 1 + random() % 40; own > 0; --own)
      prompts.back().push_back(
          TokenId{4 + static_cast<int>(random() % static_cast<uint32_t>(vocabulary - 4))});
  }
  return prompts;
}

struct TinyCase {
  std::string file;
  std::string dtype = "auto", kv_cache_dtype = "auto";
};

TEST(CompanyReference, TinyModels) {
  Seen seen;
  uint32_t seed = 1;
  for (const TinyCase& c :
       {TinyCase{"llama-rope3/llama-rope3-Q4_0"}, TinyCase{"qwen2/qwen2-Q8_0", "auto", "int8"},
        TinyCase{"llama-tied/llama-tied-F16"}, TinyCase{"llama-untied/llama-untied-F32", "float32"},
        TinyCase{"gemma3/gemma3-Q4_0"}, TinyCase{"mixtral/mixtral-Q8_0"}}) {
    SCOPED_TRACE(c.file);
    std::vector<Setting> all = settings(tiny_data(c.file + ".gguf"), 18);
    for (Setting& setting : all) {
      setting.options.dtype = c.dtype;
      setting.options.kv_cache_dtype = c.kv_cache_dtype;
    }
    seen.add(expect_same_answers(all, vary(random_prompts(seed++, 500), 40)));
  }
  EXPECT_GT(seen.preemptions, 10);
  EXPECT_GT(seen.hit_tokens, 1000);
}

// Drafters that are mostly right, and mostly wrong.
TEST(CompanyReference, TinyModelsWithDrafts) {
  Seen seen;
  uint32_t seed = 20;
  for (const auto& [model, drafter] :
       {std::pair{"llama-rope3/llama-rope3-Q4_0", "llama-rope3/llama-rope3-F16"},
        {"gemma3/gemma3-Q8_0", "gemma3/gemma3-Q8_0"},
        {"mixtral/mixtral-Q8_0", "llama-tied/llama-tied-Q8_0"}}) {
    SCOPED_TRACE(model);
    const auto path = [](const char* name) { return tiny_data(std::string(name) + ".gguf"); };
    seen.add(expect_same_answers(draft_settings(path(model), path(drafter), 18),
                                 vary(random_prompts(seed++, 500), 40)));
  }
  EXPECT_GT(seen.preemptions, 10);
  EXPECT_GT(seen.accepted_tokens, 1000);
  EXPECT_GT(seen.draft_tokens, seen.accepted_tokens + 1000);
}

std::vector<std::vector<TokenId>> real_prompts() {
  std::vector<std::vector<TokenId>> prompts;
  std::ifstream file(test_data("greedy/smollm2.jsonl"));
  for (std::string line; std::getline(file, line) && prompts.size() < 6;) {
    prompts.emplace_back();
    const Json greedy = Json::parse(line);
    for (const int id : greedy.at("prompt_ids")) prompts.back().push_back(TokenId{id});
  }
  prompts.push_back(prompts[0]);
  prompts.back().insert(prompts.back().end(), prompts[1].begin(), prompts[1].end());
  return prompts;
}

TEST(CompanyReference, SmolLM2) {
  std::vector<Setting> all = settings(smollm2_path(), 34);
  std::erase_if(all, [](const Setting& s) { return s.options.max_num_batched_tokens == 1; });
  for (Setting& setting : all) setting.options.max_model_len = setting.num_blocks > 0 ? 0 : 512;
  expect_same_answers(all, vary(real_prompts(), 16));
}

TEST(CompanyReference, SmolLM2WithDrafts) {
  std::vector<Setting> all = draft_settings(smollm2_path(), smollm2_path(), 34);
  std::erase_if(all, [](const Setting& s) { return s.num_blocks > 0; });
  for (Setting& setting : all) setting.options.max_model_len = 512;
  const Seen seen = expect_same_answers(all, vary(real_prompts(), 24));
  EXPECT_GT(seen.accepted_tokens, 1000);
}

}  // namespace
}  // namespace octavo
