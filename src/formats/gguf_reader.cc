#include "formats/gguf_reader.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "base/checked.h"

namespace octavo {
namespace {

constexpr uint32_t kMagic = 0x46554747;         // "GGUF"
constexpr uint32_t kSwappedMagic = 0x47475546;  // "FUGG"

// Far above what models have (tens of keys, a few thousand tensors); they bound what a hostile file
// can make us keep.
constexpr uint64_t kMaxMetadata = 65536;
constexpr uint64_t kMaxTensors = 65536;
constexpr size_t kMaxKeyBytes = 65535;      // from the specification
constexpr size_t kMaxTensorNameBytes = 64;  // from the specification
constexpr uint32_t kMaxRank = 4;
constexpr int kMaxArrayDepth = 8;

// The least bytes that one item can take: a count is compared with it before anything is allocated.
constexpr uint64_t kMinMetadataBytes = 8 + 1 + 4 + 1;  // key, type, value
// Name, rank, one dimension, type, offset.
constexpr uint64_t kMinTensorBytes = 8 + 1 + 4 + 8 + 4 + 8;
constexpr uint64_t kMinStringBytes = 8;
constexpr uint64_t kMinArrayBytes = 4 + 8;

Result<void> check_count(const ByteReader& reader, const Field& field, size_t at, uint64_t count,
                         uint64_t item_bytes, uint64_t limit) {
  if (count > reader.remaining() / item_bytes)
    return reader.error_at(at, ErrorCode::corrupt_file, field,
                           fmt::format("is {}, which cannot fit in the {} bytes that follow; the "
                                       "file is damaged or incomplete: fetch it again",
                                       count, reader.remaining()));
  if (count > limit)
    return reader.error_at(at, ErrorCode::unsupported, field,
                           fmt::format("is {}, above the limit of {}", count, limit));
  return {};
}

tl::unexpected<Error> big_endian(const ByteReader& reader) {
  return reader.error_at(0, ErrorCode::unsupported, {"header"},
                         "is big-endian; only little-endian GGUF is read: convert the file, for "
                         "example with gguf-convert-endian");
}

Result<GgufType> read_type(ByteReader& reader, const Field& field) {
  const size_t at = reader.position();
  OCTAVO_TRY(const uint32_t id, reader.number<uint32_t>(field));
  const auto type = gguf_type_from_id(id);
  if (type) return *type;
  return reader.error_at(at, ErrorCode::corrupt_file, field,
                         fmt::format("has the unknown value type {}", id));
}

// Walks over one value or the elements of an array and checks every length in it.
class ValueScanner {
 public:
  ValueScanner(ByteReader& reader, const Field& field) : reader_(reader), field_(field) {}

  Result<void> scan(GgufType type, uint64_t count, int depth) {
    if (type == GgufType::string) return scan_strings(count);
    if (type == GgufType::array) return scan_arrays(count, depth);
    if (type == GgufType::boolean) return scan_booleans(count);
    // Cannot wrap: check_count() bounded the count of an array, and a single value has count 1.
    OCTAVO_TRY([[maybe_unused]] const auto part, reader_.take(count * fixed_size(type), field_));
    return {};
  }

  struct ArrayHead {
    GgufType element;
    uint64_t count;
  };

  Result<ArrayHead> array_head() {
    OCTAVO_TRY(const GgufType element, read_type(reader_, field_));
    const size_t at = reader_.position();
    OCTAVO_TRY(const uint64_t count, reader_.number<uint64_t>(field_));
    const Field length{"array length of key", field_.name};
    OCTAVO_CHECK_OK(
        check_count(reader_, length, at, count, min_bytes(element), reader_.remaining()));
    return ArrayHead{element, count};
  }

 private:
  static uint64_t min_bytes(GgufType type) {
    if (type == GgufType::string) return kMinStringBytes;
    if (type == GgufType::array) return kMinArrayBytes;
    return fixed_size(type);
  }

  Result<void> scan_strings(uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) {
      OCTAVO_TRY([[maybe_unused]] const auto text, reader_.text(field_));
    }
    return {};
  }

