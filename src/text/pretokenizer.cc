#include "text/pretokenizer.h"

#include <fmt/format.h>

#include <string>

#include "base/quote.h"

namespace octavo {

Result<PreTokenizer> PreTokenizer::create(std::string_view name) {
  PreTokenizer pre;
  const PreTokenizerRule* rule = find_pretokenizer_rule(name);
  if (!rule) {
    return fail(
        ErrorCode::unsupported,
        fmt::format(
            "tokenizer.ggml.pre is {}: without the right pre-tokenizer the model would read other "
            "tokens than it was trained on. Set it in the file to one of: {}",
            name.empty() ? "missing" : fmt::format("{}, which is unknown", quote(name)),
            pretokenizer_names()));
  }
  pre.rule_ = *rule;
  for (const std::string_view source : rule->patterns) {
    if (source.empty()) break;
    OCTAVO_CHECK_OK(pre.add_pattern(source));
  }
  return pre;
}

Result<PreTokenizer> PreTokenizer::create(const PreTokenizerSpec& spec) {
  PreTokenizer pre;
  pre.rule_ = {.names = {}, .patterns = {}, .whole_words = spec.whole_words, .nfc = spec.nfc};
  for (const std::string& source : spec.patterns) OCTAVO_CHECK_OK(pre.add_pattern(source));
  return pre;
}

Result<void> PreTokenizer::add_pattern(std::string_view source) {
  OCTAVO_TRY(Regex pattern, Regex::compile(source));
  patterns_.push_back(std::move(pattern));
  return {};
}

Result<std::vector<uint32_t>> PreTokenizer::split(std::string_view text) const {
  std::vector<uint32_t> ends, next;
  if (text.empty()) return ends;
  ends.push_back(static_cast<uint32_t>(text.size()));
  RegexSearch search;
  std::vector<TextRange> matches;
  for (const Regex& pattern : patterns_) {
    next.clear();
    uint32_t begin = 0;
    for (const uint32_t end : ends) {
      matches.clear();
      OCTAVO_CHECK_OK(search.find_all(pattern, text.substr(begin, end - begin), begin, matches));
      for (const TextRange& match : matches) {
        if (match.begin > begin) next.push_back(match.begin);
        next.push_back(begin = match.end);
      }
      if (begin < end) next.push_back(end);
      begin = end;
    }
    ends.swap(next);
  }
  return ends;
}

}  // namespace octavo
