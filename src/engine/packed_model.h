// A model in memory, its weights in a pack that is kept for the next start.
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "base/result.h"
#include "base/thread_pool.h"
#include "engine/pack_cache.h"
#include "formats/model_source.h"
#include "kernels/api.h"
#include "model/transformer.h"

namespace octavo {

// Members are in order of construction; later ones borrow earlier ones.
struct PackedModel {
  std::unique_ptr<PackFile> pack;  // the file that the weights lie in; nullptr: they were repacked
  std::unique_ptr<Transformer> model;
  std::unique_ptr<PackJob> pack_job;  // nullptr: nothing to check or write
  std::string note;                   // what the user should know; mostly empty
};

struct PackedModelOptions {
  std::string folder = {};                       // of packs; empty: none is used or written
  std::function<void(double)> on_progress = {};  // 0..1; may be empty
  std::stop_token stop = {};
};

// Errors: those of load_weights() and Transformer::create(). Whatever is wrong with the pack, the
// model can be loaded without.
Result<PackedModel> load_packed_model(const ModelSource& file, const ModelConfig& config,
                                      const TransformerOptions& transformer,
                                      const kernels::Ops& ops, ThreadPool& pool,
                                      const PackedModelOptions& options);

}  // namespace octavo