  Result<void> scan_booleans(uint64_t count) {
    const size_t at = reader_.position();
    OCTAVO_TRY(const auto part, reader_.take(count, field_));
    const auto bad =
        std::find_if(part.begin(), part.end(), [](auto b) { return b > std::byte{1}; });
    if (bad == part.end()) return {};
    return reader_.error_at(
        at + static_cast<size_t>(bad - part.begin()), ErrorCode::corrupt_file, field_,
        fmt::format("is {}, expected 0 or 1 for a bool", std::to_integer<int>(*bad)));
  }

  Result<void> scan_arrays(uint64_t count, int depth) {
    if (depth >= kMaxArrayDepth)
      return reader_.error(ErrorCode::unsupported, field_,
                           fmt::format("nests arrays deeper than {} levels", kMaxArrayDepth));
    for (uint64_t i = 0; i < count; ++i) {
      OCTAVO_TRY(const ArrayHead head, array_head());
      OCTAVO_CHECK_OK(scan(head.element, head.count, depth + 1));
    }
    return {};
  }

  ByteReader& reader_;
  Field field_;
};

Result<std::string_view> read_name(ByteReader& reader, const Field& field, size_t max_bytes) {
  const size_t at = reader.position();
  OCTAVO_TRY(const std::string_view name, reader.text(field));
  if (!name.empty() && name.size() <= max_bytes) return name;
  return reader.error_at(at, ErrorCode::corrupt_file, field,
                         fmt::format("has {} bytes, expected 1 to {}", name.size(), max_bytes));
}

Result<GgufEntry> read_entry(ByteReader& reader) {
  GgufEntry entry{};
  OCTAVO_TRY(entry.key, read_name(reader, {"metadata key"}, kMaxKeyBytes));
  const Field field{"value of metadata key", entry.key};
  OCTAVO_TRY(entry.type, read_type(reader, field));
  entry.element = entry.type;
  entry.count = 1;
  ValueScanner scanner(reader, field);
  if (entry.type == GgufType::array) {
    OCTAVO_TRY(const auto head, scanner.array_head());
    entry.element = head.element;
    entry.count = head.count;
  }
  entry.offset = reader.position();
  ByteReader start = reader;
  OCTAVO_CHECK_OK(scanner.scan(entry.element, entry.count, 1));
  OCTAVO_TRY(entry.value, start.take(reader.position() - entry.offset, field));
  return entry;
}

Result<void> read_shape(ByteReader& reader, const Field& field, GgufTensorInfo& info) {
  const size_t at = reader.position();
  OCTAVO_TRY(const uint32_t rank, reader.number<uint32_t>(field));
  if (rank < 1 || rank > kMaxRank)
    return reader.error_at(at, ErrorCode::corrupt_file, field,
                           fmt::format("has {} dimensions, expected 1 to {}", rank, kMaxRank));
  info.rank = static_cast<int>(rank);
  for (uint32_t i = 0; i < rank; ++i) {
    const size_t dimension_at = reader.position();
    OCTAVO_TRY(const uint64_t size, reader.number<uint64_t>(field));
    if (size < 1 || size > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
      return reader.error_at(dimension_at, ErrorCode::corrupt_file, field,
                             fmt::format("has the size {} in dimension {}", size, i));
    info.shape[i] = static_cast<int64_t>(size);
  }
  return {};
}

Result<DType> read_tensor_type(ByteReader& reader, const Field& field) {
  const size_t at = reader.position();
  OCTAVO_TRY(const uint32_t id, reader.number<uint32_t>(field));
  const GgufTensorType* type = gguf_tensor_type(id);
  if (!type)
    return reader.error_at(at, ErrorCode::corrupt_file, field,
                           fmt::format("has the unknown tensor type {}", id));
  if (!type->dtype)
    return reader.error_at(at, ErrorCode::unsupported, field,
                           fmt::format("has the type {} (number {}), which is not supported: use a "
                                       "file in f32, f16, bf16, q4_0 .. q8_0 or q2_k .. q6_k",
                                       type->name, id));
  return *type->dtype;
}

Result<uint64_t> tensor_bytes(const ByteReader& reader, const Field& field, size_t at,
                              const GgufTensorInfo& info) {
  const DTypeInfo& type = octavo::info(info.type);
  if (info.shape[0] % type.block_elements != 0)
    return reader.error_at(at, ErrorCode::corrupt_file, field,
                           fmt::format("has rows of {} values, which is no multiple of {}'s block "
                                       "of {}",
                                       info.shape[0], type.name, type.block_elements));
  std::optional<uint64_t> values = 1;
  for (const int64_t size : info.shape)
    if (values) values = checked_mul(*values, static_cast<uint64_t>(size));
  // Four bytes a value is the most that a type takes; a tensor that passes can be counted in int64
  // throughout.
  if (!values || *values > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) / 4)
    return reader.error_at(at, ErrorCode::corrupt_file, field,
                           fmt::format("has the impossible shape {} x {} x {} x {}", info.shape[0],
                                       info.shape[1], info.shape[2], info.shape[3]));
  return row_bytes(info.type, *values);
}

Result<GgufTensorInfo> read_tensor_info(ByteReader& reader) {
  const size_t at = reader.position();
  GgufTensorInfo info;
  OCTAVO_TRY(info.name, read_name(reader, {"tensor name"}, kMaxTensorNameBytes));
  const Field field{"info of tensor", info.name};
  OCTAVO_CHECK_OK(read_shape(reader, field, info));
  OCTAVO_TRY(info.type, read_tensor_type(reader, field));
  OCTAVO_TRY(info.offset, reader.number<uint64_t>(field));
  OCTAVO_TRY(info.size, tensor_bytes(reader, field, at, info));
  return info;
}

}  // namespace

