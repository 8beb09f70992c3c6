// From a model file to something that can generate: the objects of one engine, wired.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/thread_pool.h"
#include "engine/engine.h"
#include "engine/engine_options.h"
#include "engine/load_drafters.h"
#include "engine/pack_cache.h"
#include "engine/packed_model.h"
#include "model/lora.h"
#include "model/pooling_config.h"
#include "model/transformer.h"
#include "spec/early_exit.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace octavo {

// Everything one engine needs. Members are in order of construction; later ones borrow earlier
// ones.
struct LoadedEngine {
  ModelConfig config;
  std::unique_ptr<ThreadPool> pool;
  std::unique_ptr<Tokenizer> tokenizer;
  std::optional<ChatTemplate> chat_template;  // absent: the file has none
  std::optional<ChatTemplate> tool_template;  // in its place when there are tools; mostly absent
  std::optional<Error>
      chat_template_error;  // the file has one that cannot be used: chat is refused, the rest works
  std::unique_ptr<PackFile> pack;  // the file that the weights lie in; nullptr: they were repacked
  std::shared_ptr<const LoraAdapter> adapter;  // of options.lora
  std::unique_ptr<Transformer> model;
  PoolingConfig pooling;              // of embeddings, by the model and the options
  PackedModel draft;                  // that guesses for it; mostly there is none
  EarlyExitOptions early_exit;        // as it was tuned, if the options ask for that
  std::unique_ptr<PackJob> pack_job;  // nullptr: nothing to check or write
  int max_model_len = 0;
  int64_t bytes_per_block = 0;        // of the KV cache
  int64_t draft_bytes_per_block = 0;  // of the draft model's
  std::unique_ptr<Engine> engine;     // nullptr after load_model()
  std::string_view isa;
  std::vector<std::string> notes;  // what the user should know, though it is no error
};

// All but the engine itself, for measurements that drive the model; max_num_seqs may be more than
// one step has tokens.
Result<LoadedEngine> load_model(const EngineOptions& options);

Result<LoadedEngine> load_engine(const EngineOptions& options);

// In place of the model's own. What it ends the assistant's turns with ends answers, too.
// REQUIRES: nothing has been asked of the engine yet. Errors: those of check_tokens().
Result<void> use_chat_template(LoadedEngine& loaded, ChatTemplate chat_template);

// An adapter of the model, from a PEFT folder or a GGUF file. From any thread. Errors: those of
// LoraFile::open and LoraAdapter::load.
Result<std::shared_ptr<const LoraAdapter>> load_adapter(const std::string& path,
                                                        const ModelConfig& config, int max_rank);

// What make_speculator() takes.
DraftingModels drafting_models(const LoadedEngine& loaded);

// A further engine over the same model, when the present one is idle: for comparisons.
// REQUIRES: options that differ from those of `loaded` in scheduling alone.
Result<std::unique_ptr<Engine>> make_engine(const LoadedEngine& loaded,
                                            const EngineOptions& options);
// The same with a given speculator, or none, in place of the options'.
Result<std::unique_ptr<Engine>> make_engine(const LoadedEngine& loaded,
                                            const EngineOptions& options,
                                            std::unique_ptr<Speculator> speculator);

}  // namespace octavo
