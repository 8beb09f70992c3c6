// SentencePiece's compiled table of characters to replace: a double-array trie whose values are
// offsets of NUL-terminated replacements.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace octavo {

class Charsmap {
 public:
  // `bytes`: a little-endian uint32 with the trie's length in bytes, the trie, the replacements.
  // Errors: corrupt_file.
  static Result<Charsmap> create(std::string_view bytes);

  // A grapheme is replaced as a whole by what its shortest known prefix becomes if it is short, and
  // otherwise character by character. REQUIRES: valid UTF-8.
  std::string apply(std::string_view text) const;

 private:
  std::optional<std::string_view> find(std::string_view key) const;
  void append(std::string_view grapheme, std::string& out) const;

  std::vector<uint32_t> units_;
  std::string replacements_;
};

}  // namespace octavo
