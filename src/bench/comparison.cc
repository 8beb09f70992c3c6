#include "bench/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "bench/figures.h"
#include "bench/load_for_run.h"
#include "bench/runner.h"
#include "bench/stream_gaps.h"
#include "kv/block_size.h"

namespace octavo {
namespace {

struct Variant {
  std::string name;
  EngineOptions engine;
};

struct Plan {
  std::string title = {};
  SyntheticSpec requests = {};
  int max_concurrency = 0;
  int block_map_rows = 0;
  std::vector<Variant> variants = {};
};

Lengths parsed(std::string_view text) { return std::move(*Lengths::parse("lengths", text)); }

// --- the subjects: what runs beside what ----------------------------------------------------

Plan plan_kv_cache(const EngineOptions& engine, int max_model_len) {
  Plan plan{.title = "With the KV cache beside without"};
  plan.requests = {.num_requests = 8,
                   .prompt = parsed(max_model_len > 520 ? "64-512" : "16-64"),
                   .output = Lengths::fixed(8)};
  plan.max_concurrency = 1;
  EngineOptions e = engine;
  e.enable_prefix_caching = false;
  e.kv_cache = false;
  plan.variants.push_back({"without", e});
  e.kv_cache = true;
  plan.variants.push_back({"with", e});
  return plan;
}

Plan plan_batching(const EngineOptions& engine) {
  Plan plan{.title = "Continuous beside static batching"};
  plan.requests = {.num_requests = 6 * engine.max_num_seqs,
                   .prompt = parsed("16-64"),
                   .output = parsed("80%:20-60+20%:300-400")};
  EngineOptions e = engine;
  e.scheduling_mode = SchedulingMode::static_batch;
  plan.variants.push_back({"static", e});
  e.pad_finished = false;
  plan.variants.push_back({"static, padding skipped", e});
  e.scheduling_mode = SchedulingMode::continuous;
  plan.variants.push_back({"continuous", e});
  return plan;
}

// Memory for so many whole contexts, however it is given out.
constexpr int kContexts = 4;

Plan plan_paging(const EngineOptions& engine, int64_t bytes_per_block, int max_model_len) {
  Plan plan{.title = "Paged beside contiguous KV cache in the same memory"};
  EngineOptions e = engine;
  if (e.max_model_len == 0) e.max_model_len = std::min(max_model_len, 4096);
  if (e.kv_cache_memory_bytes == 0)
    e.kv_cache_memory_bytes =
        blocks_for(e.max_model_len, e.block_size) * kContexts * bytes_per_block;
  const int mean = e.max_model_len / 8;
  plan.requests = {.num_requests = 96,
                   .prompt = *Lengths::lognormal(mean * 0.75, e.max_model_len / 2),
                   .output = *Lengths::lognormal(mean * 0.25, e.max_model_len / 4)};
  plan.block_map_rows = 60;
  e.kv_layout = KvCacheLayout::contiguous;
  plan.variants.push_back({"contiguous", e});
  e.kv_layout = KvCacheLayout::paged;
  plan.variants.push_back({"paged", e});
  return plan;
}

Plan plan_prefix(const EngineOptions& engine) {
  Plan plan{.title = "Prefix cache on beside off"};
  plan.requests = {.num_requests = 64,
                   .prompt = Lengths::fixed(64),
                   .output = Lengths::fixed(64),
                   .shared_tokens = 512};
  plan.max_concurrency = engine.max_num_seqs;
  EngineOptions e = engine;
  e.enable_prefix_caching = false;
  plan.variants.push_back({"off", e});
  e.enable_prefix_caching = true;
  plan.variants.push_back({"on", e});
  return plan;
}

Plan plan_shared_attention(const EngineOptions& engine) {
  Plan plan{.title = "Shared prefixes read once for all beside once for each"};
  plan.requests = {.num_requests = engine.max_num_seqs,
                   .prompt = Lengths::fixed(16),
                   .output = Lengths::fixed(64),
                   .shared_tokens = 2048};
  EngineOptions e = engine;
  e.shared_prefix_attention = false;
  plan.variants.push_back({"read by each", e});
  e.shared_prefix_attention = true;
  plan.variants.push_back({"read once", e});
  return plan;
}

// What most users send: prompts and answers of all lengths.
SyntheticSpec mixed_requests() {
  return {.num_requests = 64, .prompt = parsed("32-512"), .output = parsed("16-128")};
}

template <class Set>
Plan plan_values(std::string title, const EngineOptions& engine, std::span<const int> values,
                 Set set) {
  Plan plan{.title = std::move(title), .requests = mixed_requests()};
  for (const int value : values) {
    EngineOptions e = engine;
    set(e, value);
    plan.variants.push_back({fmt::format("{}", value), e});
  }
  return plan;
}

Plan plan_block_size(const EngineOptions& engine) {
  return plan_values("Sizes of a KV block", engine, kBlockSizes,
                     [](EngineOptions& e, int value) { e.block_size = value; });
}

Plan plan_max_num_seqs(const EngineOptions& engine) {
  constexpr std::array values = {1, 2, 4, 8, 16, 32, 64};
  return plan_values("Sequences that run at once", engine, values, [](EngineOptions& e, int value) {
    e.max_num_seqs = value;
    e.max_num_batched_tokens = std::max(e.max_num_batched_tokens, value);
  });
}

Plan plan_batched_tokens(const EngineOptions& engine) {
  constexpr std::array values = {64, 128, 256, 512, 1024, 2048};
  return plan_values("Tokens of a step", engine, values, [](EngineOptions& e, int value) {
    e.max_num_batched_tokens = value;
    e.max_num_seqs = std::min(e.max_num_seqs, value);
  });
}

Plan plan_policies(const EngineOptions& engine) {
  Plan plan{.title = "Scheduling policies"};
  plan.requests = {.num_requests = 96,
                   .prompt = parsed("80%:16-64+20%:512-1024"),
                   .output = parsed("16-64"),
                   .shared_tokens = 256,
                   .groups = 4,
                   .priorities = 2};
  constexpr std::array<std::pair<const char*, SchedulingPolicy>, 4> policies = {
      {{"fcfs", SchedulingPolicy::fcfs},
       {"priority", SchedulingPolicy::priority},
       {"shortest-prefill-first", SchedulingPolicy::shortest_prefill_first},
       {"longest-prefix-match", SchedulingPolicy::longest_prefix_match}}};
  for (const auto& [name, policy] : policies) {
    EngineOptions e = engine;
    e.scheduling_policy = policy;
    plan.variants.push_back({name, e});
  }
  return plan;
}

Plan plan_throughput(const EngineOptions& engine) {
  return {
      .title = "Throughput", .requests = mixed_requests(), .variants = {{"throughput", engine}}};
}

// --- running them ---------------------------------------------------------------------------

class Comparison {
 public:
  explicit Comparison(const ComparisonOptions& options) : options_(options) {}

