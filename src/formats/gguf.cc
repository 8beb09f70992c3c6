#include "formats/gguf.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "base/checked.h"
#include "formats/gguf_part_name.h"
#include "formats/gguf_reader.h"
#include "formats/gguf_tokenizer.h"

namespace octavo {
namespace {

constexpr uint32_t kMinAlignment =
    8;  // from the specification; every element type can be read in place

Result<uint32_t> read_alignment(const GgufMetadata& metadata) {
  const GgufEntry* entry = metadata.find("general.alignment");
  if (!entry) return kGgufDefaultAlignment;
  if (entry->type != GgufType::u32)
    return metadata.error(*entry, fmt::format("is {}, expected u32", type_text(*entry)));
  OCTAVO_TRY(const uint32_t alignment, metadata.get_u32(entry->key));
  if (std::has_single_bit(alignment) && alignment >= kMinAlignment) return alignment;
  return metadata.error(
      *entry, fmt::format("is {}, expected a power of two from {}", alignment, kMinAlignment));
}

Result<GgufSplit> read_split(const GgufMetadata& metadata) {
  GgufSplit split;
  OCTAVO_TRY(const auto count, metadata.find_u32("split.count"));
  if (count.value_or(1) <= 1) return split;
  split.count = *count;
  if (split.count > kMaxGgufParts)
    return metadata.error(*metadata.find("split.count"),
                          fmt::format("is {}; at most {} parts are read", *count, kMaxGgufParts));
  OCTAVO_TRY(const uint32_t before, metadata.get_u32("split.no"));
  if (before >= *count)
    return metadata.error(
        *metadata.find("split.no"),
        fmt::format("is {}, of {} parts that are counted from 0", before, *count));
  split.number = before + 1;
  OCTAVO_TRY(split.num_tensors, metadata.find_u64("split.tensors.count"));
  return split;
}

Result<void> refuse_split(const std::string& file, const GgufSplit& split) {
  if (split.count == 1) return {};
  return fail(ErrorCode::unsupported,
              fmt::format("{}: is part {} of {} of a model in several files, which is not read "
                          "here; merge them into one file first, for example with gguf-split "
                          "--merge",
                          file, split.number, split.count));
}

// Where the data section lies in the file.
struct DataSection {
  uint64_t offset = 0;
  uint64_t size = 0;  // bytes from there to the end of the file
  uint64_t alignment = kGgufDefaultAlignment;
};

std::string where(const GgufTensorInfo& info, const DataSection& section) {
  return fmt::format("tensor {}: data at offset {} (from byte {})", quote(info.name), info.offset,
                     section.offset);
}

Result<void> check_place(const std::string& file, const GgufTensorInfo& info,
                         const DataSection& section) {
  if (info.offset % section.alignment != 0)
    return fail(ErrorCode::corrupt_file, fmt::format("{}: {} is not aligned to {} bytes", file,
                                                     where(info, section), section.alignment));
  if (range_fits(info.offset, info.size, section.size)) return {};
  return fail(ErrorCode::corrupt_file,
              fmt::format("{}: {} needs {} bytes, but the file has {} bytes from there; it is "
                          "damaged or incomplete: fetch it again",
                          file, where(info, section), info.size,
                          section.size - std::min(section.size, info.offset)));
}

// REQUIRES: every info passed check_place().
Result<void> refuse_overlap(const std::string& file, const std::vector<GgufTensorInfo>& infos,
                            const DataSection& section) {
  std::vector<const GgufTensorInfo*> sorted;
  for (const GgufTensorInfo& info : infos) sorted.push_back(&info);
  std::sort(sorted.begin(), sorted.end(), [](auto* a, auto* b) { return a->offset < b->offset; });
  for (size_t i = 1; i < sorted.size(); ++i) {
    const GgufTensorInfo& before = *sorted[i - 1];
    if (sorted[i]->offset >= before.offset + before.size) continue;
    return fail(
        ErrorCode::corrupt_file,
        fmt::format("{}: {} overlaps tensor {}, which has {} bytes at offset {}", file,
                    where(*sorted[i], section), quote(before.name), before.size, before.offset));
  }
  return {};
}

TensorView make_view(std::span<const std::byte> bytes, const GgufTensorInfo& info,
                     uint64_t data_offset) {
  return {.name = std::string(info.name),
          .type = info.type,
          .shape = info.shape,
          .rank = info.rank,
          .data = bytes.subspan(data_offset + info.offset, info.size)};
}

// REQUIRES: the tables end at `end`, inside the file, whose size is far below 2^63.
DataSection data_section(uint64_t end, uint64_t alignment, uint64_t file_size) {
  const uint64_t offset = *checked_align_up(end, alignment);
  return {offset, file_size - std::min(file_size, offset), alignment};
}

}  // namespace

Result<GgufFile> GgufFile::open(const std::string& path, GgufPart part) {
  OCTAVO_TRY(FileMap map, FileMap::open(path));
  OCTAVO_TRY(GgufFile file, parse(map.bytes(), path, part));
  file.map_ = std::move(map);
  return file;
}

Result<GgufFile> GgufFile::parse(std::span<const std::byte> bytes, std::string name,
                                 GgufPart part) {
  ByteReader reader(bytes, name);
  OCTAVO_TRY(const GgufHeader header, read_gguf_header(reader));
  OCTAVO_TRY(auto entries, read_gguf_metadata(reader, header.metadata_count));
  OCTAVO_TRY(auto metadata, GgufMetadata::create(name, std::move(entries)));
  OCTAVO_TRY(const uint32_t alignment, read_alignment(metadata));
  OCTAVO_TRY(const GgufSplit split, read_split(metadata));
  if (part == GgufPart::refused) OCTAVO_CHECK_OK(refuse_split(name, split));
  OCTAVO_TRY(const auto infos, read_gguf_tensor_infos(reader, header.tensor_count));
  const DataSection section = data_section(reader.position(), alignment, bytes.size());

  GgufFile file(std::move(metadata));
  file.version_ = header.version;
  file.split_ = split;
  file.alignment_ = alignment;
  file.data_offset_ = section.offset;
  file.bytes_ = bytes;
  std::vector<std::string_view> names;
  for (const GgufTensorInfo& info : infos) {
    OCTAVO_CHECK_OK(check_place(name, info, section));
    file.tensors_.push_back(make_view(bytes, info, section.offset));
    names.push_back(info.name);
  }
  file.tensor_index_ = NameIndex(names);
  if (const auto twice = file.tensor_index_.duplicate())
    return fail(ErrorCode::corrupt_file,
                fmt::format("{}: tensor {} is given more than once", name, quote(*twice)));
  OCTAVO_CHECK_OK(refuse_overlap(name, infos, section));
  return file;
}

const TensorView* GgufFile::find_tensor(std::string_view name) const {
  const auto i = tensor_index_.find(name);
  return i ? &tensors_[*i] : nullptr;
}

std::string GgufFile::format() const { return fmt::format("GGUF version {}", version_); }

Result<TokenizerSpec> GgufFile::tokenizer() const { return read_tokenizer_spec(*this); }

std::vector<ModelFilePart> GgufFile::parts() const {
  if (!map_) return {};
  return {{map_->identity(), bytes_, data_offset_, file()}};
}

void GgufFile::drop(const TensorView& tensor) const {
  if (map_) map_->drop(tensor.data);
}

}  // namespace octavo
