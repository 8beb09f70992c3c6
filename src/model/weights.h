// The weights of a model in memory: matrices as panels, vectors as floats. Made once from a file,
// then read-only.
#pragma once

#include <functional>
#include <stop_token>
#include <vector>

#include "base/result.h"
#include "base/thread_pool.h"
#include "formats/model_source.h"
#include "kernels/pack.h"
#include "model/model_config.h"
#include "model/pack_file.h"

namespace octavo {

struct Linear {  // y = W x + b
  kernels::PackedMatrix weight;
  std::vector<float> bias;  // empty: none; else padded to whole panels
  // Not empty: column i is multiplied with input order[i] (act-order of packed weights). Matrices
  // that share their input have the same.
  std::vector<int32_t> order;
};

// Matrices of all experts, one below the other: rows of expert e begin at e * (rows of each).
struct ExpertWeights {
  Linear router;
  Linear gate, up, down;
};

// What a family has not is empty. Parts of a fused matrix are matrices like others: they lie one
// after the other in it.
struct LayerWeights {
  // Norms before a product are in the order of its columns.
  std::vector<float> attention_norm;  // encoders: after attention, with a bias
  Linear q, k, v, o;
  std::vector<float> q_norm, k_norm;          // of each head
  std::vector<float> all_q_norm, all_k_norm;  // of all heads together
  std::vector<float> post_attention_norm;
  std::vector<float> ffn_norm;  // encoders: at the end of the layer, with a bias
  std::vector<float> attention_norm_bias, ffn_norm_bias;
  Linear gate, up, down;
  ExpertWeights experts;  // instead of the three
  std::vector<float> post_ffn_norm;
};

// What encoders add to a token's embedding, and its norm.
struct EncoderWeights {
  std::vector<float> positions;  // [context][hidden], with the embedding of the first token type
  std::vector<float> norm, norm_bias;
};

struct ModelWeights {
  kernels::PackedMatrix embedding;
  EncoderWeights encoder;
  kernels::PackedMatrix head;  // empty if tied
  std::vector<float> final_norm;
  std::vector<LayerWeights> layers;
  AlignedBuffer memory;  // of all matrices that were repacked: one range, for 2 MB pages
  // Every matrix above, as it lies in memory, for keeping it on disk.
  std::vector<PackedTensor> tensors;

  const kernels::PackedMatrix& output_head() const { return head.empty() ? embedding : head; }
};

// Repacks every matrix, in parallel, and gives the file's pages back as it goes. Matrices that
// `pack` holds are used where they lie there; it must outlive the result. It may be nullptr.
// progress gets 0..1 and may be empty. Errors: corrupt_file (a tensor is missing or misshapen),
// unsupported (a tensor that the description has no use for), cancelled (`stop`).
Result<ModelWeights> load_weights(const ModelSource& file, const ModelConfig& config,
                                  ThreadPool& pool, const std::function<void(double)>& progress,
                                  const PackFile* pack = nullptr, std::stop_token stop = {});

}  // namespace octavo
