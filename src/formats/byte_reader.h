// A cursor over the bytes of a file that cannot leave them. Little-endian, as GGUF is.
#pragma once

#include <fmt/format.h>

#include <bit>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "formats/quote.h"

namespace octavo {

static_assert(std::endian::native == std::endian::little, "this program reads files in place");

// What is being read, for messages: "value of key 'llama.block_count'". The text is made only when
// it is needed.
struct Field {
  std::string_view what;
  std::string_view name = {};

  std::string text() const {
    return name.empty() ? std::string(what) : fmt::format("{} {}", what, quote(name));
  }
};

template <class T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

class ByteReader {
 public:
  ByteReader(std::span<const std::byte> bytes, std::string_view file)
      : bytes_(bytes), file_(file) {}

  size_t position() const { return position_; }
  size_t remaining() const { return bytes_.size() - position_; }

  template <class T>
  Result<T> number(const Field& field) {
    if (sizeof(T) > remaining()) return too_short(field, sizeof(T));
    const T value = load<T>(bytes_.data() + position_);
    position_ += sizeof(T);
    return value;
  }

  Result<std::span<const std::byte>> take(uint64_t size, const Field& field) {
    if (size > remaining()) return too_short(field, size);
    const auto part = bytes_.subspan(position_, size);
    position_ += size;
    return part;
  }

  // A string: its length (u64), then its bytes.
  Result<std::string_view> text(const Field& field) {
    OCTAVO_TRY(const uint64_t length, number<uint64_t>(field));
    OCTAVO_TRY(const auto part, take(length, field));
    return std::string_view(reinterpret_cast<const char*>(part.data()), part.size());
  }

  // "FILE: FIELD at byte N WHY", where N is the position or `at`.
  tl::unexpected<Error> error(ErrorCode code, const Field& field, std::string_view why) const {
    return error_at(position_, code, field, why);
  }
  tl::unexpected<Error> error_at(size_t at, ErrorCode code, const Field& field,
                                 std::string_view why) const {
    return fail(code, fmt::format("{}: {} at byte {} {}", file_, field.text(), at, why));
  }

 private:
  tl::unexpected<Error> too_short(const Field& field, uint64_t size) const {
    return error(ErrorCode::corrupt_file, field,
                 fmt::format("needs {} bytes, but only {} of the file's {} are left; the file is "
                             "damaged or incomplete: fetch it again",
                             size, remaining(), bytes_.size()));
  }

  std::span<const std::byte> bytes_;
  std::string_view file_;
  size_t position_ = 0;
};

}  // namespace octavo
