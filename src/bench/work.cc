#include "bench/work.h"

namespace octavo {
namespace {

// part: of the matrix, that a token needs.
void add_matrix(Work& work, const kernels::PackedMatrix& matrix, const Transformer& model,
                double part = 1) {
  const kernels::PanelMatrix w = matrix.view();
  const double macs = part * static_cast<double>(w.rows) * static_cast<double>(w.cols);
  work.read_bytes += part * static_cast<double>(w.panels()) * static_cast<double>(w.panel_bytes);
  (model.rounds_activations(w) ? work.int8_macs : work.fp32_macs) += macs;
}

}  // namespace

WorkModel::WorkModel(const ModelConfig& config, const Transformer& model) {
  const ExpertConfig& e = config.experts;
  const double used = e.count > 0 ? static_cast<double>(e.used) / e.count : 0;
  for (const LayerWeights& layer : model.weights().layers) {
    for (const Linear* linear : {&layer.q, &layer.k, &layer.v, &layer.o, &layer.gate, &layer.up,
                                 &layer.down, &layer.experts.router})
      add_matrix(layers_, linear->weight, model);
    for (const Linear* linear : {&layer.experts.gate, &layer.experts.up, &layer.experts.down})
      add_matrix(layers_, linear->weight, model, used);
  }
  add_matrix(head_, model.weights().output_head(), model);
  attention_macs_ = 2.0 * config.num_layers * config.num_heads * config.head_dim;
  const KvLayout& kv = model.kv_layout();
  kv_bytes_per_token_ = static_cast<double>(kv.bytes_per_block()) / kv.block_size;
}

Work WorkModel::decode_step(int sequences, double context, double shared) const {
  const double positions = sequences * (context + 1) - (sequences - 1) * shared;
  return {.read_bytes = weight_bytes() + positions * kv_bytes_per_token_,
          .int8_macs = sequences * (layers_.int8_macs + head_.int8_macs),
          .fp32_macs =
              sequences * (layers_.fp32_macs + head_.fp32_macs + attention_macs_ * (context + 1))};
}

Work WorkModel::prefill(int tokens, double context) const {
  return {.read_bytes = 0,
          .int8_macs = tokens * layers_.int8_macs + head_.int8_macs,
          .fp32_macs = tokens * layers_.fp32_macs + head_.fp32_macs +
                       tokens * attention_macs_ * (context + (tokens + 1) / 2.0)};
}

}  // namespace octavo
