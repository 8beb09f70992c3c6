#include "engine/check_tokens.h"

#include <fmt/format.h>

#include "formats/quote.h"
#include "text/template_probe.h"

namespace octavo {
namespace {

class TokenCheck {
 public:
  TokenCheck(const std::string& file, const Tokenizer& tokenizer, int num_rows)
      : file_(file), tokenizer_(tokenizer), num_rows_(num_rows) {}

  bool is_beyond(TokenId id) const { return raw(id) >= num_rows_; }

  Result<void> needed(TokenId id, std::string_view why) const {
    if (!is_beyond(id)) return {};
    return fail(
        ErrorCode::corrupt_file,
        fmt::format("{}: token {} ({}) {}, but the model's embedding has {} rows; tokenizer "
                    "and weights are not of one model",
                    file_, raw(id), quote(tokenizer_.piece(id)), why, num_rows_));
  }

  Result<void> needed(const std::optional<TokenId>& id, std::string_view why) const {
    return id ? needed(*id, why) : Result<void>();
  }

  // The first token from the embedding's end on that text may become, and the control tokens there.
  Result<std::string> rest() const {
    int num_control = 0;
    for (auto i = static_cast<size_t>(num_rows_); i < tokenizer_.vocab_size(); ++i) {
      const TokenId id{static_cast<int32_t>(i)};
      if (tokenizer_.is_unused(id)) continue;
      if (!tokenizer_.is_control(id)) OCTAVO_CHECK_OK(needed(id, "may come of text"));
      ++num_control;
    }
    if (num_control == 0) return std::string();
    return fmt::format(
        "{} of the tokenizer's control tokens have no row in the model's embedding "
        "of {}; a prompt with one of them is refused",
        num_control, num_rows_);
  }

 private:
  const std::string& file_;
  const Tokenizer& tokenizer_;
  int num_rows_;
};

}  // namespace

Result<std::string> check_tokens(const std::string& file, const Tokenizer& tokenizer, int num_rows,
                                 const ChatTemplate* chat_template) {
  const TokenCheck check(file, tokenizer, num_rows);
  if (static_cast<int64_t>(tokenizer.vocab_size()) <= num_rows) return std::string();
  if (tokenizer.adds_bos()) OCTAVO_CHECK_OK(check.needed(tokenizer.bos(), "begins each text"));
  for (const EndToken& end : tokenizer.ends())
    if (end.reason != EndReason::usual_name)
      OCTAVO_CHECK_OK(check.needed(end.id, "ends an answer"));
  OCTAVO_CHECK_OK(check.needed(tokenizer.unknown(), "stands for unknown text"));
  if (chat_template)
    for (const TokenId id : probe_template(*chat_template, tokenizer).control_tokens)
      OCTAVO_CHECK_OK(check.needed(id, "is written by the chat template"));
  return check.rest();
}

}  // namespace octavo
