// From a speculative config to what guesses for an engine.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "engine/engine_options.h"
#include "formats/model_source.h"
#include "model/model.h"
#include "model/model_config.h"
#include "spec/early_exit.h"
#include "spec/speculative_config.h"
#include "spec/speculator.h"
#include "text/tokenizer.h"

namespace octavo {

// The second model of draft_model, before its weights are read.
struct DraftSource {
  std::unique_ptr<ModelSource> file;
  ModelConfig config = {};
};

// Errors: those of opening a model; invalid_argument if its tokens are not those of `tokenizer`, or
// if it is an encoder.
Result<DraftSource> open_draft_model(const std::string& model, const EngineOptions& options,
                                     const Tokenizer& tokenizer);

// What was found for the model and is kept in `folder`, if the config needs it: it may say itself
// what early_exit skips. Errors: not_found (the model was not tuned), those of find_exit_plan() and
// check_skipped_layers().
Result<EarlyExitOptions> early_exit_options(const SpeculativeConfig& config,
                                            const std::string& folder, const ModelSource& model,
                                            int num_layers);

// Borrowed; draft_model may be nullptr if the config does not ask for one.
struct DraftingModels {
  Model& model;
  Model* draft_model = nullptr;
  EarlyExitOptions early_exit = {};   // for what the config does not say
  bool enable_prefix_caching = true;  // of the draft model
};

// nullptr: the config asks for none.
Result<std::unique_ptr<Speculator>> make_speculator(const SpeculativeConfig& config,
                                                    const DraftingModels& models, int num_tokens);

}  // namespace octavo
