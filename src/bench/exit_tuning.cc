#include "bench/exit_tuning.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "bench/median.h"
#include "kv/block_size.h"
#include "spec/exit_probe.h"

namespace octavo {
namespace {

constexpr int kTextTokens = 2048;  // of the text at most
constexpr int kBlockSize = 16;     // the least: each place has a block of its own
constexpr int kPrompts = 3;
constexpr int kPromptTokens = 64;

Result<std::vector<TokenId>> tokens_of(const std::string& text, const LoadedEngine& engine,
                                       int most) {
  const Tokenizer& tokenizer = *engine.tokenizer;
  OCTAVO_TRY(std::vector<TokenId> tokens, tokenizer.encode(text, {}));
  if (tokenizer.adds_bos() && tokenizer.bos()) tokens.insert(tokens.begin(), *tokenizer.bos());
  tokens.resize(std::min(tokens.size(), static_cast<size_t>(most)));
  return tokens;
}

// One engine and what it has generated.
struct Contender {
  std::unique_ptr<Engine> engine;
  std::vector<double> tok_s;
  std::vector<std::vector<TokenId>> answers;  // of the last run
  int64_t num_drafts = 0, num_accepted = 0;

  Result<void> run(std::span<const Request> requests) {
    double seconds = 0, tokens = 0;
    answers.clear();
    for (const Request& request : requests) {
      OCTAVO_TRY(RequestOutput output, engine->run(request));
      seconds += output.metrics.decode_s();
      tokens += output.metrics.num_generation_tokens - 1;
      num_drafts += output.metrics.num_draft_tokens;
      num_accepted += output.metrics.num_accepted_tokens;
      answers.push_back(std::move(output.outputs.front().token_ids));
    }
    tok_s.push_back(tokens / seconds);
    return {};
  }
};

std::string config_of(const ExitCandidate& candidate, bool adaptive) {
  const nlohmann::json config = {{"method", "early_exit"},
                                 {"skip_layers", candidate.skipped_layers},
                                 {"draft_confidence_threshold", candidate.prediction.threshold},
                                 {"num_speculative_tokens", candidate.prediction.num_drafts},
                                 {"adaptive", adaptive}};
  return config.dump();
}

Result<std::vector<Request>> requests_of(const LoadedEngine& engine,
                                         const ExitRunOptions& options) {
  OCTAVO_TRY(const auto tokens, tokens_of(options.text, engine, kTextTokens));
  if (std::cmp_less(tokens.size(), kPromptTokens + kPrompts))
    return fail(ErrorCode::invalid_argument,
                fmt::format("the text has {} tokens; it needs {} at least", tokens.size(),
                            kPromptTokens + kPrompts));
  std::vector<Request> requests;
  for (size_t i = 0; i < kPrompts; ++i) {
    const auto first = tokens.begin() +
                       static_cast<std::ptrdiff_t>(i * (tokens.size() - kPromptTokens) / kPrompts);
    Request& request = requests.emplace_back();
    request.prompt_token_ids.assign(first, first + kPromptTokens);
    request.params.temperature = 0;
    request.params.ignore_eos = true;
    request.params.max_tokens = options.gen_tokens;
  }
  return requests;
}

}  // namespace

Result<EngineOptions> search_engine_options(EngineOptions options, const ModelSource& model,
                                            int num_places) {
  OCTAVO_TRY(const ModelConfig config, read_model_config(model));
  options.block_size = kBlockSize;
  options.max_model_len = std::min(kTextTokens, config.context_length);
  options.max_num_seqs =
      1 + static_cast<int>(blocks_for(int64_t{num_places} * kBlockSize, options.max_model_len));
  return options;
}

Result<ExitTuning> tune_early_exit(const LoadedEngine& engine, const ExitSearchOptions& options) {
  Transformer& model = *engine.model;
  ExitTuning tuning{.num_layers = model.limits().num_layers};
  if (tuning.num_layers < 2)
    return fail(ErrorCode::unsupported, "the model has no layers that it could skip");
  OCTAVO_TRY(std::vector<TokenId> tokens, tokens_of(options.text, engine, engine.max_model_len));
  tuning.num_tokens = static_cast<int>(tokens.size());
  OCTAVO_TRY(const auto probe, ExitProbe::create(model, std::move(tokens), options.num_places,
                                                 static_cast<int>(engine.tokenizer->vocab_size())));
  tuning.costs = probe->measure_costs();
  OCTAVO_TRY(
      tuning.steps,
      search_exit({.num_layers = tuning.num_layers,
                   .costs = tuning.costs,
                   .sample = [&](std::span<const int> skipped) -> Result<std::vector<ExitSample>> {
                     return probe->sample(skipped);
                   },
                   .on_step = options.on_step}));
  tuning.chosen = best_exit(tuning.steps);
  tuning.draft_s = probe->draft_seconds(tuning.chosen.skipped_layers);
  return tuning;
}

Result<ExitRuns> run_early_exit(const LoadedEngine& engine, const ExitCandidate& candidate,
                                const ExitRunOptions& options) {
  OCTAVO_TRY(const std::vector<Request> requests, requests_of(engine, options));
  EngineOptions engine_options{.max_num_seqs = 1, .enable_prefix_caching = false};
  std::array<Contender, 3> contenders;
  auto& [plain, always, adaptive] = contenders;
  OCTAVO_TRY(plain.engine, make_engine(engine, engine_options));
  engine_options.speculative_config = config_of(candidate, false);
  OCTAVO_TRY(always.engine, make_engine(engine, engine_options));
  engine_options.speculative_config = config_of(candidate, true);
  OCTAVO_TRY(adaptive.engine, make_engine(engine, engine_options));
  for (int run = 0; run < options.runs; ++run)
    for (Contender& contender : contenders) OCTAVO_CHECK_OK(contender.run(requests));
  return ExitRuns{
      .plain_tok_s = median(plain.tok_s),
      .always_tok_s = median(always.tok_s),
      .adaptive_tok_s = median(adaptive.tok_s),
      .num_drafts = always.num_drafts,
      .num_accepted = always.num_accepted,
      .same_tokens = plain.answers == always.answers && plain.answers == adaptive.answers};
}

}  // namespace octavo
