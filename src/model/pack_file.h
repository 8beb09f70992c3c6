// The repacked weights of one model file, kept on disk: mapped at the next start, nothing is
// repacked. Little-endian, as the machines that this program runs on.
//
//   header    see pack_file.cc; it has a checksum over itself and the table
//   table     per matrix: which tensor, shape, place, checksum
//   panels    of each matrix, from a multiple of 4096 bytes on
//
// A pack is used only for the very file, and the very layout of panels, that it was made from:
// pack_key() says which. docs/adr/0004-pack-file.md has the reasons.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "base/file_map.h"
#include "base/hash.h"
#include "base/private_folder.h"
#include "base/result.h"
#include "formats/model_source.h"
#include "kernels/api.h"

namespace octavo {

// Hash of all that decides about the bytes of a pack: each model file's tables, size, times of
// change, inode and 64 pages spread over it, what is done to the weights while they are read, and
// the version of the panels' layout. Nothing: the model does not come from a file.
std::optional<Hash128> pack_key(const ModelSource& model);
// The same from what it is made of. tables: bytes before the first tensor.
Hash128 pack_key(const FileIdentity& identity, std::span<const std::byte> bytes, uint64_t tables);

// A matrix in memory: the number of its tensor in the model file, and its panels.
struct PackedTensor {
  uint32_t tensor = 0;
  kernels::PanelMatrix panels;
};

class PackFile {
 public:
  // Everything but the panels' bytes is checked here, and what find() gives is aligned and of the
  // right size. corrupt_file: damaged, of another version, or of another model file.
  static Result<PackFile> open(FileMap map, const ModelSource& model, const Hash128& key);

  // The panels of a tensor of the model; nothing: it is not in the pack.
  std::optional<std::span<const std::byte>> find(uint32_t tensor) const;

  // Compares the checksums of all panels. corrupt_file: one differs; cancelled: stopped.
  Result<void> verify(const std::stop_token& stop) const;

  const FileMap& file() const { return map_; }

 private:
  struct Place {
    std::span<const std::byte> panels;  // empty: the tensor is not in the pack
    uint64_t checksum = 0;
  };
  explicit PackFile(FileMap map) : map_(std::move(map)) {}

  FileMap map_;
  std::vector<Place> places_;  // by tensor
};

// Writes a pack of these matrices. Errors: io_error.
Result<void> write_pack(const PrivateFolder& folder, const std::string& name, const Hash128& key,
                        std::span<const PackedTensor> tensors);

}  // namespace octavo
