#include "model/weights.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <numeric>
#include <span>
#include <string>
#include <unordered_set>
#include <utility>

#include "formats/quote.h"
#include "model/memory_estimate.h"
#include "model/rope_config.h"
#include "tensor/dequant.h"

namespace octavo {
namespace {

// Getting 2 MB pages takes the system longer, and decoding gains little from them while a good part
// of the weights stays in the last-level cache.
constexpr int64_t kSmallModel = int64_t{256} << 20;

class WeightLoader {
 public:
  WeightLoader(const ModelSource& file, ThreadPool& pool,
               const std::function<void(double)>& progress, const PackFile* pack,
               std::stop_token stop)
      : file_(file), pool_(pool), progress_(progress), pack_(pack), stop_(std::move(stop)) {
    for (const TensorView& tensor : file.tensors()) total_ += tensor.bytes();
  }

  // slices: matrices one below the other, as a third dimension. order: where that of the columns
  // goes; nullptr: there must be none.
  Result<kernels::PackedMatrix> matrix(const std::string& name, int64_t rows, int64_t cols,
                                       int64_t slices = 1, std::vector<int32_t>* order = nullptr) {
    OCTAVO_TRY(const TensorView* tensor, find(name, 2, cols, rows, slices));
    const auto columns = file_.input_order(*tensor);
    if (order)
      order->assign(columns.begin(), columns.end());
    else if (!columns.empty())
      return fail(ErrorCode::unsupported,
                  fmt::format("{}: tensor {} is in act-order, which is not supported there",
                              file_.file(), quote(file_.spelling(name))));
    rows *= slices;
    const auto number = static_cast<uint32_t>(tensor - file_.tensors().data());
    const auto kept = pack_ ? pack_->find(number) : std::nullopt;
    OCTAVO_TRY(
        kernels::PackedMatrix packed,
        kept ? kernels::PackedMatrix::over(tensor->type, rows, cols, *kept) : repack(*tensor));
    tensors_.push_back({number, packed.view()});
    done(*tensor);
    return packed;
  }

  std::vector<PackedTensor> take_tensors() { return std::move(tensors_); }
  AlignedBuffer take_memory() { return std::move(memory_); }

  Result<std::vector<float>> vector(const std::string& name, int64_t size) {
    OCTAVO_TRY(const TensorView* tensor, find(name, 1, size, 1, 1));
    std::vector<float> values(static_cast<size_t>(size));
    OCTAVO_TRY(const TensorView stored, file_.read(*tensor, room_));
    dequantize_row(tensor->type, stored.data.data(), values.data(), size);
    done(*tensor);
    return values;
  }

  // A small matrix as floats, row after row.
  Result<std::vector<float>> table(const std::string& name, int64_t rows, int64_t cols) {
    OCTAVO_TRY(const TensorView* tensor, find(name, 2, cols, rows, 1));
    std::vector<float> values(static_cast<size_t>(rows * cols));
    OCTAVO_TRY(const TensorView stored, file_.read(*tensor, room_));
    const size_t stride = row_bytes(tensor->type, static_cast<size_t>(cols));
    for (int64_t row = 0; row < rows; ++row)
      dequantize_row(tensor->type, stored.data.data() + static_cast<size_t>(row) * stride,
                     values.data() + row * cols, cols);
    done(*tensor);
    return values;
  }
  int64_t rows_of(const std::string& name) const {  // 1 if there is no such tensor
    const TensorView* tensor = file_.find_tensor(name);
    return tensor ? tensor->rows() : 1;
  }

  Result<Linear> linear(const std::string& name, int64_t rows, int64_t cols, bool bias) {
    Linear out;
    OCTAVO_TRY(out.weight, matrix(name + ".weight", rows, cols, 1, &out.order));
    if (bias) {
      OCTAVO_TRY(out.bias, vector(name + ".bias", rows));
      out.bias.resize(static_cast<size_t>(out.weight.view().panels() * kernels::kPanelRows));
    }
    return out;
  }

  // Matrices that lie one after the other in one, each of whole panels.
  Result<std::vector<Linear>> fused(const std::string& name, std::span<const int64_t> rows,
                                    int64_t cols) {
    const int64_t total = std::accumulate(rows.begin(), rows.end(), int64_t{0});
    std::vector<int32_t> order;
    OCTAVO_TRY(const kernels::PackedMatrix whole, matrix(name + ".weight", total, cols, 1, &order));
    const kernels::PanelMatrix w = whole.view();
    const auto* panels = reinterpret_cast<const std::byte*>(w.data);
    std::vector<Linear> parts;
    for (const int64_t part_rows : rows) {
      const size_t bytes = static_cast<size_t>(part_rows / kernels::kPanelRows) * w.panel_bytes;
      Linear& part = parts.emplace_back();
      part.order = order;
      OCTAVO_TRY(part.weight,
                 kernels::PackedMatrix::over(w.type, part_rows, cols, {panels, bytes}));
      panels += bytes;
    }
    return parts;
  }

