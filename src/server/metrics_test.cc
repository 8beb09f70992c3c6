#include "server/metrics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>
#include <thread>

#include "engine/engine.h"
#include "server/metric_buckets.h"
#include "server/process_stats.h"
#include "support/stub_model.h"
#include "support/tiny_tokenizer.h"

namespace octavo {
namespace {

// A metrics text as a reader takes it: values by name with labels, types by name.
struct Reading {
  std::map<std::string, double> values;
  std::map<std::string, std::string> types;
  std::vector<std::string> order;  // names with labels
  std::multiset<std::string> type_lines;

  explicit Reading(const std::string& text) {
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) {
      if (line.starts_with("# TYPE ")) {
        const size_t blank = line.find(' ', 7);
        types[line.substr(7, blank - 7)] = line.substr(blank + 1);
        type_lines.insert(line.substr(7, blank - 7));
      } else if (!line.empty() && line[0] != '#') {
        const size_t blank = line.rfind(' ');
        EXPECT_TRUE(values.emplace(line.substr(0, blank), std::stod(line.substr(blank + 1))).second)
            << "twice: " << line;
        order.push_back(line.substr(0, blank));
      }
    }
  }

  // Of the one series of this name, whose labels contain `label`.
  double at(const std::string& name, const std::string& label = "") const {
    double found = -1;
    int count = 0;
    for (const auto& [series, value] : values)
      if ((series == name || series.starts_with(name + "{")) &&
          series.find(label) != std::string::npos) {
        found = value;
        ++count;
      }
    EXPECT_EQ(count, 1) << name << " with " << label;
    return found;
  }
};

MetricsOptions options(int num_speculative_tokens = 0) {
  return {.model_name = "tiny",
          .max_model_len = 128,
          .bytes_per_block = 100,
          .isa = "ref",
          .num_speculative_tokens = num_speculative_tokens};
}

Tokenizer tiny_tokenizer() { return std::move(*Tokenizer::create(testing::tiny_byte_spec())); }

// Guesses what the model of Rig says, and once in a while too much.
class ZDrafter final : public Drafter {
 public:
  std::string_view name() const override { return "z"; }
  void propose(std::span<DraftTask* const> tasks) override {
    for (DraftTask* task : tasks) {
      task->draft.assign(static_cast<size_t>(std::min(task->max_tokens, 2)), TokenId{'z'});
      if (task->max_tokens > 2) task->draft.push_back(TokenId{'y'});
    }
  }
  void finish(const FinishedSequence&) override {}
};

std::unique_ptr<Speculator> make_speculator(const SpeculatorOptions& options) {
  std::vector<std::unique_ptr<Drafter>> drafters;
  drafters.push_back(std::make_unique<ZDrafter>());
  return std::make_unique<Speculator>(options, std::move(drafters));
}

// An engine whose model gives one token a step, and whose clock a test sets.
struct Rig {
  explicit Rig(std::optional<SpeculatorOptions> speculation = {})
      : metrics(options(speculation ? speculation->num_speculative_tokens : 0)),
        tokenizer(tiny_tokenizer()),
        model(static_cast<int>(tokenizer.vocab_size()), 128, 8,
              [](const std::vector<TokenId>&, std::span<float> row) { row['z'] = 10; }) {
    EngineCoreOptions core;
    core.scheduler.max_num_batched_tokens = model.limits().max_num_batched_tokens;
    core.scheduler.max_num_seqs = 4;
    core.clock = [this] { return now_s; };
    if (speculation) core.speculator = make_speculator(*speculation);
    core.on_step = [this](const StepReport& report) { metrics.on_step(report); };
    core.on_idle = [this](const EngineCore& idle) { metrics.on_state(idle); };
    engine = std::move(*EngineCore::create(model, tokenizer, std::move(core)));
    metrics.on_state(engine->scheduler());
  }

  void add(int id, size_t prompt_length, std::optional<int> max_tokens, int n = 1) {
    SamplingParams params;
    params.n = n;
    params.temperature = 0;
    params.max_tokens = max_tokens;
    RequestEvents events;
    events.on_prompt_done = [this](const RequestOutput& output) { metrics.on_prompt_done(output); };
    events.on_finish = [this](RequestOutput output) { metrics.on_finish(output); };
    engine->add(
        RequestId{id},
        {.prompt_token_ids = std::vector<TokenId>(prompt_length, TokenId{'a'}), .params = params},
        std::move(events), now_s);
  }

