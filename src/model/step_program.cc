#include "model/step_program.h"

#include <algorithm>

#include "kernels/api.h"
#include "model/lora.h"

namespace octavo {
namespace {

// A program takes some tens of KB. Decode batches and whole chunks repeat; beyond so many shapes
// they do not.
constexpr size_t kMaxRecorded = 64;

class Recorder {
 public:
  Recorder(const StepModel& model, StepProgram& program)
      : model_(model), buffers_(model.buffers), program_(program) {}

  void step() {
    const StepShape& shape = program_.shape;
    const ModelConfig& c = model_.config;
    rows_ = shape.tokens;
    add(Kind::begin, StepPart::plan);
    barrier();
    const int last_layer = find_last_layer();
    for (layer_ = 0; layer_ <= last_layer; ++layer_) {
      if (is_skipped(layer_)) continue;
      const LayerWeights& w = model_.weights.layers[static_cast<size_t>(layer_)];
      const bool last = layer_ == last_layer;
      if (c.architecture->encoder) {
        encoder_layer(w, last && shape.kept < shape.tokens);
        if (!last) layer_end();
        continue;
      }
      if (last && shape.kept == 0) return only_keys_and_values(w);
      attention_block(w, last && shape.kept < shape.tokens);
      ffn_block(w);
      if (!last) layer_end();
    }
  }

 private:
  using Kind = StepOp::Kind;

  bool is_skipped(int layer) const {
    return std::ranges::binary_search(model_.skipped_layers, layer);
  }
  int find_last_layer() const {
    int layer = model_.config.num_layers - 1;
    while (layer > 0 && is_skipped(layer)) --layer;
    return layer;
  }

  StepOp& add(Kind kind, StepPart part) {
    StepOp op{.kind = kind, .part = part};
    op.layer = layer_;
    op.rows = rows_;
    op.few = rows_ <= kFewRows;
    op.kept = kept_;
    program_.ops.push_back(op);
    return program_.ops.back();
  }
  void barrier() {
    add(Kind::barrier, StepPart::wait);
    ++program_.barriers;
  }
  void layer_end() {
    add(Kind::layer_end, StepPart::wait);
    ++program_.barriers;
  }

  bool rounds(std::initializer_list<const Linear*> linears) const {
    return model_.rounds && std::any_of(linears.begin(), linears.end(), [](const Linear* linear) {
             return info(linear->weight.view().type).quantized;
           });
  }
  void rows_ready() {
    if (rows_ > kFewRows) barrier();  // rows were shared out
  }
  // Prepares a block's input; returns the rows its products read as floats, nullptr: the normed
  // ones.
  const float* read_residual(const std::vector<float>& weight,
                             std::initializer_list<const Linear*> linears) {
    if (weight.empty()) {
      round(buffers_.residual, model_.config.hidden_size, linears);
      return buffers_.residual;
    }
    StepOp& op = add(Kind::norm, StepPart::norm);
    op.in = buffers_.residual;
    op.cols = model_.config.hidden_size;
    op.weight = weight.data();
    op.order = order_of(**linears.begin());
    op.rounds = rounds(linears);
    rows_ready();
    return nullptr;
  }
  static const int32_t* order_of(const Linear& linear) {
    return linear.order.empty() ? nullptr : linear.order.data();
  }
  // In place: nothing else reads these rows.
  void reorder(const float* in, int64_t cols, const Linear& linear) {
    if (linear.order.empty()) return;
    StepOp& op = add(Kind::reorder, StepPart::norm);
    op.in = in;
    op.cols = cols;
    op.order = order_of(linear);
    barrier();
  }
  void round(const float* in, int64_t cols, std::initializer_list<const Linear*> linears) {
    if (!rounds(linears)) return;
    StepOp& op = add(Kind::round, StepPart::norm);
    op.in = in;
    op.cols = cols;
    op.rounds = true;
    rows_ready();
  }
  StepOp& product(Kind kind, StepPart part, const float* in, int64_t cols,
                  std::initializer_list<const Linear*> linears) {
    StepOp& op = add(kind, part);
    op.in = in;
    op.cols = cols;
    op.rounds = rounds(linears);
    op.num_linears = static_cast<int>(linears.size());
    std::copy(linears.begin(), linears.end(), op.linears.begin());
    return program_.shape.adapted && is_adaptable(kind) ? adapted(op) : op;
  }

