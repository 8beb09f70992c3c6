#include "model/pack_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "base/checked.h"
#include "kernels/pack.h"
#include "kernels/panel_layout.h"

namespace octavo {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::array<char, 8> kMagic = {'O', 'C', 'T', 'P', 'A', 'C', 'K', '\n'};
constexpr uint32_t kFormatVersion = 1;
constexpr uint64_t kPage = 4096;
constexpr uint64_t kSampledPages = 64;
constexpr size_t kPiece = 1 << 20;  // bytes hashed between two looks at the stop token

struct Header {
  std::array<char, 8> magic = kMagic;
  uint32_t format_version = kFormatVersion;
  uint32_t layout_version = kernels::kPanelLayoutVersion;
  Hash128 key;
  uint64_t file_size = 0;
  uint64_t entries = 0;
  uint64_t checksum = 0;  // of header, with 0 here, and table
};
static_assert(sizeof(Header) == 56);

struct TableEntry {
  uint32_t tensor = 0;
  uint32_t type = 0;
  int64_t rows = 0;
  int64_t cols = 0;
  uint64_t offset = 0;
  uint64_t size = 0;
  uint64_t checksum = 0;
};
static_assert(sizeof(TableEntry) == 48);

std::span<const std::byte> bytes_of(const kernels::PanelMatrix& m) {
  return {reinterpret_cast<const std::byte*>(m.data),
          static_cast<size_t>(m.panels()) * m.panel_bytes};
}

uint64_t checksum_of(Header header, std::span<const TableEntry> table) {
  header.checksum = 0;
  Hasher hasher;
  hasher.add(std::as_bytes(std::span(&header, 1)));
  hasher.add(std::as_bytes(table));
  return hasher.result64();
}

// Reads header and table, and checks what can be checked without the model.
class TableReader {
 public:
  TableReader(const FileMap& map, const Hash128& key) : map_(map), key_(key) {}

  Result<std::vector<TableEntry>> read() const {
    Header header;
    if (map_.size() < sizeof(header)) return damaged("is shorter than a header");
    std::memcpy(&header, map_.bytes().data(), sizeof(header));
    if (header.magic != kMagic) return damaged("is no pack file");
    if (header.format_version != kFormatVersion ||
        header.layout_version != kernels::kPanelLayoutVersion)
      return damaged("is of another version");
    if (header.key != key_) return damaged("is of another model file");
    if (header.file_size != map_.size()) return damaged("has not the size it should have");
    if (header.entries > (map_.size() - sizeof(header)) / sizeof(TableEntry))
      return damaged("is too short for its table");
    std::vector<TableEntry> table(header.entries);
    std::memcpy(table.data(), map_.bytes().data() + sizeof(header),
                table.size() * sizeof(TableEntry));
    if (header.checksum != checksum_of(header, table)) return damaged("has a damaged table");
    return table;
  }

  tl::unexpected<Error> damaged(std::string_view how) const {
    return fail(ErrorCode::corrupt_file, fmt::format("{} {}", map_.path(), how));
  }

 private:
  const FileMap& map_;
  const Hash128& key_;
};

bool matches(const TableEntry& entry, const TensorView& tensor) {
  if (entry.type != static_cast<uint32_t>(tensor.type) || entry.rows != tensor.rows() ||
      entry.cols != tensor.cols())
    return false;
  const auto size = kernels::packed_bytes(tensor.type, entry.rows, entry.cols);
  return size && *size == entry.size;
}

void add_sampled_pages(Hasher& hasher, std::span<const std::byte> bytes) {
  const uint64_t pages = (bytes.size() + kPage - 1) / kPage;
  const uint64_t sampled = std::min(pages, kSampledPages);
  for (uint64_t i = 0; i < sampled; ++i) {
    const uint64_t page = sampled == 1 ? 0 : i * (pages - 1) / (sampled - 1);
    hasher.add(bytes.subspan(page * kPage, std::min(kPage, bytes.size() - page * kPage)));
  }
}

std::vector<TableEntry> lay_out(std::span<const PackedTensor> tensors) {
  std::vector<TableEntry> table;
  uint64_t end = sizeof(Header) + tensors.size() * sizeof(TableEntry);
  for (const PackedTensor& t : tensors) {
    const uint64_t offset = (end + kPage - 1) / kPage * kPage;
    const auto panels = bytes_of(t.panels);
    table.push_back({.tensor = t.tensor,
                     .type = static_cast<uint32_t>(t.panels.type),
                     .rows = t.panels.rows,
                     .cols = t.panels.cols,
                     .offset = offset,
                     .size = panels.size(),
                     .checksum = hash64(panels)});
    end = offset + panels.size();
  }
  return table;
}

}  // namespace

