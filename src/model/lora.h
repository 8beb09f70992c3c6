// A LoRA adapter in memory: W x becomes W x + scale * B (A x) for some matrices of a model's
// layers. Immutable; whoever computes with it shares it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "formats/lora_file.h"
#include "kernels/pack.h"
#include "model/model_config.h"
#include "model/weights.h"

namespace octavo {

// The matrices of a layer that an adapter may change.
constexpr std::array kLoraTargets = {&LayerWeights::q,   &LayerWeights::k,    &LayerWeights::v,
                                     &LayerWeights::o,   &LayerWeights::gate, &LayerWeights::up,
                                     &LayerWeights::down};
constexpr int kMaxLoraRank = 512;

struct LoraMatrix {
  kernels::PackedMatrix a;  // [rank][inputs]
  kernels::PackedMatrix b;  // [outputs][rank]
  float scale = 0;
};

class LoraAdapter {
 public:
  // Errors: unsupported (what cannot be changed, a rank above max_rank), corrupt_file (shapes that
  // are not the model's), resource_exhausted. They name file and tensor.
  static Result<std::shared_ptr<const LoraAdapter>> load(const LoraFile& file,
                                                         const ModelConfig& config, int max_rank);

  // target: an index of kLoraTargets. nullptr: it stays as it is.
  const LoraMatrix* find(int layer, int target) const {
    const auto& matrix = layers_[static_cast<size_t>(layer)][static_cast<size_t>(target)];
    return matrix ? &*matrix : nullptr;
  }

  // Equal for equal numbers, whatever file or name they came from: part of the key of cached
  // prefixes.
  const std::string& identity() const { return identity_; }
  int rank() const { return rank_; }  // the largest
  int num_layers() const { return static_cast<int>(layers_.size()); }
  uint64_t bytes() const { return memory_.size(); }

 private:
  class Loader;
  LoraAdapter() = default;

  std::vector<std::array<std::optional<LoraMatrix>, kLoraTargets.size()>> layers_;
  std::string identity_;
  int rank_ = 0;
  AlignedBuffer memory_;  // of all matrices: a system has few ranges to give
};

}  // namespace octavo
