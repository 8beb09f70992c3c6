// From a speculative config to what guesses for an engine.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "base/thread_pool.h"
#include "engine/engine_options.h"
#include "kernels/api.h"
#include "model/transformer.h"
#include "spec/speculative_config.h"
#include "spec/speculator.h"
#include "text/tokenizer.h"

namespace octavo {

// The second model of draft_model, with the same settings as the first. Errors: those of loading;
// invalid_argument if its tokens are not those of `tokenizer`.
Result<std::unique_ptr<Transformer>> load_draft_model(const std::string& model,
                                                      const EngineOptions& options,
                                                      TransformerOptions draft_options,
                                                      int max_model_len, const Tokenizer& tokenizer,
                                                      const kernels::Ops& ops, ThreadPool& pool);

// nullptr: the config asks for none. draft_model is borrowed, and may be nullptr if the config does
// not ask for one.
Result<std::unique_ptr<Speculator>> make_speculator(const SpeculativeConfig& config,
                                                    Model* draft_model, int num_tokens,
                                                    const ModelLimits& limits);

}  // namespace octavo