  bool has(const std::string& name) const { return file_.find_tensor(name) != nullptr; }

  // Every tensor must have had its use: one more may mean another model than the description says.
  Result<void> check_all_used() const {
    for (const TensorView& tensor : file_.tensors())
      if (!used_.contains(tensor.name) && !is_rope_divisors(tensor.name))
        return fail(
            ErrorCode::unsupported,
            fmt::format("{}: tensor {} is not part of this architecture as this program knows it",
                        file_.file(), quote(file_.spelling(tensor.name))));
    return {};
  }

 private:
  Result<kernels::PackedMatrix> repack(const TensorView& tensor) {
    OCTAVO_TRY(const uint64_t bytes,
               kernels::packed_bytes(tensor.type, tensor.rows(), tensor.cols()));
    if (memory_.size() == 0) {
      OCTAVO_TRY(const int64_t total, loaded_weight_bytes(file_));
      OCTAVO_TRY(memory_, AlignedBuffer::allocate(static_cast<size_t>(total),
                                                  total < kSmallModel ? AlignedBuffer::Use::sparse
                                                                      : AlignedBuffer::Use::dense));
    }
    // Panels are multiples of 64 bytes, and each tensor comes once: the total is enough.
    auto* start = reinterpret_cast<std::byte*>(memory_.data()) + memory_used_;
    memory_used_ += bytes;
    OCTAVO_TRY(kernels::PackedMatrix packed,
               kernels::PackedMatrix::in(tensor.type, tensor.rows(), tensor.cols(),
                                         {start, static_cast<size_t>(bytes)}));
    OCTAVO_TRY(const TensorView stored, file_.read(tensor, room_));
    pool_.parallel_for(packed.view().panels(), [&](int64_t begin, int64_t end) {
      for (int64_t panel = begin; panel < end; ++panel) packed.pack_panel(panel, stored);
    });
    return packed;
  }

  Result<const TensorView*> find(const std::string& name, int rank, int64_t cols, int64_t rows,
                                 int64_t slices) {
    if (stop_.stop_requested())
      return fail(ErrorCode::cancelled, fmt::format("{}: loading was stopped", file_.file()));
    const TensorView* tensor = file_.find_tensor(name);
    if (!tensor)
      return fail(ErrorCode::corrupt_file,
                  fmt::format("{}: tensor '{}' is missing", file_.file(), file_.spelling(name)));
    const std::array<int64_t, 4> expected = {cols, rows, slices, 1};
    if (tensor->shape != expected)
      return fail(ErrorCode::corrupt_file,
                  fmt::format("{}: tensor '{}' has shape [{}]; [{}] is expected", file_.file(),
                              file_.spelling(name), fmt::join(tensor->shape, ", "),
                              fmt::join(expected, ", ")));
    if (rank == 1 && info(tensor->type).quantized)
      return fail(ErrorCode::unsupported,
                  fmt::format("{}: vector '{}' is quantised", file_.file(), name));
    used_.insert(name);
    return tensor;
  }

  void done(const TensorView& tensor) {
    bytes_ += tensor.bytes();
    file_.drop(tensor);
    if (progress_) progress_(static_cast<double>(bytes_) / static_cast<double>(total_));
  }

  const ModelSource& file_;
  ThreadPool& pool_;
  const std::function<void(double)>& progress_;
  const PackFile* pack_;
  const std::stop_token stop_;
  std::vector<PackedTensor> tensors_;
  std::unordered_set<std::string> used_;
  std::vector<std::byte> room_;  // for a tensor that is made while it is read
  AlignedBuffer memory_;
  uint64_t memory_used_ = 0;
  uint64_t bytes_ = 0;
  uint64_t total_ = 0;
};

// The tensors of one layer, by the names that GGUF gives them in all families.
class LayerLoader {
 public:
  LayerLoader(WeightLoader& loader, const ModelConfig& config, int index)
      : loader_(loader), c_(config), arch_(*config.architecture), index_(index) {}

  Result<LayerWeights> load() {
    if (arch_.encoder) {
      OCTAVO_CHECK_OK(load_encoder());
      return std::move(layer_);
    }
    OCTAVO_CHECK_OK(load_attention());
    OCTAVO_CHECK_OK(load_ffn());
    return std::move(layer_);
  }

