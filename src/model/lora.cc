#include "model/lora.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>

#include "base/hash.h"
#include "formats/hf_row_order.h"
#include "formats/quote.h"
#include "tensor/dequant.h"

namespace octavo {
namespace {

// Indices of kLoraTargets.
enum Target { kQ, kK, kV, kO, kGate, kUp, kDown };

// Some rows of a matrix of the file, which are one of kLoraTargets.
struct Part {
  Target target;
  int64_t rows;
};
struct Shape {
  std::vector<Part> parts;  // one below the other
  int64_t cols = 0;

  int64_t rows() const {
    int64_t sum = 0;
    for (const Part& part : parts) sum += part.rows;
    return sum;
  }
};

// What a model has under a name of a layer's matrix.
std::optional<Shape> shape_of(std::string_view name, const ModelConfig& c) {
  const int64_t q = int64_t{c.num_heads} * c.head_dim, kv = int64_t{c.num_kv_heads} * c.head_dim;
  const int64_t hidden = c.hidden_size, inner = c.intermediate_size;
  if (name == "attn_output") return Shape{{{kO, hidden}}, q};
  if (c.architecture->fused) {
    if (name == "attn_qkv") return Shape{{{kQ, q}, {kK, kv}, {kV, kv}}, hidden};
  } else {
    if (name == "attn_q") return Shape{{{kQ, q}}, hidden};
    if (name == "attn_k") return Shape{{{kK, kv}}, hidden};
    if (name == "attn_v") return Shape{{{kV, kv}}, hidden};
  }
  if (c.experts.count > 0) return std::nullopt;
  if (name == "ffn_down") return Shape{{{kDown, hidden}}, inner};
  if (c.architecture->fused && name == "ffn_up")
    return Shape{{{kGate, inner}, {kUp, inner}}, hidden};
  if (name == "ffn_gate") return Shape{{{kGate, inner}}, hidden};
  if (name == "ffn_up") return Shape{{{kUp, inner}}, hidden};
  return std::nullopt;
}

uint64_t whole_lines(uint64_t bytes) { return (bytes + 63) / 64 * 64; }

// "blk.3.attn_q" is attn_q of layer 3.
struct Place {
  int layer;
  std::string_view matrix;
};
std::optional<Place> place_of(std::string_view target) {
  constexpr std::string_view kLayer = "blk.";
  if (!target.starts_with(kLayer)) return std::nullopt;
  target.remove_prefix(kLayer.size());
  int layer = 0;
  const auto [end, error] = std::from_chars(target.data(), target.data() + target.size(), layer);
  target.remove_prefix(static_cast<size_t>(end - target.data()));
  if (error != std::errc{} || layer < 0 || !target.starts_with('.')) return std::nullopt;
  return Place{layer, target.substr(1)};
}

}  // namespace

class LoraAdapter::Loader {
 public:
  Loader(const LoraFile& file, const ModelConfig& config, int max_rank)
      : file_(file), c_(config), max_rank_(max_rank) {
    adapter_.layers_.resize(static_cast<size_t>(config.num_layers));
  }

  Result<LoraAdapter> load() {
    for (const LoraPair& pair : file_.pairs()) OCTAVO_CHECK_OK(place(pair));
    OCTAVO_TRY(adapter_.memory_, AlignedBuffer::allocate(bytes_));
    for (const Placed& placed : placed_) OCTAVO_CHECK_OK(add(placed));
    const Hash128 hash = hasher_.result128();
    adapter_.identity_ = fmt::format("{:016x}{:016x}", hash.high, hash.low);
    return std::move(adapter_);
  }

 private:
  tl::unexpected<Error> error(const TensorView& tensor, std::string_view why,
                              ErrorCode code = ErrorCode::corrupt_file) const {
    return fail(code, fmt::format("{}: tensor {} {}", file_.file(), quote(tensor.name), why));
  }

  struct Placed {
    const LoraPair* pair;
    int layer;
    Shape shape;
  };

  Result<void> place(const LoraPair& pair) {
    const auto place = place_of(pair.target);
    const auto shape = place ? shape_of(place->matrix, c_) : std::nullopt;
    if (!shape)
      return error(*pair.a,
                   fmt::format("changes {}, but adapters may change only what multiplies in "
                               "attention and in feed-forward networks without experts",
                               quote(pair.name)),
                   ErrorCode::unsupported);
    if (place->layer >= c_.num_layers)
      return error(*pair.a, fmt::format("is of layer {}, but the model has {} layers", place->layer,
                                        c_.num_layers));
    OCTAVO_CHECK_OK(check_shapes(pair, *shape));
    for (const Part& part : shape->parts) {
      OCTAVO_CHECK_OK(count(*pair.a, pair.a->rows()));
      OCTAVO_CHECK_OK(count(*pair.b, part.rows));
    }
    placed_.push_back({&pair, place->layer, *shape});
    return {};
  }

