// Writes a GGUF file (version 3), tensor by tensor: no more of it is held in memory than its
// tables.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_descriptor.h"
#include "base/result.h"
#include "core/string_table.h"
#include "formats/gguf_metadata.h"
#include "tensor/dtype.h"

namespace octavo {

// Key-value pairs to write, in order.
class GgufPairs {
 public:
  void copy(const GgufEntry& entry);  // of another file, whose mapping is not needed afterwards

  // In place of the pair with this key, if there is one, and at the end.
  void set_u16(std::string_view key, uint16_t value);
  void set_u32(std::string_view key, uint32_t value);
  void set_i32(std::string_view key, int32_t value);
  void set_string(std::string_view key, std::string_view value);
  void set_bool(std::string_view key, bool value);
  void set_i32s(std::string_view key, std::span<const int32_t> values);
  void set_f32s(std::string_view key, std::span<const float> values);
  void set_strings(std::string_view key, const StringTable& values);

  void remove(std::string_view key);

  size_t size() const { return pairs_.size(); }
  std::string encoded() const;

 private:
  struct Pair {
    std::string key;
    std::string stored;  // type and value
  };
  template <class T>
  void set_number(std::string_view key, GgufType type, T value);
  void set(std::string_view key, std::string stored);
  std::vector<Pair> pairs_;
};

// A row of the tensor table. Dimensions are as in TensorView.
struct GgufTensorRow {
  std::string name;
  DType type = DType::f32;
  std::array<int64_t, 4> shape{1, 1, 1, 1};
  int rank = 1;

  int64_t elements() const { return shape[0] * shape[1] * shape[2] * shape[3]; }
  size_t bytes() const { return row_bytes(type, static_cast<size_t>(elements())); }
};

// Until finish() the file has another name, ".NAME.PID.part" in the same folder, and is deleted if
// there is no finish(). What a killed process left of it the next one deletes. Move-only.
class GgufFileWriter {
 public:
  // What create() refuses of `path`, known before any work. Errors: invalid_argument.
  static Result<void> check_place(const std::string& path, bool overwrite);

  // Writes the tables. alignment: a power of two from 8; if it is not GGUF's default of 32, `pairs`
  // must say so. Errors: invalid_argument (`path` is there and no overwriting was asked for, or is
  // no regular file), not_found (its folder), io_error, resource_exhausted (the disk has too little
  // room).
  static Result<GgufFileWriter> create(const std::string& path, bool overwrite,
                                       const GgufPairs& pairs, std::vector<GgufTensorRow> tensors,
                                       uint64_t alignment = kGgufDefaultAlignment);
  GgufFileWriter(GgufFileWriter&& other) noexcept;
  GgufFileWriter& operator=(GgufFileWriter&&) = delete;
  ~GgufFileWriter();

  // The next bytes of the tensors' data, in the order of the table, in pieces of any length that do
  // not reach from one tensor into the next. Errors: io_error, resource_exhausted.
  Result<void> append(std::span<const std::byte> bytes);

  // On disk, under its own name. REQUIRES: all tensors are written. Errors: io_error, and
  // invalid_argument if somebody else made the file meanwhile.
  Result<void> finish();

  uint64_t size() const { return total_; }  // of the whole file, bytes
  const std::string& path() const { return path_; }

 private:
  GgufFileWriter(FileDescriptor file, std::string path, std::string part_path, bool overwrite)
      : file_(std::move(file)),
        path_(std::move(path)),
        part_path_(std::move(part_path)),
        overwrite_(overwrite) {}
  Result<void> write(std::string_view bytes);
  Result<void> pad();
  Result<void> give_name() const;
  tl::unexpected<Error> write_error(int error) const;

  FileDescriptor file_;
  std::string path_;
  std::string part_path_;  // empty: not this object's any more
  bool overwrite_;
  uint64_t alignment_ = kGgufDefaultAlignment;
  uint64_t total_ = 0;
  uint64_t written_ = 0;
  std::vector<uint64_t> tensor_bytes_;
  size_t tensor_ = 0;            // the one that is being written
  uint64_t tensor_written_ = 0;  // bytes of it
};

}  // namespace octavo
