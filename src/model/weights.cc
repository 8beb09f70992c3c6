#include "model/weights.h"

#include <fmt/format.h>

#include <string>
#include <unordered_set>
#include <utility>

#include "formats/quote.h"
#include "model/memory_estimate.h"
#include "tensor/dequant.h"

namespace octavo {
namespace {

// Getting 2 MB pages takes the system longer, and decoding gains little from them while a good part
// of the weights stays in the last-level cache.
constexpr int64_t kSmallModel = int64_t{256} << 20;

class WeightLoader {
 public:
  WeightLoader(const GgufFile& file, ThreadPool& pool, const std::function<void(double)>& progress,
               const PackFile* pack, std::stop_token stop)
      : file_(file), pool_(pool), progress_(progress), pack_(pack), stop_(std::move(stop)) {}

  Result<kernels::PackedMatrix> matrix(const std::string& name, int64_t rows, int64_t cols) {
    OCTAVO_TRY(const TensorView* tensor, find(name, 2, cols, rows));
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
    OCTAVO_TRY(const TensorView* tensor, find(name, 1, size, 1));
    std::vector<float> values(static_cast<size_t>(size));
    dequantize_row(tensor->type, tensor->data.data(), values.data(), size);
    done(*tensor);
    return values;
  }

  Result<Linear> linear(const std::string& name, int64_t rows, int64_t cols, bool bias) {
    Linear out;
    OCTAVO_TRY(out.weight, matrix(name + ".weight", rows, cols));
    if (bias) {
      OCTAVO_TRY(out.bias, vector(name + ".bias", rows));
      out.bias.resize(static_cast<size_t>(out.weight.view().panels() * kernels::kPanelRows));
    }
    return out;
  }

  // Every tensor must have had its use: one more may mean another model than the description says.
  Result<void> check_all_used() const {
    for (const TensorView& tensor : file_.tensors())
      if (!used_.contains(tensor.name) && tensor.name != "rope_freqs.weight")
        return fail(
            ErrorCode::unsupported,
            fmt::format("{}: tensor {} is not part of this architecture as this program knows it",
                        file_.file(), quote(tensor.name)));
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
    pool_.parallel_for(packed.view().panels(), [&](int64_t begin, int64_t end) {
      for (int64_t panel = begin; panel < end; ++panel) packed.pack_panel(panel, tensor);
    });
    return packed;
  }

  Result<const TensorView*> find(const std::string& name, int rank, int64_t cols, int64_t rows) {
    if (stop_.stop_requested())
      return fail(ErrorCode::cancelled, fmt::format("{}: loading was stopped", file_.file()));
    const TensorView* tensor = file_.find_tensor(name);
    if (!tensor)
      return fail(ErrorCode::corrupt_file,
                  fmt::format("{}: tensor '{}' is missing", file_.file(), name));
    const bool shape_ok = tensor->cols() == cols && tensor->shape[1] == rows &&
                          tensor->shape[2] * tensor->shape[3] == 1;
    if (!shape_ok)
      return fail(ErrorCode::corrupt_file,
                  fmt::format("{}: tensor '{}' has shape [{}, {}, {}, {}]; [{}, {}] is expected",
                              file_.file(), name, tensor->shape[0], tensor->shape[1],
                              tensor->shape[2], tensor->shape[3], cols, rows));
    if (rank == 1 && info(tensor->type).quantized)
      return fail(ErrorCode::unsupported,
                  fmt::format("{}: vector '{}' is quantised", file_.file(), name));
    used_.insert(name);
    return tensor;
  }

  void done(const TensorView& tensor) {
    bytes_ += tensor.data.size();
    file_.drop(tensor);
    if (progress_) progress_(static_cast<double>(bytes_) / static_cast<double>(file_.size()));
  }

  const GgufFile& file_;
  ThreadPool& pool_;
  const std::function<void(double)>& progress_;
  const PackFile* pack_;
  const std::stop_token stop_;
  std::vector<PackedTensor> tensors_;
  std::unordered_set<std::string> used_;
  AlignedBuffer memory_;
  uint64_t memory_used_ = 0;
  uint64_t bytes_ = 0;
};

Result<LayerWeights> load_layer(WeightLoader& loader, const ModelConfig& c, int index) {
  const auto name = [index](std::string_view part) {
    return fmt::format("blk.{}.{}", index, part);
  };
  const int64_t q_dim = int64_t{c.num_heads} * c.head_dim;
  const int64_t kv_dim = int64_t{c.num_kv_heads} * c.head_dim;
  const bool bias = c.architecture->qkv_bias;
  LayerWeights layer;
  OCTAVO_TRY(layer.attention_norm, loader.vector(name("attn_norm.weight"), c.hidden_size));
  OCTAVO_TRY(layer.q, loader.linear(name("attn_q"), q_dim, c.hidden_size, bias));
  OCTAVO_TRY(layer.k, loader.linear(name("attn_k"), kv_dim, c.hidden_size, bias));
  OCTAVO_TRY(layer.v, loader.linear(name("attn_v"), kv_dim, c.hidden_size, bias));
  OCTAVO_TRY(layer.o, loader.linear(name("attn_output"), c.hidden_size, q_dim, false));
  OCTAVO_TRY(layer.ffn_norm, loader.vector(name("ffn_norm.weight"), c.hidden_size));
  OCTAVO_TRY(layer.gate,
             loader.linear(name("ffn_gate"), c.intermediate_size, c.hidden_size, false));
  OCTAVO_TRY(layer.up, loader.linear(name("ffn_up"), c.intermediate_size, c.hidden_size, false));
  OCTAVO_TRY(layer.down,
             loader.linear(name("ffn_down"), c.hidden_size, c.intermediate_size, false));
  return layer;
}

}  // namespace

Result<ModelWeights> load_weights(const GgufFile& file, const ModelConfig& config, ThreadPool& pool,
                                  const std::function<void(double)>& progress, const PackFile* pack,
                                  std::stop_token stop) {
  WeightLoader loader(file, pool, progress, pack, std::move(stop));
  ModelWeights weights;
  OCTAVO_TRY(weights.embedding,
             loader.matrix("token_embd.weight", config.vocab_size, config.hidden_size));
  if (!config.tied_head) {
    OCTAVO_TRY(weights.head, loader.matrix("output.weight", config.vocab_size, config.hidden_size));
  }
  OCTAVO_TRY(weights.final_norm, loader.vector("output_norm.weight", config.hidden_size));
  for (int i = 0; i < config.num_layers; ++i) {
    OCTAVO_TRY(LayerWeights layer, load_layer(loader, config, i));
    weights.layers.push_back(std::move(layer));
  }
  OCTAVO_CHECK_OK(loader.check_all_used());
  weights.tensors = loader.take_tensors();
  weights.memory = loader.take_memory();
  return weights;
}

}  // namespace octavo
