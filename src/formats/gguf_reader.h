// Reads the tables at the start of a GGUF file: header, metadata, tensor infos. Used by GgufFile
// only.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "formats/byte_reader.h"
#include "formats/gguf_metadata.h"
#include "tensor/dtype.h"

namespace octavo {

struct GgufHeader {
  uint32_t version = 0;
  uint64_t tensor_count = 0;
  uint64_t metadata_count = 0;
};

struct GgufTensorInfo {
  std::string_view name;
  DType type = DType::f32;
  int rank = 0;
  std::array<int64_t, 4> shape{1, 1, 1, 1};
  uint64_t offset = 0;  // from the start of the data section; not checked yet
  uint64_t size = 0;    // bytes
};

// Errors: not a GGUF file, big-endian, a version other than 2 and 3.
Result<GgufHeader> read_gguf_header(ByteReader& reader);

// Every length inside the values is checked, so that they can be read without checks.
Result<std::vector<GgufEntry>> read_gguf_metadata(ByteReader& reader, uint64_t count);

// Shape, type and size are checked; that the data lies inside the file is not.
Result<std::vector<GgufTensorInfo>> read_gguf_tensor_infos(ByteReader& reader, uint64_t count);

}  // namespace octavo
