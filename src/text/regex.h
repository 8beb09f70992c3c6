// Regular expressions of tokenizers, by PCRE2. Its \s, \S and \w are made to mean what Unicode
// says.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace octavo {

struct TextRange {
  uint32_t begin, end;  // bytes
};

// One compiled pattern. Matching changes nothing in it.
class Regex {
 public:
  // Errors: unsupported (a pattern that PCRE2 does not take, or a very long one).
  static Result<Regex> compile(std::string_view source);
  Regex(Regex&&) noexcept;
  Regex& operator=(Regex&&) noexcept;
  ~Regex();

  bool matches_nothing() const;  // it may match an empty text

 private:
  friend class RegexSearch;
  struct Compiled;
  explicit Regex(std::unique_ptr<Compiled> compiled);
  std::unique_ptr<Compiled> compiled_;
};

// What a search needs of its own: results, limits and the generated code's stack.
class RegexSearch {
 public:
  RegexSearch();
  ~RegexSearch();

  // Appends the matches in `piece`, in order, but for empty ones. `base`: where the piece begins,
  // is added to them. Needs no more stack for long text. A search that exceeds its step limit is an
  // error. REQUIRES: valid UTF-8, shorter than 4 GiB with `base`.
  Result<void> find_all(const Regex& regex, std::string_view piece, uint32_t base,
                        std::vector<TextRange>& matches);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace octavo
