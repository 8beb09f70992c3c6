#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/input.h"
#include "cli/json_output.h"
#include "cli/model_loading.h"
#include "cli/token_json.h"

namespace octavo::cli {
namespace {

Result<void> check_flags(const OptionValues& options) {
  if (options.flag("decode") && (options.flag("parse_special") || options.flag("add_special")))
    return fail(ErrorCode::invalid_argument,
                "--parse-special and --add-special are for text, and --decode reads ids");
  return {};
}

Result<std::string> encoded(const Tokenizer& tokenizer, const OptionValues& options,
                            Terminal& terminal) {
  OCTAVO_TRY(const std::string text, read_standard_input(kMaxTextBytes));
  OCTAVO_TRY(const std::vector<TokenId> ids,
             encode_text(tokenizer, text,
                         {.parse_special = options.flag("parse_special"),
                          .add_special = options.flag("add_special")},
                         terminal));
  return dump_line(token_ids_json(ids));
}

Result<std::string> decoded(const Tokenizer& tokenizer) {
  OCTAVO_TRY(const std::string text, read_standard_input(kMaxJsonBytes));
  OCTAVO_TRY(const std::vector<TokenId> ids, parse_token_ids(text, "standard input"));
  for (size_t i = 0; i < ids.size(); ++i)
    if (!tokenizer.contains(ids[i]))
      return fail(ErrorCode::invalid_argument,
                  fmt::format("token id {} at place {} is not in the vocabulary (0 to {})",
                              raw(ids[i]), i, tokenizer.vocab_size() - 1));
  return tokenizer.decode(ids, /*skip_special=*/false, SpacePrefix::strip);
}

}  // namespace

Result<void> run_tokenize(const Invocation& invocation, Terminal& terminal) {
  const OptionValues& options = invocation.options;
  OCTAVO_CHECK_OK(check_flags(options));
  OCTAVO_TRY(const auto file, open_model_file(invocation.positionals[0]));
  OCTAVO_TRY(const Tokenizer tokenizer, load_tokenizer(*file));
  OCTAVO_TRY(const std::string output,
             options.flag("decode") ? decoded(tokenizer) : encoded(tokenizer, options, terminal));
  terminal.write(output);
  return {};
}

}  // namespace octavo::cli
