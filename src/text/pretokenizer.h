// Cuts text into the words within which byte-level BPE merges.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/pretokenizer_rules.h"

namespace octavo {

class PreTokenizer {
 public:
  // An unknown or empty name is refused, with the list of known ones (I6).
  static Result<PreTokenizer> create(std::string_view name);
  PreTokenizer(PreTokenizer&&) noexcept;
  PreTokenizer& operator=(PreTokenizer&&) noexcept;
  ~PreTokenizer();

  // The end of each word, in bytes; together the words are the whole text. Needs no more stack for
  // long text, and any number of threads may call it at once. A search that exceeds its step limit
  // is an error. REQUIRES: text is valid UTF-8 and shorter than 4 GiB.
  Result<std::vector<uint32_t>> split(std::string_view text) const;

  const PreTokenizerRule& rule() const { return *rule_; }

 private:
  class Pattern;
  PreTokenizer();

  const PreTokenizerRule* rule_ = nullptr;
  std::vector<Pattern> patterns_;
};

}  // namespace octavo
