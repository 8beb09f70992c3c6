// From a model file to something that can generate: the objects of one engine, wired.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/thread_pool.h"
#include "engine/generator.h"
#include "engine/pack_cache.h"
#include "model/transformer.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace octavo {

struct EngineOptions {
  std::string model;                    // path of a GGUF file
  std::string dtype = "auto";           // auto | float32
  std::string kv_cache_dtype = "auto";  // auto | float32 | float16 | bfloat16 | int8
  int threads = 0;                      // 0: the cores this process may use
  int block_size = 32;
  int max_num_batched_tokens = 512;
  int max_num_seqs = 1;  // choices that run at once; blocks for so many whole contexts
  bool kv_cache = true;
  bool enforce_eager = false;  // no step is recorded for reuse
  std::string pack_folder;  // of pack files (engine/pack_cache.h); empty: none is used or written
  std::function<void(double)> on_progress;  // 0..1 while weights load; may be empty
};

// Everything one engine needs. Members are in order of construction; later ones borrow earlier
// ones.
struct LoadedEngine {
  ModelConfig config;
  std::unique_ptr<ThreadPool> pool;
  std::unique_ptr<Tokenizer> tokenizer;
  std::optional<ChatTemplate> chat_template;  // absent: the file has none
  std::optional<Error>
      chat_template_error;  // the file has one that cannot be used: chat is refused, the rest works
  std::unique_ptr<PackFile> pack;  // the file that the weights lie in; nullptr: they were repacked
  std::unique_ptr<Transformer> model;
  std::unique_ptr<PackJob> pack_job;  // nullptr: nothing to check or write
  std::unique_ptr<Generator> generator;
  std::string_view isa;
  std::vector<std::string> notes;  // what the user should know, though it is no error
};

Result<LoadedEngine> load_engine(const EngineOptions& options);

}  // namespace octavo
