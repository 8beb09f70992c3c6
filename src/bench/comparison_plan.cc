#include "bench/comparison_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "kv/block_size.h"

namespace octavo {
namespace {

Lengths parsed(std::string_view text) { return std::move(*Lengths::parse("lengths", text)); }

// What a subject is planned from.
struct Given {
  const ComparisonOptions& options;
  const ModelFacts& facts;

  // Few sequences make short runs: what static batches lose does not hang on their number.
  EngineOptions engine() const {
    EngineOptions e = options.engine;
    if (!options.full && !options.sequences_given) e.max_num_seqs = std::min(e.max_num_seqs, 8);
    return e;
  }
  bool full() const { return options.full; }
};

ComparisonPlan plan_kv_cache(const Given& given) {
  ComparisonPlan plan{.title = "With the KV cache beside without",
                      .x_label = "tokens of context",
                      .headline = {"median_tpot_ms"}};
  plan.max_concurrency = 1;
  EngineOptions e = given.engine();
  e.max_num_seqs = 1;
  e.enable_prefix_caching = false;
  std::vector<int> contexts = given.options.contexts;
  if (contexts.empty()) contexts = {64, 128, 256, 512};
  if (given.options.contexts.empty() && given.full()) contexts.push_back(1024);
  for (const int context : contexts)
    for (const bool cached : {false, true}) {
      e.kv_cache = cached;
      const std::string series = cached ? "with cache" : "without";
      plan.variants.push_back(
          {.name = fmt::format("{}, {}", series, context),
           .engine = e,
           .x = context,
           .series = series,
           .group = fmt::format("{}", context),
           .requests = SyntheticSpec{.num_requests = 1,
                                     .prompt = Lengths::fixed(context),
                                     .output = Lengths::fixed(given.options.gen_tokens)}});
    }
  return plan;
}

ComparisonPlan plan_batching(const Given& given) {
  ComparisonPlan plan{.title = "Continuous beside static batching",
                      .headline = {"output_throughput", "p95_e2el_ms"}};
  EngineOptions e = given.engine();
  plan.requests = {.num_requests = (given.full() ? 6 : 2) * e.max_num_seqs,
                   .prompt = parsed("16-64"),
                   .output = parsed(given.full() ? "80%:20-60+20%:300-400" : "80%:8-24+20%:60-80")};
  e.scheduling_mode = SchedulingMode::static_batch;
  plan.variants.push_back({.name = "static", .engine = e});
  e.pad_finished = false;
  plan.variants.push_back({.name = "static, padding skipped", .engine = e});
  e.scheduling_mode = SchedulingMode::continuous;
  plan.variants.push_back({.name = "continuous", .engine = e});
  return plan;
}

// Memory for so many whole contexts, however it is given out.
constexpr int kContexts = 4;

ComparisonPlan plan_paging(const Given& given) {
  ComparisonPlan plan{.title = "Paged beside contiguous KV cache in the same memory",
                      .headline = {"output_throughput", "mean_running", "kv_waste_share"},
                      .block_map_rows = 60};
  EngineOptions e = given.options.engine;
  if (e.max_model_len == 0)
    e.max_model_len = std::min(given.facts.max_model_len, given.full() ? 4096 : 512);
  if (e.kv_cache_memory_bytes == 0)
    e.kv_cache_memory_bytes =
        blocks_for(e.max_model_len, e.block_size) * kContexts * given.facts.kv_bytes_per_block;
  const int mean = e.max_model_len / 8;
  plan.requests = {.num_requests = given.full() ? 96 : 24,
                   .prompt = *Lengths::lognormal(mean * 0.75, e.max_model_len / 2),
                   .output = *Lengths::lognormal(mean * 0.25, e.max_model_len / 4)};
  e.kv_layout = KvCacheLayout::contiguous;
  plan.variants.push_back({.name = "contiguous", .engine = e});
  e.kv_layout = KvCacheLayout::paged;
  plan.variants.push_back({.name = "paged", .engine = e});
  return plan;
}

ComparisonPlan plan_prefix(const Given& given) {
  ComparisonPlan plan{.title = "Prefix cache on beside off",
                      .headline = {"output_throughput", "median_ttft_ms"}};
  EngineOptions e = given.engine();
  const int tokens = given.full() ? 64 : 16;
  plan.requests = {.num_requests = given.full() ? 64 : 12,
                   .prompt = Lengths::fixed(tokens),
                   .output = Lengths::fixed(tokens),
                   .shared_tokens = given.full() ? 512 : 256};
  // So few at once that the first have left the prefix behind when others come.
  plan.max_concurrency = given.full() ? e.max_num_seqs : std::min(e.max_num_seqs, 4);
  e.enable_prefix_caching = false;
  plan.variants.push_back({.name = "cache off", .engine = e});
  e.enable_prefix_caching = true;
  plan.variants.push_back({.name = "cache on", .engine = e});
  return plan;
}

ComparisonPlan plan_shared_attention(const Given& given) {
  ComparisonPlan plan{.title = "Shared prefixes read once for all beside once for each",
                      .headline = {"output_throughput", "median_tpot_ms"}};
  EngineOptions e = given.engine();
  plan.requests = {.num_requests = e.max_num_seqs,
                   .prompt = Lengths::fixed(16),
                   .output = Lengths::fixed(given.full() ? 64 : 24),
                   .shared_tokens = given.full() ? 2048 : 512};
  e.shared_prefix_attention = false;
  plan.variants.push_back({.name = "read by each", .engine = e});
  e.shared_prefix_attention = true;
  plan.variants.push_back({.name = "read once", .engine = e});
  return plan;
}

// What most users send: prompts and answers of all lengths.
SyntheticSpec mixed_requests(bool full) {
  if (full) return {.num_requests = 64, .prompt = parsed("32-512"), .output = parsed("16-128")};
  return {.num_requests = 16, .prompt = parsed("16-64"), .output = parsed("8-24")};
}

template <class Set>
ComparisonPlan plan_values(const Given& given, std::string title, std::string x_label,
                           std::span<const int> values, Set set) {
  ComparisonPlan plan{.title = std::move(title),
                      .x_label = std::move(x_label),
                      .headline = {"output_throughput", "p95_ttft_ms", "p95_tpot_ms"},
                      .requests = mixed_requests(given.full())};
  for (const int value : values) {
    EngineOptions e = given.options.engine;
    set(e, value);
    plan.variants.push_back({.name = fmt::format("{}", value), .engine = e, .x = value});
  }
  return plan;
}

ComparisonPlan plan_block_size(const Given& given) {
  return plan_values(given, "Sizes of a KV block", "tokens of a block", kBlockSizes,
                     [](EngineOptions& e, int value) { e.block_size = value; });
}

ComparisonPlan plan_max_num_seqs(const Given& given) {
  constexpr std::array values = {1, 2, 4, 8, 16, 32, 64};
  return plan_values(given, "Sequences that run at once", "sequences at once", values,
                     [](EngineOptions& e, int value) {
                       e.max_num_seqs = value;
                       e.max_num_batched_tokens = std::max(e.max_num_batched_tokens, value);
                     });
}

ComparisonPlan plan_batched_tokens(const Given& given) {
  constexpr std::array values = {64, 128, 256, 512, 1024, 2048};
  return plan_values(given, "Tokens of a step", "tokens of a step", values,
                     [](EngineOptions& e, int value) {
                       e.max_num_batched_tokens = value;
                       e.max_num_seqs = std::min(e.max_num_seqs, value);
                     });
}

ComparisonPlan plan_policies(const Given& given) {
  ComparisonPlan plan{.title = "Scheduling policies",
                      .headline = {"median_ttft_ms", "median_urgent_ttft_ms", "output_throughput"}};
  plan.requests = {
      .num_requests = given.full() ? 96 : 24,
      .prompt = parsed(given.full() ? "80%:16-64+20%:512-1024" : "80%:16-32+20%:128-256"),
      .output = parsed(given.full() ? "16-64" : "8-16"),
      .shared_tokens = given.full() ? 256 : 32,
      .groups = 4};
  for (const SchedulingPolicy policy :
       {SchedulingPolicy::fcfs, SchedulingPolicy::priority,
        SchedulingPolicy::shortest_prefill_first, SchedulingPolicy::longest_prefix_match}) {
    EngineOptions e = given.engine();
    e.scheduling_policy = policy;
    plan.variants.push_back({.name = std::string(name(policy)), .engine = e});
  }
  return plan;
}

ComparisonPlan plan_throughput(const Given& given) {
  const std::vector<int>& levels = given.options.max_concurrency;
  const bool sweeps = levels.size() > 1;
  ComparisonPlan plan{.title = sweeps ? "Throughput by requests at once" : "Throughput",
                      .headline = {"output_throughput", "p95_ttft_ms", "p95_tpot_ms"},
                      .requests = mixed_requests(given.full() || !sweeps)};
  const EngineOptions& e = given.options.engine;
  if (!sweeps) {
    plan.variants = {{.name = "throughput", .engine = e}};
    return plan;
  }
  plan.x_label = "requests at once";
  for (const int level : levels)
    plan.variants.push_back(
        {.name = fmt::format("{}", level), .engine = e, .x = level, .max_concurrency = level});
  return plan;
}

struct Subject {
  ComparisonSubject shown;
  ComparisonPlan (*plan)(const Given&);  // nullptr: it is planned elsewhere
};

constexpr std::array kSubjects = {
    Subject{{"kv-cache", "with and without the KV cache, at growing contexts"}, plan_kv_cache},
    Subject{{"batching", "continuous beside static batching"}, plan_batching},
    Subject{{"paging", "paged beside contiguous KV cache in the same memory"}, plan_paging},
    Subject{{"prefix", "prefix cache on beside off"}, plan_prefix},
    Subject{{"shared-attention", "shared prefixes read once for all, or by each"},
            plan_shared_attention},
    Subject{{"chunking", "a long prompt among streams, in chunks of many sizes"}, nullptr},
    Subject{{"scheduling-policy", "who is admitted next"}, plan_policies},
    Subject{{"block-size", "sizes of a KV block"}, plan_block_size},
    Subject{{"max-num-seqs", "sequences that run at once"}, plan_max_num_seqs},
    Subject{{"max-num-batched-tokens", "tokens of a step"}, plan_batched_tokens},
};

constexpr auto kShownSubjects = [] {
  std::array<ComparisonSubject, kSubjects.size()> shown;
  for (size_t i = 0; i < shown.size(); ++i) shown[i] = kSubjects[i].shown;
  return shown;
}();

}  // namespace

std::span<const ComparisonSubject> comparison_subjects() { return kShownSubjects; }

Result<ComparisonPlan> plan_comparison(std::string_view subject, const ComparisonOptions& options,
                                       const ModelFacts& facts) {
  const Given given{options, facts};
  if (subject == kThroughput) return plan_throughput(given);
  for (const Subject& known : kSubjects)
    if (known.shown.name == subject && known.plan) return known.plan(given);
  return fail(ErrorCode::invalid_argument, fmt::format("there is no comparison '{}'", subject));
}

}  // namespace octavo
