#include "formats/quantize_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "formats/weight_fault.h"
#include "tensor/dequant.h"
#include "tensor/quantize.h"

namespace octavo {
namespace {

constexpr uint32_t kQuantizationVersion = 2;
constexpr int64_t kChunk = 4096;           // values that a thread converts at a time; whole blocks
constexpr int64_t kPiece = 1024 * kChunk;  // values that are written at a time

struct ChunkSums {
  double squares = 0, lost_squares = 0;
  WeightFault fault = WeightFault::none;
};

// Sums over a chunk, and what is wrong with it.
ChunkSums compare(const float* values, const float* stored, int64_t n) {
  ChunkSums sums;
  for (int64_t i = 0; i < n; ++i) {
    if (!std::isfinite(values[i])) sums.fault = WeightFault::not_finite;
    const double lost = double{stored[i]} - double{values[i]};
    sums.squares += double{values[i]} * double{values[i]};
    sums.lost_squares += lost * lost;
  }
  if (sums.fault == WeightFault::none && !std::isfinite(sums.lost_squares))
    sums.fault = WeightFault::too_large;
  return sums;
}

// One tensor, piece by piece. Rows are whole blocks of both types, so that the values are one row
// in effect.
class TensorConverter {
 public:
  TensorConverter(const TensorView& tensor, DType type)
      : tensor_(tensor), type_(type), count_(tensor.cols() * tensor.rows()) {}

  int64_t count() const { return count_; }

  // The values [first, first + n), into out().
  void convert(int64_t first, int64_t n, ThreadPool& pool) {
    const int64_t chunks = (n + kChunk - 1) / kChunk;
    sums_.assign(static_cast<size_t>(chunks), {});
    out_.resize(row_bytes(type_, static_cast<size_t>(n)));
    pool.parallel_for(chunks, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        sums_[static_cast<size_t>(i)] =
            convert_chunk(first, i * kChunk, std::min(kChunk, n - i * kChunk));
    });
  }

  std::span<const std::byte> out() const { return out_; }
  const std::vector<ChunkSums>& sums() const { return sums_; }

 private:
  ChunkSums convert_chunk(int64_t first, int64_t at, int64_t n) {
    float values[kChunk], stored[kChunk];
    const std::byte* src =
        tensor_.data.data() + row_bytes(tensor_.type, static_cast<size_t>(first + at));
    std::byte* dst = out_.data() + row_bytes(type_, static_cast<size_t>(at));
    dequantize_row(tensor_.type, src, values, n);
    if (tensor_.type == type_) {
      std::memcpy(dst, src, row_bytes(type_, static_cast<size_t>(n)));
      return compare(values, values, n);
    }
    if (!all_finite(values, n)) return {.fault = WeightFault::not_finite};
    quantize_row(type_, values, dst, n);
    dequantize_row(type_, dst, stored, n);
    return compare(values, stored, n);
  }

  const TensorView& tensor_;
  DType type_;
  int64_t count_;
  std::vector<std::byte> out_;
  std::vector<ChunkSums> sums_;
};

Result<void> add_sums(const std::vector<ChunkSums>& sums, QuantizedType& figures,
                      const std::function<tl::unexpected<Error>(WeightFault)>& refuse) {
  for (const ChunkSums& chunk : sums) {
    if (chunk.fault != WeightFault::none) return refuse(chunk.fault);
    figures.squares += chunk.squares;
    figures.lost_squares += chunk.lost_squares;
  }
  return {};
}

// `tensor` with its bytes.
Result<void> write_tensor(const WeightSource& source, const TensorView& tensor, DType type,
                          const std::stop_token& stop, ThreadPool& pool, GgufFileWriter& writer,
                          QuantizedType& figures) {
  const auto refuse = [&](WeightFault fault) {
    return weight_fault_error(source.name, tensor.name, type, fault, "choose --type bf16 or f32");
  };
  TensorConverter converter(tensor, type);
  for (int64_t first = 0; first < converter.count(); first += kPiece) {
    if (stop.stop_requested()) return fail(ErrorCode::cancelled, "stopped; nothing was written");
    converter.convert(first, std::min(kPiece, converter.count() - first), pool);
    OCTAVO_CHECK_OK(add_sums(converter.sums(), figures, refuse));
    OCTAVO_CHECK_OK(writer.append(converter.out()));
  }
  ++figures.num_tensors;
  figures.elements += converter.count();
  figures.bytes_before += tensor.data.size();
  figures.bytes_after += row_bytes(type, static_cast<size_t>(converter.count()));
  return {};
}

Result<TensorView> read_tensor(const WeightSource& source, const TensorView& tensor,
                               std::vector<std::byte>& room) {
  if (!source.read) return tensor;
  return source.read(tensor, room);
}

std::vector<GgufTensorRow> rows_of(const WeightSource& source, const QuantizeRules& rules) {
  std::vector<GgufTensorRow> rows;
  for (const TensorView& tensor : source.tensors)
    rows.push_back({.name = tensor.name,
                    .type = plan_tensor(tensor, rules).type,
                    .shape = tensor.shape,
                    .rank = tensor.rank});
  return rows;
}

}  // namespace

double QuantizedType::relative_error() const {
  return squares > 0 ? std::sqrt(lost_squares / squares) : 0;
}

Result<QuantizeReport> quantize_to_file(const WeightSource& source, const std::string& path,
                                        const QuantizeOptions& options, ThreadPool& pool) {
  GgufPairs metadata = source.metadata;
  metadata.set_u32("general.quantization_version", kQuantizationVersion);
  metadata.set_u32("general.file_type", gguf_file_type(options.rules.type));
  const std::vector<GgufTensorRow> rows = rows_of(source, options.rules);
  OCTAVO_TRY(GgufFileWriter writer,
             GgufFileWriter::create(path, options.overwrite, metadata, rows, source.alignment));
  QuantizeReport report{.types = {}, .file_bytes = writer.size()};
  std::vector<std::byte> room;
  for (size_t i = 0; i < rows.size(); ++i) {
    const TensorView& tensor = source.tensors[i];
    if (options.on_progress) options.on_progress(i, rows.size());
    OCTAVO_TRY(const TensorView stored, read_tensor(source, tensor, room));
    OCTAVO_CHECK_OK(write_tensor(source, stored, rows[i].type, options.stop, pool, writer,
                                 report.types[rows[i].type]));
    if (source.drop) source.drop(tensor);
  }
  OCTAVO_CHECK_OK(writer.finish());
  return report;
}

}  // namespace octavo
