#include "text/fill_in_middle.h"

#include <string_view>

namespace octavo {
namespace {

struct Spelling {
  std::string_view prefix, suffix, middle;
};
constexpr Spelling kSpellings[] = {
    {"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"},
    {"<fim_prefix>", "<fim_suffix>", "<fim_middle>"},
    {"<fim-prefix>", "<fim-suffix>", "<fim-middle>"},
    {"<\uFF5Cfim\u2581begin\uFF5C>", "<\uFF5Cfim\u2581hole\uFF5C>", "<\uFF5Cfim\u2581end\uFF5C>"},
    {"<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>"},
};
// What such models write where the next file, or nothing, would follow.
constexpr std::string_view kEnds[] = {"<|fim_pad|>", "<|repo_name|>", "<|file_sep|>", "<fim_pad>",
                                      "<fim-pad>",   "<repo_name>",   "<file_sep>"};

// Some are control tokens, some are tokens that users may write; all are one token.
std::optional<TokenId> single_token(const Tokenizer& tokenizer, std::string_view spelling) {
  const auto ids = tokenizer.encode(spelling, {.parse_special = true, .add_special = false});
  return ids && ids->size() == 1 ? std::optional(ids->front()) : std::nullopt;
}

}  // namespace

std::optional<FillInMiddle> find_fill_in_middle(const Tokenizer& tokenizer) {
  for (const Spelling& spelling : kSpellings) {
    const auto prefix = single_token(tokenizer, spelling.prefix);
    const auto suffix = single_token(tokenizer, spelling.suffix);
    const auto middle = single_token(tokenizer, spelling.middle);
    if (!prefix || !suffix || !middle) continue;
    FillInMiddle marks{*prefix, *suffix, *middle, {}};
    for (const std::string_view end : kEnds)
      if (const auto id = single_token(tokenizer, end)) marks.ends.push_back(*id);
    return marks;
  }
  return std::nullopt;
}

std::vector<TokenId> prompt_between(const FillInMiddle& marks, std::span<const TokenId> before,
                                    std::span<const TokenId> after) {
  std::vector<TokenId> prompt = {marks.prefix};
  prompt.insert(prompt.end(), before.begin(), before.end());
  prompt.push_back(marks.suffix);
  prompt.insert(prompt.end(), after.begin(), after.end());
  prompt.push_back(marks.middle);
  return prompt;
}

}  // namespace octavo
