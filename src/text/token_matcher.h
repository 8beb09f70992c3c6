// Finds tokens that are cut out of the text whole (control and user-defined ones): the leftmost,
// and of those that begin there the longest.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "core/ids.h"
#include "text/vocabulary.h"

namespace octavo {

class TokenMatcher {
 public:
  struct Entry {
    std::string spelling;
    TokenId id;
  };
  struct Match {
    size_t begin, end;  // bytes
    TokenId id;
  };

  // Spellings must be valid UTF-8, so that a match never begins or ends inside a character of valid
  // text, and no longer than kMaxSpelling bytes. Empty ones match nothing; of equal ones the first
  // is kept.
  static Result<TokenMatcher> create(std::vector<Entry> entries);
  static constexpr size_t kMaxSpelling = 512;

  bool empty() const { return entries_.empty(); }
  // Next match that lies wholly in [from, until). No match: begin = end = until.
  Match find(std::string_view text, size_t from, size_t until) const;

 private:
  // Entries that start with one byte, as a range of the sorted list.
  struct Range {
    uint32_t begin = 0, end = 0;
  };
  const Entry* longest_at(std::string_view rest) const;
  uint8_t byte_of(size_t entry, size_t depth) const;

  std::vector<Entry> entries_;  // sorted by spelling
  std::vector<Range> by_first_byte_ = std::vector<Range>(256);
};

// All tokens of a type, as they are spelled in the file.
std::vector<TokenMatcher::Entry> entries_of_type(const Vocabulary& vocabulary, TokenType type);

}  // namespace octavo