  static bool is_adaptable(Kind kind) {
    return kind == Kind::multiply || kind == Kind::multiply_add || kind == Kind::gate_up;
  }
  // The same after what adapters need for it.
  StepOp& adapted(StepOp& last) {
    last.adapted = true;
    for (size_t i = 0; i < static_cast<size_t>(last.num_linears); ++i)
      last.targets[i] = target_of(*last.linears[i]);
    const StepOp op = last;
    last.kind = Kind::shrink;
    barrier();
    program_.ops.push_back(op);
    return program_.ops.back();
  }
  int8_t target_of(const Linear& linear) const {
    const LayerWeights& w = model_.weights.layers[static_cast<size_t>(layer_)];
    for (size_t i = 0; i < kLoraTargets.size(); ++i)
      if (&(w.*kLoraTargets[i]) == &linear) return static_cast<int8_t>(i);
    return 0;  // not reached: only these are multiplied by such operations
  }

  // post_norm: of the product, empty if it is added as it is.
  void add_to_residual(StepPart part, const float* in, int64_t cols, const Linear& linear,
                       const std::vector<float>& post_norm) {
    reorder(in, cols, linear);
    round(in, cols, {&linear});
    if (post_norm.empty()) {
      product(Kind::multiply_add, part, in, cols, {&linear}).out[0] = buffers_.residual;
      return;
    }
    product(Kind::multiply, part, in, cols, {&linear}).out[0] = buffers_.projected;
    barrier();
    StepOp& op = add(Kind::add_normed, StepPart::norm);
    op.in = buffers_.projected;
    op.cols = model_.config.hidden_size;
    op.weight = post_norm.data();
  }

  void norm_heads(const LayerWeights& w, float* q) {
    if (w.all_q_norm.empty()) return;
    add(Kind::norm_heads, StepPart::norm).out = {q, buffers_.k, nullptr};
    barrier();
  }

  void place() {
    add(Kind::place, StepPart::rope_kv);
    barrier();
  }

  void attention_block(const LayerWeights& w, bool drops_rows) {
    const ModelConfig& c = model_.config;
    const float* in = read_residual(w.attention_norm, {&w.q, &w.k, &w.v});
    product(Kind::multiply, StepPart::qkv, in, c.hidden_size, {&w.q, &w.k, &w.v}).out = {
        buffers_.q, buffers_.k, buffers_.v};
    barrier();
    norm_heads(w, buffers_.q);
    if (!program_.places_in_attention) place();
    add(Kind::attend, StepPart::attention);
    barrier();
    if (drops_rows) drop_rows();
    add_to_residual(StepPart::o, buffers_.attended, int64_t{c.num_heads} * c.head_dim, w.o,
                    w.post_attention_norm);
    barrier();
  }

  void drop_rows() {
    add(Kind::keep, StepPart::plan);
    barrier();
    rows_ = program_.shape.kept;
    kept_ = true;
  }

  void layer_norm(const std::vector<float>& weight, const std::vector<float>& bias) {
    barrier();
    StepOp& op = add(Kind::layer_norm, StepPart::norm);
    op.cols = model_.config.hidden_size;
    op.weight = weight.data();
    op.bias = bias.data();
  }

  void encoder_layer(const LayerWeights& w, bool drops_rows) {
    const ModelConfig& c = model_.config;
    round(buffers_.residual, c.hidden_size, {&w.q, &w.k, &w.v});
    product(Kind::multiply, StepPart::qkv, buffers_.residual, c.hidden_size, {&w.q, &w.k, &w.v})
        .out = {buffers_.q, buffers_.k, buffers_.v};
    barrier();
    place();
    add(Kind::attend, StepPart::attention);
    barrier();
    if (drops_rows) drop_rows();
    if (rows_ == 0) return;
    add_to_residual(StepPart::o, buffers_.attended, int64_t{c.num_heads} * c.head_dim, w.o, {});
    layer_norm(w.attention_norm, w.attention_norm_bias);
    barrier();
    round(buffers_.residual, c.hidden_size, {&w.up});
    product(Kind::up, StepPart::gate_up, buffers_.residual, c.hidden_size, {&w.up}).out[0] =
        buffers_.inner;
    barrier();
    add_to_residual(StepPart::down, buffers_.inner, c.intermediate_size, w.down, {});
    layer_norm(w.ffn_norm, w.ffn_norm_bias);
  }