 private:
  std::string name(std::string_view part) const { return fmt::format("blk.{}.{}", index_, part); }
  int64_t q_dim() const { return int64_t{c_.num_heads} * c_.head_dim; }
  int64_t kv_dim() const { return int64_t{c_.num_kv_heads} * c_.head_dim; }

  Result<void> vector(std::vector<float>& out, std::string_view part, int64_t size) {
    OCTAVO_TRY(out, loader_.vector(name(part), size));
    return {};
  }
  Result<void> linear(Linear& out, std::string_view part, int64_t rows, int64_t cols,
                      bool bias = false) {
    bias = bias || (arch_.optional_biases && loader_.has(name(part) + ".bias"));
    OCTAVO_TRY(out, loader_.linear(name(part), rows, cols, bias));
    return {};
  }
  Result<void> experts(Linear& out, std::string_view part, int64_t rows, int64_t cols) {
    OCTAVO_TRY(out.weight, loader_.matrix(name(part), rows, cols, c_.experts.count));
    return {};
  }

  Result<void> load_encoder() {
    OCTAVO_CHECK_OK(load_qkv());
    OCTAVO_CHECK_OK(linear(layer_.o, "attn_output", c_.hidden_size, q_dim(), true));
    OCTAVO_CHECK_OK(vector(layer_.attention_norm, "attn_output_norm.weight", c_.hidden_size));
    OCTAVO_CHECK_OK(vector(layer_.attention_norm_bias, "attn_output_norm.bias", c_.hidden_size));
    OCTAVO_CHECK_OK(linear(layer_.up, "ffn_up", c_.intermediate_size, c_.hidden_size, true));
    OCTAVO_CHECK_OK(linear(layer_.down, "ffn_down", c_.hidden_size, c_.intermediate_size, true));
    OCTAVO_CHECK_OK(vector(layer_.ffn_norm, "layer_output_norm.weight", c_.hidden_size));
    return vector(layer_.ffn_norm_bias, "layer_output_norm.bias", c_.hidden_size);
  }

  // The norm gives its rows in the order of the columns of all that read them.
  Result<void> share_input(std::vector<float>& norm, std::initializer_list<const Linear*> readers) {
    const std::vector<int32_t>& order = (*readers.begin())->order;
    for (const Linear* reader : readers)
      if (reader->order != order)
        return fail(ErrorCode::unsupported,
                    fmt::format("{}: matrices that read the same input have different act-orders "
                                "(g_idx), which is not supported",
                                name("*")));
    if (order.empty()) return {};
    if (norm.empty())
      return fail(ErrorCode::unsupported,
                  fmt::format("{}: act-order (g_idx) is not supported in families without a norm "
                              "before each product",
                              name("*")));
    std::vector<float> in_order;
    for (const int32_t input : order) in_order.push_back(norm[static_cast<size_t>(input)]);
    norm = std::move(in_order);
    return {};
  }

  Result<void> load_attention() {
    if (arch_.pre_norms)
      OCTAVO_CHECK_OK(vector(layer_.attention_norm, "attn_norm.weight", c_.hidden_size));
    OCTAVO_CHECK_OK(arch_.fused ? load_fused_qkv() : load_qkv());
    OCTAVO_CHECK_OK(share_input(layer_.attention_norm, {&layer_.q, &layer_.k, &layer_.v}));
    OCTAVO_CHECK_OK(load_qk_norm());
    OCTAVO_CHECK_OK(linear(layer_.o, "attn_output", c_.hidden_size, q_dim()));
    if (!arch_.post_norms) return {};
    return vector(layer_.post_attention_norm, "post_attention_norm.weight", c_.hidden_size);
  }

  Result<void> load_qk_norm() {
    if (arch_.qk_norm == QkNorm::none) return {};
    const bool each = arch_.qk_norm == QkNorm::each_head;
    OCTAVO_CHECK_OK(vector(each ? layer_.q_norm : layer_.all_q_norm, "attn_q_norm.weight",
                           each ? c_.head_dim : q_dim()));
    return vector(each ? layer_.k_norm : layer_.all_k_norm, "attn_k_norm.weight",
                  each ? c_.head_dim : kv_dim());
  }

  Result<void> load_qkv() {
    OCTAVO_CHECK_OK(linear(layer_.q, "attn_q", q_dim(), c_.hidden_size, arch_.qkv_bias));
    OCTAVO_CHECK_OK(linear(layer_.k, "attn_k", kv_dim(), c_.hidden_size, arch_.qkv_bias));
    return linear(layer_.v, "attn_v", kv_dim(), c_.hidden_size, arch_.qkv_bias);
  }
  Result<void> load_fused_qkv() {
    OCTAVO_TRY(auto parts, loader_.fused(name("attn_qkv"), std::array{q_dim(), kv_dim(), kv_dim()},
                                         c_.hidden_size));
    layer_.q = std::move(parts[0]);
    layer_.k = std::move(parts[1]);
    layer_.v = std::move(parts[2]);
    return {};
  }