  Result<void> count(const TensorView& source, int64_t rows) {
    OCTAVO_TRY(const uint64_t bytes, kernels::packed_bytes(kept_type(source), rows, source.cols()));
    bytes_ += whole_lines(bytes);  // no more than some times the file's
    return {};
  }

  Result<void> add(const Placed& placed) {
    auto& layer = adapter_.layers_[static_cast<size_t>(placed.layer)];
    int64_t first_row = 0;
    for (const Part& part : placed.shape.parts) {
      OCTAVO_TRY(layer[part.target], matrix(*placed.pair, first_row, part.rows));
      hash(placed.layer, part.target, placed.pair->scale);
      first_row += part.rows;
    }
    return {};
  }

  Result<void> check_shapes(const LoraPair& pair, const Shape& shape) {
    if (pair.a->cols() != shape.cols)
      return error(*pair.a, fmt::format("has {} columns, but what it changes has {} in the model",
                                        pair.a->cols(), shape.cols));
    if (pair.b->rows() != shape.rows())
      return error(*pair.b, fmt::format("has {} rows, but what it changes has {} in the model",
                                        pair.b->rows(), shape.rows()));
    if (pair.a->rows() > max_rank_)
      return error(*pair.a,
                   fmt::format("has rank {}, above the limit of {}; --max-lora-rank raises it (to "
                               "at most {})",
                               pair.a->rows(), max_rank_, kMaxLoraRank),
                   ErrorCode::unsupported);
    adapter_.rank_ = std::max(adapter_.rank_, static_cast<int>(pair.a->rows()));
    return {};
  }

  Result<LoraMatrix> matrix(const LoraPair& pair, int64_t first_row, int64_t rows) {
    LoraMatrix out;
    out.scale = pair.scale;
    OCTAVO_TRY(out.a, pack(*pair.a, 0, pair.a->rows(), false));
    OCTAVO_TRY(out.b, pack(*pair.b, first_row, rows, pair.hf_rows));
    return out;
  }

  // Numbers of blocks become plain ones: B's rows are too short for blocks.
  static DType kept_type(const TensorView& source) {
    return info(source.type).quantized ? DType::f32 : source.type;
  }

  // Some rows, in GGUF's order.
  Result<kernels::PackedMatrix> pack(const TensorView& source, int64_t first, int64_t rows,
                                     bool hf_rows) {
    TensorView made = source;
    made.type = kept_type(source);
    made.shape = {source.cols(), rows, 1, 1};
    const size_t from_bytes = row_bytes(source.type, static_cast<size_t>(source.cols()));
    const size_t to_bytes = row_bytes(made.type, static_cast<size_t>(source.cols()));
    room_.resize(to_bytes * static_cast<size_t>(rows));
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t at = first + (hf_rows ? hf_row_of(row, c_.head_dim) : row);
      const std::byte* from = source.data.data() + static_cast<size_t>(at) * from_bytes;
      std::byte* to = room_.data() + static_cast<size_t>(row) * to_bytes;
      if (info(source.type).quantized)
        dequantize_row(source.type, from, reinterpret_cast<float*>(to), source.cols());
      else
        std::memcpy(to, from, to_bytes);
    }
    made.data = room_;
    hasher_.add_value(static_cast<uint8_t>(made.type));
    for (const int64_t size : made.shape) hasher_.add_value(size);
    hasher_.add(made.data);
    OCTAVO_TRY(const uint64_t bytes, kernels::packed_bytes(made.type, rows, source.cols()));
    auto* memory = reinterpret_cast<std::byte*>(adapter_.memory_.data()) + used_;
    used_ += whole_lines(bytes);
    OCTAVO_TRY(auto packed, kernels::PackedMatrix::in(made.type, rows, source.cols(),
                                                      {memory, static_cast<size_t>(bytes)}));
    for (int64_t panel = 0; panel < packed.view().panels(); ++panel) packed.pack_panel(panel, made);
    return packed;
  }

  void hash(int layer, Target target, float scale) {
    hasher_.add_value(layer);
    hasher_.add_value(static_cast<int>(target));
    hasher_.add_value(std::bit_cast<uint32_t>(scale));
  }

  const LoraFile& file_;
  const ModelConfig& c_;
  const int max_rank_;
  LoraAdapter adapter_;
  std::vector<Placed> placed_;
  uint64_t bytes_ = 0, used_ = 0;  // of adapter_.memory_
  Hasher hasher_;
  std::vector<std::byte> room_;
};

Result<std::shared_ptr<const LoraAdapter>> LoraAdapter::load(const LoraFile& file,
                                                             const ModelConfig& config,
                                                             int max_rank) {
  if (config.architecture->encoder)
    return fail(ErrorCode::unsupported,
                fmt::format("{}: adapters of encoders cannot be used", file.file()));
  OCTAVO_TRY(LoraAdapter adapter, Loader(file, config, max_rank).load());
  return std::shared_ptr<const LoraAdapter>(new LoraAdapter(std::move(adapter)));
}

}  // namespace octavo
