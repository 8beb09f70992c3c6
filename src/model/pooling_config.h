// How a model's embeddings are made, as its file says it.
#pragma once

#include "base/result.h"
#include "core/pooling.h"
#include "model/model_config.h"

namespace octavo {

struct PoolingConfig {
  PoolingType type = PoolingType::last;
  bool normalize = true;
  bool matryoshka = false;  // trained so that the first dimensions alone are an embedding, too
  int size = 0;             // numbers of an embedding; 0: the model makes none
  bool is_all = false;      // the model makes nothing else
};

// Without a word of the file: the last token of decoders, the mean of encoders, normalised. Errors:
// unsupported (another kind of pooling), corrupt_file.
Result<PoolingConfig> read_pooling_config(const ModelSource& file, const ModelConfig& config);

}  // namespace octavo
