// Serves a few requests with a model without weights and writes the metrics: once at the start and
// again for each line that it reads, after some more steps. A line "# END" follows each text.
#include <cstdio>
#include <iostream>
#include <string>
#include <utility>

#include "engine/engine_core.h"
#include "server/metrics.h"
#include "spec/ngram.h"
#include "support/stub_model.h"
#include "support/tiny_tokenizer.h"

namespace octavo {
namespace {

constexpr int kStepsPerText = 20;
constexpr int kNumSpeculativeTokens = 3;

void write(Metrics& metrics) {
  std::cout << metrics.text({.heartbeat_age_s = 0.1, .max_queue_len = 100}) << "# END\n"
            << std::flush;
}

void add_request(EngineCore& engine, Metrics& metrics, int id) {
  RequestEvents events;
  events.on_delta = [&](const ChoiceDelta&) { metrics.on_inter_token(0.001); };
  events.on_prompt_done = [&](const RequestOutput& output) { metrics.on_prompt_done(output); };
  events.on_finish = [&](RequestOutput output) { metrics.on_finish(output); };
  SamplingParams params;
  params.max_tokens = 30;
  engine.add(
      RequestId{id},
      {.prompt_token_ids = std::vector<TokenId>(40, TokenId{'a'}), .params = std::move(params)},
      std::move(events), engine.now());
}

std::unique_ptr<Speculator> make_speculator() {
  std::vector<std::unique_ptr<Drafter>> drafters;
  drafters.push_back(std::make_unique<NgramDrafter>(1, 4));
  return std::make_unique<Speculator>(
      SpeculatorOptions{.num_speculative_tokens = kNumSpeculativeTokens, .adaptive = false},
      std::move(drafters));
}

int run() {
  Metrics metrics({.model_name = "stub",
                   .max_model_len = 128,
                   .bytes_per_block = 1024,
                   .num_speculative_tokens = kNumSpeculativeTokens});
  const Tokenizer tokenizer = std::move(*Tokenizer::create(testing::tiny_byte_spec()));
  testing::StubModel model(
      static_cast<int>(tokenizer.vocab_size()), 128, 32,
      [](const auto& history, std::span<float> row) { testing::hash_logits(history, row); });
  EngineCoreOptions options;
  options.scheduler.max_num_batched_tokens = model.limits().max_num_batched_tokens;
  options.scheduler.max_num_seqs = 4;
  options.on_step = [&](const StepReport& report) { metrics.on_step(report); };
  options.speculator = make_speculator();
  const auto engine = EngineCore::create(model, tokenizer, std::move(options));
  if (!engine) return std::fprintf(stderr, "%s\n", engine.error().message.c_str()), 1;
  metrics.on_state((*engine)->scheduler());
  write(metrics);
  int id = 0;
  for (std::string line; std::getline(std::cin, line); write(metrics)) {
    add_request(**engine, metrics, ++id);
    metrics.on_http("/v1/completions", 200, 0.01);
    for (int i = 0; i < kStepsPerText; ++i) (*engine)->step();
  }
  return 0;
}

}  // namespace
}  // namespace octavo

int main() { return octavo::run(); }
