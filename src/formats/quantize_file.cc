#include "formats/quantize_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "formats/gguf_part_name.h"
#include "formats/quote.h"
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

// The tensors of one file: [begin, end).
struct Shard {
  size_t begin = 0, end = 0;
};

// One after the other, as many as fit.
std::vector<Shard> cut(const std::vector<GgufTensorRow>& rows, uint64_t max_bytes) {
  std::vector<Shard> shards(1);
  uint64_t bytes = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (max_bytes > 0 && bytes > 0 && rows[i].bytes() > max_bytes - std::min(bytes, max_bytes)) {
      shards.push_back({i, i});
      bytes = 0;
    }
    bytes += rows[i].bytes();
    shards.back().end = i + 1;
  }
  return shards;
}

Result<std::vector<std::string>> names_of(size_t count, const std::string& path) {
  if (count == 1) return std::vector{path};
  if (count > kMaxGgufParts)
    return fail(ErrorCode::invalid_argument,
                fmt::format("{} would be {} files, above the limit of {}; allow larger ones",
                            quote(path), count, kMaxGgufParts));
  constexpr std::string_view kEnd = ".gguf";
  const bool has_end = path.size() > kEnd.size() && path.ends_with(kEnd);
  const GgufPartName name{path.substr(0, path.size() - (has_end ? kEnd.size() : 0)), 1,
                          static_cast<uint32_t>(count)};
  std::vector<std::string> names;
  for (uint32_t number = 1; number <= name.count; ++number) names.push_back(name.of(number));
  return names;
}

// The metadata is in the first file; all say where they stand.
GgufPairs pairs_of(const GgufPairs& metadata, size_t shard, size_t count, size_t num_tensors,
                   uint64_t alignment) {
  GgufPairs pairs;
  if (shard == 0)
    pairs = metadata;
  else if (alignment != kGgufDefaultAlignment)
    pairs.set_u32("general.alignment", static_cast<uint32_t>(alignment));
  if (count == 1) return pairs;
  pairs.set_u16("split.no", static_cast<uint16_t>(shard));
  pairs.set_u16("split.count", static_cast<uint16_t>(count));
  pairs.set_i32("split.tensors.count", static_cast<int32_t>(num_tensors));
  return pairs;
}

// The files together: none has its name before all are written.
class ShardWriter {
 public:
  ShardWriter(const WeightSource& source, const QuantizeOptions& options, ThreadPool& pool)
      : source_(source),
        options_(options),
        pool_(pool),
        rows_(rows_of(source, options.rules)),
        shards_(cut(rows_, options.max_shard_bytes)) {}

  Result<QuantizeReport> write(const GgufPairs& metadata, const std::string& path) {
    OCTAVO_TRY(report_.files, names_of(shards_.size(), path));
    for (size_t i = 0; i < shards_.size(); ++i) OCTAVO_CHECK_OK(write_shard(metadata, i));
    OCTAVO_CHECK_OK(finish());
    return std::move(report_);
  }

 private:
  Result<void> write_shard(const GgufPairs& metadata, size_t number) {
    const Shard& shard = shards_[number];
    std::vector<GgufTensorRow> rows(rows_.begin() + static_cast<ptrdiff_t>(shard.begin),
                                    rows_.begin() + static_cast<ptrdiff_t>(shard.end));
    OCTAVO_TRY(GgufFileWriter writer,
               GgufFileWriter::create(
                   report_.files[number], options_.overwrite,
                   pairs_of(metadata, number, shards_.size(), rows_.size(), source_.alignment),
                   std::move(rows), source_.alignment));
    report_.file_bytes += writer.size();
    for (size_t i = shard.begin; i < shard.end; ++i) {
      const TensorView& tensor = source_.tensors[i];
      const DType type = rows_[i].type;
      if (options_.on_progress) options_.on_progress(i, rows_.size());
      OCTAVO_TRY(const TensorView stored, read_tensor(source_, tensor, room_));
      OCTAVO_CHECK_OK(
          write_tensor(source_, stored, type, options_.stop, pool_, writer, report_.types[type]));
      if (source_.drop) source_.drop(tensor);
    }
    writers_.push_back(std::move(writer));
    return {};
  }

  Result<void> finish() {
    for (size_t i = 0; i < writers_.size(); ++i) {
      const auto finished = writers_[i].finish();
      if (finished) continue;
      std::error_code error;
      for (size_t done = 0; done < i; ++done) std::filesystem::remove(report_.files[done], error);
      return finished;
    }
    return {};
  }

  const WeightSource& source_;
  const QuantizeOptions& options_;
  ThreadPool& pool_;
  const std::vector<GgufTensorRow> rows_;
  const std::vector<Shard> shards_;
  std::vector<GgufFileWriter> writers_;
  std::vector<std::byte> room_;
  QuantizeReport report_;
};

}  // namespace

double QuantizedType::relative_error() const {
  return squares > 0 ? std::sqrt(lost_squares / squares) : 0;
}

Result<std::vector<std::string>> quantized_files(const WeightSource& source,
                                                 const std::string& path,
                                                 const QuantizeOptions& options) {
  return names_of(cut(rows_of(source, options.rules), options.max_shard_bytes).size(), path);
}

Result<QuantizeReport> quantize_to_file(const WeightSource& source, const std::string& path,
                                        const QuantizeOptions& options, ThreadPool& pool) {
  GgufPairs metadata = source.metadata;
  metadata.set_u32("general.quantization_version", kQuantizationVersion);
  metadata.set_u32("general.file_type", gguf_file_type(options.rules.type));
  return ShardWriter(source, options, pool).write(metadata, path);
}

}  // namespace octavo
