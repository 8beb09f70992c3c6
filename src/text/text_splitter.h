// Cuts normalised text into the words from which a model's pieces are made, as a tokenizer.json
// says.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "core/token_pipeline_spec.h"
#include "text/regex.h"

namespace octavo {

// Words as ranges of a text that the steps may have changed; what no range covers was removed.
struct TextWords {
  std::string text;
  std::vector<TextRange> words;  // none is empty
};

class TextSplitter {
 public:
  // Errors: unsupported (a regular expression).
  static Result<TextSplitter> create(const std::vector<splitter::Step>& steps);

  // `at_start`: `text` begins the whole text, and no token comes before it. REQUIRES: valid UTF-8.
  Result<TextWords> split(std::string text, bool at_start) const;

 private:
  struct Pattern {
    std::optional<Regex> regex;
    std::string text;
    splitter::Behavior behavior;
    bool invert;
  };
  using Step = std::variant<Pattern, splitter::Class, splitter::Metaspace, splitter::ByteLevel>;
  struct Compile;
  class Apply;
  std::vector<Step> steps_;
  std::optional<Regex> gpt2_;  // for ByteLevel
};

}  // namespace octavo