  Result<void> load_ffn() {
    if (arch_.pre_norms)
      OCTAVO_CHECK_OK(vector(layer_.ffn_norm, "ffn_norm.weight", c_.hidden_size));
    OCTAVO_CHECK_OK(c_.experts.count > 0 ? load_experts() : load_dense_ffn());
    if (!arch_.post_norms) return {};
    return vector(layer_.post_ffn_norm, "post_ffw_norm.weight", c_.hidden_size);
  }

  Result<void> load_dense_ffn() {
    OCTAVO_CHECK_OK(arch_.fused ? load_fused_gate_up() : load_gate_up());
    OCTAVO_CHECK_OK(share_input(layer_.ffn_norm, {&layer_.gate, &layer_.up}));
    return linear(layer_.down, "ffn_down", c_.hidden_size, c_.intermediate_size);
  }
  Result<void> load_gate_up() {
    OCTAVO_CHECK_OK(linear(layer_.gate, "ffn_gate", c_.intermediate_size, c_.hidden_size));
    return linear(layer_.up, "ffn_up", c_.intermediate_size, c_.hidden_size);
  }
  Result<void> load_fused_gate_up() {
    const std::array<int64_t, 2> rows = {c_.intermediate_size, c_.intermediate_size};
    OCTAVO_TRY(auto parts, loader_.fused(name("ffn_up"), rows, c_.hidden_size));
    layer_.gate = std::move(parts[0]);
    layer_.up = std::move(parts[1]);
    return {};
  }

  Result<void> load_experts() {
    ExpertWeights& w = layer_.experts;
    const int64_t size = c_.intermediate_size;
    OCTAVO_CHECK_OK(linear(w.router, "ffn_gate_inp", c_.experts.count, c_.hidden_size));
    OCTAVO_CHECK_OK(experts(w.gate, "ffn_gate_exps.weight", size, c_.hidden_size));
    OCTAVO_CHECK_OK(experts(w.up, "ffn_up_exps.weight", size, c_.hidden_size));
    return experts(w.down, "ffn_down_exps.weight", c_.hidden_size, size);
  }

  WeightLoader& loader_;
  const ModelConfig& c_;
  const Architecture& arch_;
  int index_;
  LayerWeights layer_;
};

Result<EncoderWeights> load_encoder_embedding(WeightLoader& loader, const ModelConfig& c) {
  EncoderWeights out;
  OCTAVO_TRY(out.positions, loader.table("position_embd.weight", c.context_length, c.hidden_size));
  constexpr const char* kTypes = "token_types.weight";
  OCTAVO_TRY(const std::vector<float> types,
             loader.table(kTypes, loader.rows_of(kTypes), c.hidden_size));
  for (size_t i = 0; i < out.positions.size(); ++i)
    out.positions[i] += types[i % static_cast<size_t>(c.hidden_size)];
  OCTAVO_TRY(out.norm, loader.vector("token_embd_norm.weight", c.hidden_size));
  OCTAVO_TRY(out.norm_bias, loader.vector("token_embd_norm.bias", c.hidden_size));
  return out;
}

}  // namespace

Result<ModelWeights> load_weights(const ModelSource& file, const ModelConfig& config,
                                  ThreadPool& pool, const std::function<void(double)>& progress,
                                  const PackFile* pack, std::stop_token stop) {
  WeightLoader loader(file, pool, progress, pack, std::move(stop));
  ModelWeights weights;
  OCTAVO_TRY(weights.embedding,
             loader.matrix("token_embd.weight", config.vocab_size, config.hidden_size));
  if (!config.tied_head) {
    OCTAVO_TRY(weights.head, loader.matrix("output.weight", config.vocab_size, config.hidden_size));
  }
  if (config.architecture->encoder) {
    OCTAVO_TRY(weights.encoder, load_encoder_embedding(loader, config));
  } else {
    OCTAVO_TRY(weights.final_norm, loader.vector("output_norm.weight", config.hidden_size));
  }
  for (int i = 0; i < config.num_layers; ++i) {
    OCTAVO_TRY(LayerWeights layer, LayerLoader(loader, config, i).load());
    weights.layers.push_back(std::move(layer));
  }
  OCTAVO_CHECK_OK(loader.check_all_used());
  weights.tensors = loader.take_tensors();
  weights.memory = loader.take_memory();
  return weights;
}

}  // namespace octavo