Hash128 pack_key(const FileIdentity& identity, std::span<const std::byte> bytes, uint64_t tables) {
  Hasher hasher;
  hasher.add_value(kFormatVersion);
  hasher.add_value(kernels::kPanelLayoutVersion);
  hasher.add_value(identity.size);
  hasher.add_value(identity.modified_ns);
  hasher.add_value(identity.changed_ns);
  hasher.add_value(identity.inode);
  tables = std::min<uint64_t>(tables, bytes.size());
  hasher.add_value(tables);
  hasher.add(bytes.first(tables));
  add_sampled_pages(hasher, bytes.subspan(tables));
  return hasher.result128();
}

std::optional<Hash128> pack_key(const ModelSource& model) {
  const std::vector<ModelFilePart> parts = model.parts();
  const std::string conversion = model.conversion();
  if (parts.empty()) return std::nullopt;
  const auto key_of = [](const ModelFilePart& part) {
    return pack_key(part.identity, part.bytes, part.tables);
  };
  if (parts.size() == 1 && conversion.empty()) return key_of(parts[0]);
  Hasher hasher;
  for (const ModelFilePart& part : parts) {
    const Hash128 key = key_of(part);
    hasher.add_value(key.high);
    hasher.add_value(key.low);
  }
  hasher.add(std::as_bytes(std::span(conversion)));
  return hasher.result128();
}

Result<PackFile> PackFile::open(FileMap map, const ModelSource& model, const Hash128& key) {
  PackFile pack(std::move(map));
  const TableReader reader(pack.map_, key);
  OCTAVO_TRY(const std::vector<TableEntry> table, reader.read());
  pack.places_.resize(model.tensors().size());
  for (const TableEntry& entry : table) {
    if (entry.tensor >= pack.places_.size() || !matches(entry, model.tensors()[entry.tensor]))
      return reader.damaged("holds a matrix that the model has not");
    if (entry.offset % kPage != 0 || !range_fits(entry.offset, entry.size, pack.map_.size()))
      return reader.damaged("has a matrix outside of itself");
    Place& place = pack.places_[entry.tensor];
    if (!place.panels.empty()) return reader.damaged("holds a matrix twice");
    place = {pack.map_.bytes().subspan(entry.offset, entry.size), entry.checksum};
  }
  return pack;
}

std::optional<std::span<const std::byte>> PackFile::find(uint32_t tensor) const {
  if (tensor >= places_.size() || places_[tensor].panels.empty()) return std::nullopt;
  return places_[tensor].panels;
}

Result<void> PackFile::verify(const std::stop_token& stop) const {
  for (const Place& place : places_) {
    Hasher hasher;
    for (size_t at = 0; at < place.panels.size(); at += kPiece) {
      if (stop.stop_requested()) return fail(ErrorCode::cancelled, "stopped");
      hasher.add(place.panels.subspan(at, std::min(kPiece, place.panels.size() - at)));
    }
    if (!place.panels.empty() && hasher.result64() != place.checksum)
      return fail(ErrorCode::corrupt_file,
                  fmt::format("{}: weights in it are damaged", map_.path()));
  }
  return {};
}

Result<void> write_pack(const PrivateFolder& folder, const std::string& name, const Hash128& key,
                        std::span<const PackedTensor> tensors) {
  const std::vector<TableEntry> table = lay_out(tensors);
  Header header{.key = key, .entries = table.size()};
  header.file_size = table.empty() ? sizeof(header) : table.back().offset + table.back().size;
  header.checksum = checksum_of(header, table);
  OCTAVO_TRY(PrivateFolder::NewFile file, folder.create(header.file_size));
  for (size_t i = 0; i < tensors.size(); ++i)
    OCTAVO_CHECK_OK(file.write(bytes_of(tensors[i].panels), table[i].offset));
  OCTAVO_CHECK_OK(file.write(std::as_bytes(std::span(table)), sizeof(header)));
  OCTAVO_CHECK_OK(file.write(std::as_bytes(std::span(&header, 1)), 0));
  return file.commit(name);
}

}  // namespace octavo