Result<GgufHeader> read_gguf_header(ByteReader& reader) {
  OCTAVO_TRY(const uint32_t magic, reader.number<uint32_t>({"GGUF magic"}));
  if (magic == kSwappedMagic) return big_endian(reader);
  if (magic != kMagic)
    return reader.error_at(0, ErrorCode::corrupt_file, {"magic"},
                           fmt::format("is {:#010x}, not 'GGUF'; give a GGUF file", magic));
  GgufHeader header;
  OCTAVO_TRY(header.version, reader.number<uint32_t>({"GGUF version"}));
  // A small number with its bytes swapped has two zero bytes below.
  if (header.version != 0 && (header.version & 0xffffu) == 0) return big_endian(reader);
  if (header.version < 2 || header.version > 3)
    return reader.error_at(4, ErrorCode::unsupported, {"GGUF version"},
                           fmt::format("is {}; versions 2 and 3 are read: convert the model again "
                                       "with current tools",
                                       header.version));
  OCTAVO_TRY(header.tensor_count, reader.number<uint64_t>({"tensor count"}));
  OCTAVO_TRY(header.metadata_count, reader.number<uint64_t>({"metadata count"}));
  return header;
}

Result<std::vector<GgufEntry>> read_gguf_metadata(ByteReader& reader, uint64_t count) {
  OCTAVO_CHECK_OK(check_count(reader, {"metadata count"}, reader.position() - 8, count,
                              kMinMetadataBytes, kMaxMetadata));
  std::vector<GgufEntry> entries;
  entries.reserve(count);
  for (uint64_t i = 0; i < count; ++i) {
    OCTAVO_TRY(const GgufEntry entry, read_entry(reader));
    entries.push_back(entry);
  }
  return entries;
}

Result<std::vector<GgufTensorInfo>> read_gguf_tensor_infos(ByteReader& reader, uint64_t count) {
  OCTAVO_CHECK_OK(check_count(reader, {"tensor count"}, 8, count, kMinTensorBytes, kMaxTensors));
  std::vector<GgufTensorInfo> infos;
  infos.reserve(count);
  for (uint64_t i = 0; i < count; ++i) {
    OCTAVO_TRY(const GgufTensorInfo info, read_tensor_info(reader));
    infos.push_back(info);
  }
  return infos;
}

}  // namespace octavo
