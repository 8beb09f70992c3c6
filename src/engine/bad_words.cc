#include "engine/bad_words.h"

#include <fmt/format.h>

#include <algorithm>

namespace octavo {

Result<std::vector<std::vector<TokenId>>> encode_bad_words(const std::vector<std::string>& words,
                                                           const Tokenizer& tokenizer) {
  std::vector<std::vector<TokenId>> encoded;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string_view given = words[i];
    const std::string bare(given.substr(std::min(given.find_first_not_of(' '), given.size())));
    for (const std::string& spelling : {bare, " " + bare}) {
      auto ids = tokenizer.encode(spelling, {.parse_special = false, .add_special = false});
      if (!ids || bare.empty() || ids->empty())
        return fail(ErrorCode::invalid_argument,
                    fmt::format("bad_words[{}] is no word: {}", i,
                                ids ? "it has no tokens" : ids.error().message));
      encoded.push_back(std::move(*ids));
    }
  }
  return encoded;
}

}  // namespace octavo
