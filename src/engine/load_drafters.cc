#include "engine/load_drafters.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "engine/catalog.h"
#include "engine/exit_plan.h"
#include "formats/open_model.h"
#include "formats/quote.h"
#include "formats/weight_types.h"
#include "spec/draft_model.h"
#include "spec/ngram.h"
#include "spec/prediction.h"

namespace octavo {
namespace {

Result<void> check_same_tokens(const Tokenizer& draft, const Tokenizer& tokenizer,
                               const std::string& model) {
  const auto refuse = [&](std::string_view why) {
    return fail(
        ErrorCode::invalid_argument,
        fmt::format("the draft model {} {}; take one with the same vocabulary", quote(model), why));
  };
  if (draft.vocab_size() != tokenizer.vocab_size())
    return refuse(
        fmt::format("has {} tokens and the model {}", draft.vocab_size(), tokenizer.vocab_size()));
  for (size_t i = 0; i < tokenizer.vocab_size(); ++i) {
    const TokenId id{static_cast<int32_t>(i)};
    if (draft.piece(id) != tokenizer.piece(id))
      return refuse(fmt::format("has another token {}: {} instead of {}", i, quote(draft.piece(id)),
                                quote(tokenizer.piece(id))));
  }
  return {};
}

// What the config says of it goes before what was found for the model.
EarlyExitOptions apply(const SpeculativeConfig& config, EarlyExitOptions options) {
  if (config.skip_layers) options.skipped_layers = *config.skip_layers;
  if (config.draft_confidence_threshold)
    options.confidence_threshold = *config.draft_confidence_threshold;
  std::ranges::sort(options.skipped_layers);
  return options;
}

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Result<DraftSource> open_source(const std::string& model, const EngineOptions& options) {
  DraftSource draft;
  OCTAVO_TRY(const std::string path, resolve_model(model));
  OCTAVO_TRY(const WeightTypes types, weight_types(options.dtype, options.quantization));
  OCTAVO_TRY(draft.file, open_model(path, types));
  OCTAVO_TRY(draft.config, read_model_config(*draft.file));
  return draft;
}

}  // namespace

Result<DraftSource> open_draft_model(const std::string& model, const EngineOptions& options,
                                     const Tokenizer& tokenizer) {
  auto draft = open_source(model, options);
  if (!draft)
    return fail(draft.error().code,
                fmt::format("the draft model {}: {}", quote(model), draft.error().message));
  if (draft->config.architecture->encoder)
    return fail(
        ErrorCode::invalid_argument,
        fmt::format("the draft model {} is an encoder, which guesses nothing; take one that "
                    "writes text",
                    quote(model)));
  OCTAVO_TRY(TokenizerSpec spec, draft->file->tokenizer());
  OCTAVO_TRY(const Tokenizer draft_tokenizer, Tokenizer::create(std::move(spec)));
  OCTAVO_CHECK_OK(check_same_tokens(draft_tokenizer, tokenizer, model));
  return draft;
}

Result<EarlyExitOptions> early_exit_options(const SpeculativeConfig& config,
                                            const std::string& folder, const ModelSource& model,
                                            int num_layers) {
  EarlyExitOptions options;
  if (!config.skip_layers) {
    OCTAVO_TRY(auto found, find_exit_plan(folder, model));
    if (!found)
      return fail(ErrorCode::not_found,
                  "--speculative-config: early_exit does not know which layers of this model to "
                  "skip; run `octavo tune early-exit MODEL` once, or name them in \"skip_layers\"");
    options = std::move(*found);
  }
  if (auto checked = check_skipped_layers(apply(config, options).skipped_layers, num_layers);
      !checked)
    return fail(checked.error().code, "--speculative-config: " + checked.error().message);
  return options;
}

Result<std::unique_ptr<Speculator>> make_speculator(const SpeculativeConfig& config,
                                                    const DraftingModels& models, int num_tokens) {
  const ModelLimits& limits = models.model.limits();
  if (config.methods.empty()) return std::unique_ptr<Speculator>();
  std::vector<std::unique_ptr<Drafter>> drafters;
  drafters.push_back(std::make_unique<PredictionDrafter>());
  for (const DraftMethod method : config.methods) switch (method) {
      case DraftMethod::ngram:
        drafters.push_back(
            std::make_unique<NgramDrafter>(config.prompt_lookup_min, config.prompt_lookup_max));
        break;
      case DraftMethod::suffix:
        drafters.push_back(std::make_unique<SuffixDrafter>(config.suffix));
        break;
      case DraftMethod::draft_model: {
        OCTAVO_TRY(auto drafter,
                   ModelDrafter::create(*models.draft_model, num_tokens,
                                        {.method = config.rejection_sample_method,
                                         .branching_factor = config.branching_factor,
                                         .prefix_caching = models.enable_prefix_caching}));
        drafters.push_back(std::move(drafter));
        break;
      }
      case DraftMethod::early_exit: {
        OCTAVO_TRY(auto drafter, EarlyExitDrafter::create(models.model, num_tokens,
                                                          apply(config, models.early_exit),
                                                          config.rejection_sample_method));
        drafters.push_back(std::move(drafter));
        break;
      }
    }
  // The rows of one sequence are drawn from together.
  const int most = std::min(limits.max_logits_rows, limits.max_num_batched_tokens) - 1;
  return std::make_unique<Speculator>(
      SpeculatorOptions{.num_speculative_tokens = std::min(config.num_speculative_tokens, most),
                        .adaptive = config.adaptive,
                        .clock = seconds_now},
      std::move(drafters));
}

}  // namespace octavo