  Reading read() { return Reading(metrics.text({.max_queue_len = 7})); }

  double now_s = 1;
  Metrics metrics;
  Tokenizer tokenizer;
  testing::StubModel model;
  std::unique_ptr<EngineCore> engine;
};

// The first token comes with the prompt; then zz of zzy comes true, with a z of the model's own.
TEST(Metrics, Guesses) {
  Rig rig(SpeculatorOptions{.num_speculative_tokens = 3, .adaptive = false});
  EXPECT_EQ(rig.read().at("vllm:spec_decode_num_drafts_total"), 0);
  rig.add(1, 5, 10);
  while (rig.engine->step()) rig.now_s += 0.01;
  const Reading reading = rig.read();
  EXPECT_EQ(reading.at("vllm:spec_decode_num_drafts_total"), 3);
  EXPECT_EQ(reading.at("vllm:spec_decode_num_draft_tokens_total"), 3 + 3 + 2);
  EXPECT_EQ(reading.at("vllm:spec_decode_num_accepted_tokens_total"), 6);
  const std::string per_pos = "vllm:spec_decode_num_accepted_tokens_per_pos_total";
  EXPECT_EQ(reading.at(per_pos, "position=\"0\""), 3);
  EXPECT_EQ(reading.at(per_pos, "position=\"1\""), 3);
  EXPECT_EQ(reading.at(per_pos, "position=\"2\""), 0);
  EXPECT_EQ(reading.at("octavo:spec_decode_draft_seconds_total"), 0);  // the clock stands still
  EXPECT_EQ(reading.at("octavo:spec_decode_verify_seconds_total"), 0);
  EXPECT_EQ(reading.at("vllm:generation_tokens_total"), 10);
  EXPECT_EQ(reading.at("octavo:steps_total", "kind=\"decode\""), 3);
  EXPECT_EQ(reading.at("vllm:iteration_tokens_total_sum"), 5 + 10);
  EXPECT_EQ(reading.at("vllm:iteration_tokens_total_count"), 4);
}

TEST(Metrics, NothingOfGuessesWhereThereAreNone) {
  Rig rig;
  EXPECT_EQ(rig.metrics.text({}).find("spec_decode"), std::string::npos);
}

TEST(Metrics, EverySeriesIsThereFromTheStart) {
  Rig rig;
  const Reading before = rig.read();
  rig.add(1, 20, 3);
  while (rig.engine->step()) rig.now_s += 0.01;
  rig.metrics.on_inter_token(0.01);
  rig.metrics.on_rejection("max_queue_len");
  rig.metrics.on_http("/v1/completions", 200, 0.1);
  const Reading after = rig.read();
  EXPECT_EQ(before.order.size(), after.order.size());
  EXPECT_EQ(before.at("vllm:generation_tokens_total"), 0);
  EXPECT_EQ(before.at("octavo:kv_blocks", "state=\"free\""), 8);
  EXPECT_EQ(before.at("octavo:kv_bytes", "state=\"free\""), 800);
  EXPECT_EQ(before.at("octavo:max_queue_len"), 7);
}

TEST(Metrics, EachNameHasOneTypeAndNamesSayTheirUnit) {
  Rig rig;
  const Reading reading = rig.read();
  for (const auto& [name, type] : reading.types) {
    EXPECT_EQ(reading.type_lines.count(name), 1u) << name;
    if (type == "counter") {
      EXPECT_TRUE(name.ends_with("_total")) << name;
    }
    if (type == "gauge") {
      EXPECT_FALSE(name.ends_with("_total")) << name;
    }
  }
  EXPECT_EQ(reading.types.at("vllm:iteration_tokens_total"), "histogram");
}

TEST(Metrics, BucketsAreCumulativeAndTheLastHoldsAll) {
  Rig rig;
  for (const double gap : {0.0001, 0.004, 0.3, 1000.0}) rig.metrics.on_inter_token(gap);
  const Reading reading = rig.read();
  for (const auto& [name, type] : reading.types) {
    if (type != "histogram") continue;
    double before = 0;
    for (const std::string& series : reading.order) {
      if (series.starts_with(name + "_sum") || series.starts_with(name + "_count")) before = 0;
      if (!series.starts_with(name + "_bucket")) continue;
      EXPECT_GE(reading.values.at(series), before) << series;
      before = reading.values.at(series);
    }
  }
  const std::string name = "vllm:inter_token_latency_seconds";
  EXPECT_EQ(reading.at(name + "_bucket", "le=\"+Inf\""), 4);
  EXPECT_EQ(reading.at(name + "_bucket", "le=\"0.004\""), 2);
  EXPECT_EQ(reading.at(name + "_bucket", "le=\"0.005\""), 2);
  EXPECT_EQ(reading.at(name + "_bucket", "le=\"80\""), 3);
  EXPECT_EQ(reading.at(name + "_count"), 4);
  EXPECT_DOUBLE_EQ(reading.at("vllm:time_per_output_token_seconds_sum"), 1000.3041);
}

// The first token after half a second, nine more, each after 50 ms.
TEST(Metrics, TimesAreThoseOfTheEnginesClock) {
  Rig rig;
  rig.add(1, 5, 10);
  rig.now_s = 1.25;
  int step = 0;
  // The clock stands still in a step, so each begins when its token is to be there.
  do rig.now_s = 1.5 + 0.05 * step++;
  while (rig.engine->step());
  const Reading reading = rig.read();
  EXPECT_EQ(reading.at("vllm:time_to_first_token_seconds_count"), 1);
  EXPECT_NEAR(reading.at("vllm:time_to_first_token_seconds_sum"), 0.5, 1e-9);
  EXPECT_NEAR(reading.at("vllm:e2e_request_latency_seconds_sum"), 0.95, 1e-9);
  EXPECT_NEAR(reading.at("vllm:request_decode_time_seconds_sum"), 0.45, 1e-9);
  EXPECT_NEAR(reading.at("vllm:request_time_per_output_token_seconds_sum"), 0.05, 1e-9);
  EXPECT_NEAR(reading.at("octavo:queue_wait_seconds_sum"), 0.5, 1e-9);
  EXPECT_EQ(reading.at("vllm:generation_tokens_total"), 10);
  EXPECT_EQ(reading.at("vllm:prompt_tokens_total"), 5);
  EXPECT_EQ(reading.at("vllm:request_success_total", "finished_reason=\"length\""), 1);
  EXPECT_EQ(reading.at("octavo:steps_total", "kind=\"prefill\""), 1);
  EXPECT_EQ(reading.at("octavo:steps_total", "kind=\"decode\""), 9);
  EXPECT_EQ(reading.at("octavo:step_seconds_count", "kind=\"decode\""), 9);
  EXPECT_EQ(reading.at("vllm:iteration_tokens_total_sum"), 5 + 10);
  EXPECT_EQ(reading.at("vllm:iteration_tokens_total_count"), 10);
}

// What vLLM shows after the same requests: ten in turn, of nine tokens, which answer with ten.
TEST(Metrics, FiguresAreThoseOfVllm) {
  Rig rig;
  for (int i = 1; i <= 10; ++i) {
    rig.add(i, 9, 10);
    while (rig.engine->step()) rig.now_s += 0.01;
  }
  const std::pair<const char*, double> expected[] = {
      {"prompt_tokens_total", 90},
      {"generation_tokens_total", 100},
      {"iteration_tokens_total_sum", 190},
      {"iteration_tokens_total_count", 100},
      {"request_prompt_tokens_sum", 90},
      {"request_generation_tokens_sum", 100},
      {"request_max_num_generation_tokens_sum", 100},
      {"request_params_n_sum", 10},
      {"request_params_n_count", 10},
      {"request_params_max_tokens_sum", 100},
      {"request_params_max_tokens_count", 10},
      {"request_num_preemptions_count", 10},
      {"request_prefill_kv_computed_tokens_count", 10},
      {"time_to_first_token_seconds_count", 10},
      {"request_time_per_output_token_seconds_count", 10},
      {"e2e_request_latency_seconds_count", 10},
      {"request_queue_time_seconds_count", 10},
      {"request_inference_time_seconds_count", 10},
      {"request_prefill_time_seconds_count", 10},
      {"request_decode_time_seconds_count", 10},
      {"prefix_cache_queries_total", 90},
      {"num_preemptions_total", 0},
      {"num_requests_running", 0},
      {"num_requests_waiting", 0},
      {"kv_cache_usage_perc", 0},
  };
  const Reading reading = rig.read();
  for (const auto& [name, value] : expected)
    EXPECT_EQ(reading.at(std::string("vllm:") + name), value) << name;
  EXPECT_EQ(reading.at("vllm:request_success_total", "finished_reason=\"length\""), 10);
  const auto from = [&](const char* source) {
    return reading.at("vllm:prompt_tokens_by_source_total", source);
  };
  EXPECT_EQ(from("local_compute") + from("local_cache_hit"), 90);
  EXPECT_EQ(from("external_kv_transfer"), 0);
  EXPECT_EQ(from("local_cache_hit"), reading.at("vllm:prompt_tokens_cached_total"));
}

TEST(Metrics, WithoutMaxTokensTheContextIsTheLimit) {
  Rig rig;
  rig.add(1, 20, std::nullopt);
  while (rig.engine->step()) {
  }
  EXPECT_EQ(rig.read().at("vllm:request_params_max_tokens_sum"), 128 - 20);
}

TEST(Metrics, TokensOfAllChoicesCountAndPromptsOnce) {
  Rig rig;
  rig.add(1, 20, 4, 3);
  rig.add(2, 9, 0);
  while (rig.engine->step()) {
  }
  const Reading reading = rig.read();
  EXPECT_EQ(reading.at("vllm:generation_tokens_total"), 12);
  EXPECT_EQ(reading.at("vllm:prompt_tokens_total"), 29);
  EXPECT_EQ(reading.at("vllm:request_generation_tokens_sum"), 12);
  EXPECT_EQ(reading.at("vllm:request_max_num_generation_tokens_sum"), 4);
  EXPECT_EQ(reading.at("vllm:request_params_n_sum"), 4);
  // One was asked for no token: it has no time to the first.
  EXPECT_EQ(reading.at("vllm:time_to_first_token_seconds_count"), 1);
  EXPECT_EQ(reading.at("vllm:request_success_total", "finished_reason=\"length\""), 2);
}

TEST(Metrics, TheCacheIsSeenUnderOldAndNewNames) {
  Rig rig;
  rig.add(1, 40, 2);
  while (rig.engine->step()) {
  }
  rig.add(2, 40, 50);
  for (int i = 0; i < 3; ++i) rig.engine->step();
  const Reading during = rig.read();
  EXPECT_EQ(during.at("vllm:num_requests_running"), 1);
  EXPECT_GT(during.at("vllm:kv_cache_usage_perc"), 0);
  EXPECT_EQ(during.at("vllm:kv_cache_usage_perc"), during.at("vllm:gpu_cache_usage_perc"));
  EXPECT_EQ(during.at("vllm:prefix_cache_queries_total"), 80);
  EXPECT_EQ(during.at("vllm:prefix_cache_hits_total"), 39);
  EXPECT_EQ(during.at("vllm:gpu_prefix_cache_hits_total"), 39);
  EXPECT_EQ(during.at("vllm:prompt_tokens_cached_total"), 39);
  EXPECT_EQ(during.at("vllm:prompt_tokens_by_source_total", "local_compute"), 41);
  EXPECT_EQ(during.at("octavo:prefix_misses_total", "not_seen"), 1);
  EXPECT_EQ(during.at("octavo:kv_reserved_tokens"), 48);
  EXPECT_NEAR(during.at("octavo:kv_wasted_ratio"), 1 - during.at("octavo:kv_stored_tokens") / 48,
              1e-12);
  EXPECT_GT(during.at("octavo:prefix_tree_blocks"), 0);
}

TEST(Metrics, ARequestThatIsCutOffLeavesNothingBehind) {
  Rig rig;
  rig.add(1, 20, 50);
  rig.engine->step();
  rig.engine->cancel(RequestId{1});
  EXPECT_EQ(rig.read().at("vllm:num_requests_running"), 1);  // nobody has told yet
  EXPECT_FALSE(rig.engine->step());
  const Reading reading = rig.read();
  EXPECT_EQ(reading.at("vllm:num_requests_running"), 0);
  EXPECT_EQ(reading.at("octavo:kv_blocks", "held"), 0);
  EXPECT_EQ(reading.at("vllm:request_success_total", "finished_reason=\"abort\""), 1);
  EXPECT_EQ(reading.at("vllm:e2e_request_latency_seconds_count"), 0);
}

TEST(Metrics, LabelsAreBounded) {
  Metrics metrics(options());
  metrics.on_rejection("something a client wrote");
  for (int i = 0; i < 1000; ++i) metrics.on_http("/route" + std::to_string(i), 1000 + i, 0.1);
  const std::string text = metrics.text({});
  EXPECT_EQ(text.find("a client wrote"), std::string::npos);
  const Reading reading(text);
  EXPECT_EQ(reading.at("octavo:rejections_total", "reason=\"other\""), 1);
  EXPECT_EQ(reading.at("http_requests_total", "handler=\"other\",status=\"other\""), 1000 - 46);
  EXPECT_LT(reading.values.size(), 2500u);
}

TEST(Metrics, ModelNamesAreEscaped) {
  Metrics metrics({.model_name = "a\"b\\c\nd", .max_model_len = 10});
  EXPECT_NE(metrics.text({}).find(R"(model_name="a\"b\\c\nd")"), std::string::npos);
}

TEST(Metrics, ManyThreadsAtOnce) {
  Metrics metrics(options());
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&] {
        for (int i = 0; i < 500; ++i) {
          metrics.on_inter_token(0.001);
          metrics.on_http("/v1/completions", 200, 0.01);
          if (i % 100 == 0) metrics.text({});
        }
      });
  }
  const Reading reading(metrics.text({}));
  EXPECT_EQ(reading.at("vllm:inter_token_latency_seconds_count"), 2000);
  EXPECT_EQ(reading.at("http_requests_total", "handler=\"/v1/completions\",status=\"200\""), 2000);
}

