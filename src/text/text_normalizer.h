// The changes that a tokenizer.json makes to text before it is cut into words.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "core/token_pipeline_spec.h"
#include "text/charsmap.h"
#include "text/regex.h"

namespace octavo {

class TextNormalizer {
 public:
  // Errors: unsupported (a regular expression), corrupt_file (a character map).
  static Result<TextNormalizer> create(const std::vector<normalizer::Step>& steps);

  bool empty() const { return steps_.empty(); }
  // REQUIRES: valid UTF-8. Errors: resource_exhausted (it would grow beyond kMaxNormalized).
  Result<std::string> apply(std::string text) const;

 private:
  struct Replace {
    std::optional<Regex> regex;
    std::string text, content;
  };
  using Step = std::variant<normalizer::Unicode, normalizer::Lowercase, normalizer::StripAccents,
                            normalizer::Strip, Replace, normalizer::Prepend, normalizer::Bert,
                            normalizer::ByteLevel, Charsmap>;
  struct Compile;
  struct Apply;
  std::vector<Step> steps_;
};

}  // namespace octavo