  Result<BenchResult> run(const Plan& plan, const ModelFacts& facts) {
    result_.title = plan.title;
    result_.model = options_.engine.model;
    OCTAVO_TRY(workload_, workload_of(plan, facts.tokens));
    OCTAVO_CHECK_OK(check_lengths(workload_, facts.max_model_len));
    const int total = options_.repeat * static_cast<int>(plan.variants.size());
    std::vector<std::vector<RunResult>> runs(plan.variants.size());
    int done = 0;
    for (int round = 0; round < options_.repeat; ++round)
      for (size_t i = 0; i < plan.variants.size(); ++i) {
        if (options_.on_progress) options_.on_progress(plan.variants[i].name, done++, total);
        OCTAVO_TRY(RunResult run, run_variant(plan, plan.variants[i]));
        runs[i].push_back(std::move(run));
      }
    for (auto& of_variant : runs) result_.runs.push_back(median_run(std::move(of_variant)));
    return std::move(result_);
  }

  const Workload& workload() const { return workload_; }

 private:
  Result<Workload> workload_of(const Plan& plan, TokenRange tokens) const {
    if (options_.trace) return make_workload(*options_.trace, 0, tokens);
    return make_workload(options_.requests.value_or(plan.requests), tokens);
  }

  Result<RunResult> run_variant(const Plan& plan, const Variant& variant) {
    OCTAVO_TRY(const LoadedEngine loaded, load_for(variant.engine, workload_));
    RunnerOptions runner{.name = variant.name,
                         .max_concurrency = options_.max_concurrency.value_or(plan.max_concurrency),
                         .block_map_rows = plan.block_map_rows};
    OCTAVO_TRY(RunResult run, run_workload(loaded, variant.engine, workload_, runner));
    for (const RequestRecord& record : run.requests)
      if (!record.completed())
        return fail(ErrorCode::invalid_argument,
                    fmt::format("a request of {} prompt tokens failed in the run '{}'",
                                record.prompt_tokens, variant.name));
    run.settings = settings_of(variant.engine);
    return run;
  }