  void ffn_block(const LayerWeights& w) {
    const ModelConfig& c = model_.config;
    if (c.experts.count > 0) return expert_block(w);
    const float* in = read_residual(w.ffn_norm, {&w.gate, &w.up});
    gate_up(Kind::gate_up, in, w.gate, w.up, buffers_.inner);
    barrier();
    add_to_residual(StepPart::down, buffers_.inner, c.intermediate_size, w.down, w.post_ffn_norm);
  }

  void gate_up(Kind kind, const float* in, const Linear& gate, const Linear& up, float* inner) {
    StepOp& op = product(kind, StepPart::gate_up, in, model_.config.hidden_size, {&gate, &up});
    op.out[0] = inner;
    op.gelu = model_.config.architecture->activation == Activation::gelu_tanh;
  }

  void expert_block(const LayerWeights& w) {
    const ModelConfig& c = model_.config;
    const ExpertWeights& e = w.experts;
    StepOp& route =
        product(Kind::route, StepPart::norm, buffers_.residual, c.hidden_size, {&e.router});
    route.weight = w.ffn_norm.data();
    barrier();
    add(Kind::group, StepPart::plan);
    barrier();
    product(Kind::gather, StepPart::norm, nullptr, c.hidden_size, {&e.gate, &e.up});
    barrier();
    gate_up(Kind::expert_gate_up, nullptr, e.gate, e.up, buffers_.experts.inner);
    barrier();
    if (rounds({&e.down})) {
      product(Kind::expert_round, StepPart::norm, nullptr, c.intermediate_size, {&e.down});
      barrier();
    }
    product(Kind::expert_down, StepPart::down, nullptr, c.intermediate_size, {&e.down});
    barrier();
    add(Kind::combine, StepPart::down);
  }

  // The end of a chunk of which no logits are wanted.
  void only_keys_and_values(const LayerWeights& w) {
    const float* in = read_residual(w.attention_norm, {&w.k, &w.v});
    product(Kind::multiply, StepPart::qkv, in, model_.config.hidden_size, {&w.k, &w.v}).out = {
        buffers_.k, buffers_.v, nullptr};
    barrier();
    norm_heads(w, nullptr);
    add(Kind::place, StepPart::rope_kv);
  }

  const StepModel& model_;
  const StepBuffers& buffers_;
  StepProgram& program_;
  int layer_ = 0;
  int rows_ = 0;
  bool kept_ = false;
};

}  // namespace

void record_step(const StepModel& model, const StepShape& shape, StepProgram& program) {
  program.shape = shape;
  program.barriers = 0;
  program.ops.clear();
  // One token of a sequence per row, and one item per row and KV head: whoever attends to a row's
  // position can put it there, too.
  program.places_in_attention =
      shape.single_tokens && shape.kept > 0 && !model.config.architecture->encoder &&
      model.config.num_heads / model.config.num_kv_heads <= kernels::kMaxAttentionRows;
  Recorder(model, program).step();
}

const StepProgram& StepPrograms::of(const StepModel& model, const StepShape& shape) {
  for (const StepProgram& program : recorded_)
    if (program.shape == shape) return program;
  const bool repeats = shape.single_tokens || shape.tokens % 32 == 0;
  if (reuse_ && repeats && recorded_.size() < kMaxRecorded) {
    recorded_.emplace_back();
    record_step(model, shape, recorded_.back());
    return recorded_.back();
  }
  record_step(model, shape, passing_);
  return passing_;
}

}  // namespace octavo