TEST(MetricBuckets, AscendAndContainVllms) {
  const auto contains = [](const buckets::Boundaries& ours, const buckets::Boundaries& vllms) {
    EXPECT_TRUE(std::is_sorted(ours.begin(), ours.end(), std::less_equal<>()));
    for (const double boundary : vllms)
      EXPECT_TRUE(std::binary_search(ours.begin(), ours.end(), boundary)) << boundary;
  };
  contains(buckets::first_token(), {.001, .005, .01, .02, .04, .06, .08, .1, .25, .5,  .75,
                                    1,    2.5,  5,   7.5, 10,  20,  40,  80, 160, 640, 2560});
  contains(buckets::inter_token(),
           {.01, .025, .05, .075, .1, .15, .2, .3, .4, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80});
  contains(buckets::request(), {.3, .5, .8, 1,  1.5, 2,   2.5, 5,   10,   15,  20,
                                30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680});
  contains(buckets::iteration_tokens(), {1, 8, 16, 32, 64, 128, 256, 512, 1024, 16384});
  EXPECT_EQ(buckets::tokens_up_to(60), (buckets::Boundaries{1, 2, 5, 10, 20, 50}));
  EXPECT_EQ(buckets::tokens_up_to(0), (buckets::Boundaries{1}));
}

TEST(ProcessStats, ReadsWhatTheSystemWrites) {
  ProcessStats stats;
  read_stat("12 (a) b) c) S 1 2 3 4 5 6 7 8 9 10 150 50 0 0 20 0 9 0 300 4096 77", 100, 1000,
            stats);
  EXPECT_EQ(stats.cpu_s, 2);
  EXPECT_EQ(stats.num_threads, 9);
  EXPECT_EQ(stats.start_time_s, 1003);
  EXPECT_EQ(stats.virtual_bytes, 4096);
  read_status("VmRSS:\t  8 kB\nRssAnon:\t 4 kB\nVmSwap:\t 0 kB\n", stats);
  EXPECT_EQ(stats.resident_bytes, 8192);
  EXPECT_EQ(stats.anonymous_bytes, 4096);
  for (const char* broken : {"", "12 (x", "12 (x) ", "12 (x) S 1 2"}) {
    ProcessStats none;
    read_stat(broken, 100, 0, none);
    EXPECT_EQ(none.cpu_s, 0) << broken;
  }
}

TEST(ProcessStats, OfThisProcess) {
  const ProcessStats stats = process_stats();
  EXPECT_GT(stats.resident_bytes, 1 << 20);
  EXPECT_GE(stats.num_open_files, 3);
  EXPECT_GE(stats.num_threads, 1);
  EXPECT_GT(stats.start_time_s, 1e9);
  EXPECT_GT(stats.max_open_files, 0);
}

}  // namespace
}  // namespace octavo