  static RunResult median_run(std::vector<RunResult> runs) {
    std::sort(runs.begin(), runs.end(), [](const RunResult& a, const RunResult& b) {
      return figures_of(a).output_throughput < figures_of(b).output_throughput;
    });
    return std::move(runs[(runs.size() - 1) / 2]);
  }

  const ComparisonOptions& options_;
  Workload workload_;
  BenchResult result_;
};

// Steps of static batches, each as long as its longest answer, over those that full batches of the
// same answers would take, which cannot be fewer than the longest of all has.
double static_bound(const Workload& workload, int batch) {
  double steps = 0, tokens = 0;
  int longest_of_all = 0;
  for (size_t i = 0; i < workload.size(); i += static_cast<size_t>(batch)) {
    int longest = 0;
    for (size_t k = i; k < std::min(workload.size(), i + static_cast<size_t>(batch)); ++k) {
      longest = std::max(longest, workload[k].output_tokens);
      tokens += workload[k].output_tokens;
    }
    steps += longest;
    longest_of_all = std::max(longest_of_all, longest);
  }
  return steps / std::max(tokens / batch, static_cast<double>(longest_of_all));
}

void note_batching(BenchResult& result, const Workload& workload, int batch) {
  const double bound = static_bound(workload, batch);
  const double ratio = figures_of(result.runs.back()).output_throughput /
                       figures_of(result.runs.front()).output_throughput;
  result.notes.push_back(fmt::format(
      "Static batches, each as long as its longest answer, take {:.2f} times the steps of full "
      "batches: so much faster could continuous batching be, if steps took the same time. It is "
      "{:.2f} x faster, {:.0f} % of that.",
      bound, ratio, 100 * ratio / bound));
  result.notes.push_back(
      "Static batches compute finished answers on as padding, which is how it is usually done; the "
      "second run leaves them out of the steps and still waits for the longest.");
}

constexpr std::array kSubjects = {
    ComparisonSubject{"kv-cache", "with and without the KV cache, at growing contexts"},
    ComparisonSubject{"batching", "continuous beside static batching"},
    ComparisonSubject{"paging", "paged beside contiguous KV cache in the same memory"},
    ComparisonSubject{"prefix", "prefix cache on beside off"},
    ComparisonSubject{"shared-attention", "shared prefixes read once for all, or by each"},
    ComparisonSubject{"chunking", "a long prompt among streams, in chunks of many sizes"},
    ComparisonSubject{"scheduling-policy", "who is admitted next"},
    ComparisonSubject{"block-size", "sizes of a KV block"},
    ComparisonSubject{"max-num-seqs", "sequences that run at once"},
    ComparisonSubject{"max-num-batched-tokens", "tokens of a step"},
};

}  // namespace

std::span<const ComparisonSubject> comparison_subjects() { return kSubjects; }

Result<BenchResult> compare(std::string_view subject, const ComparisonOptions& options) {
  OCTAVO_TRY(const ModelFacts facts, model_facts(options.engine));
  if (subject == "chunking") return compare_chunking(options, facts);
  Plan plan;
  if (subject == kThroughput)
    plan = plan_throughput(options.engine);
  else if (subject == "kv-cache")
    plan = plan_kv_cache(options.engine, facts.max_model_len);
  else if (subject == "batching")
    plan = plan_batching(options.engine);
  else if (subject == "paging")
    plan = plan_paging(options.engine, facts.kv_bytes_per_block, facts.max_model_len);
  else if (subject == "prefix")
    plan = plan_prefix(options.engine);
  else if (subject == "shared-attention")
    plan = plan_shared_attention(options.engine);
  else if (subject == "scheduling-policy")
    plan = plan_policies(options.engine);
  else if (subject == "block-size")
    plan = plan_block_size(options.engine);
  else if (subject == "max-num-seqs")
    plan = plan_max_num_seqs(options.engine);
  else if (subject == "max-num-batched-tokens")
    plan = plan_batched_tokens(options.engine);
  else
    return fail(ErrorCode::invalid_argument, fmt::format("there is no comparison '{}'", subject));
  Comparison comparison(options);
  OCTAVO_TRY(BenchResult result, comparison.run(plan, facts));
  if (subject == "batching")
    note_batching(result, comparison.workload(), options.engine.max_num_seqs);
  return result;
}

}  // namespace octavo
