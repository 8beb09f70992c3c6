// Cuts text into the words within which byte-level BPE merges.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "core/tokenizer_spec.h"
#include "text/pretokenizer_rules.h"
#include "text/regex.h"

namespace octavo {

class PreTokenizer {
 public:
  // An unknown or empty name is refused, with the list of known ones (I6).
  static Result<PreTokenizer> create(std::string_view name);
  // Errors: unsupported (a pattern that PCRE2 does not take, or a very long one).
  static Result<PreTokenizer> create(const PreTokenizerSpec& spec);

  // The end of each word, in bytes; together the words are the whole text. Needs no more stack for
  // long text, and any number of threads may call it at once. A search that exceeds its step limit
  // is an error. REQUIRES: text is valid UTF-8 and shorter than 4 GiB.
  Result<std::vector<uint32_t>> split(std::string_view text) const;

  const PreTokenizerRule& rule() const { return rule_; }

 private:
  PreTokenizer() = default;
  Result<void> add_pattern(std::string_view source);

  PreTokenizerRule rule_;  // but for its patterns
  std::vector<Regex> patterns_;
};

}  // namespace octavo
