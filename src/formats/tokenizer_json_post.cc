#include "formats/tokenizer_json_post.h"

#include <fmt/format.h>

#include "formats/tokenizer_json_steps.h"

namespace octavo {
namespace {

using nlohmann::json;
using namespace tokenizer_json;

class TemplateReader {
 public:
  TemplateReader(const JsonSection& section, TokenizerSpec& spec)
      : section_(section), spec_(spec) {}

  Result<void> read() {
    const json* single = section_.find("single");
    if (!single || !single->is_array()) return section_.error("single", "is missing or no list");
    for (const json& piece : *single) {
      const bool is_text = piece.is_object() && piece.contains("Sequence");
      if (is_text && !text_seen_) {
        text_seen_ = true;
        continue;
      }
      OCTAVO_TRY(const TokenId id, token(piece));
      std::optional<TokenId>& place = text_seen_ ? spec_.eos : spec_.bos;
      if (place)
        return section_.error("single", "adds several tokens at one end", ErrorCode::unsupported);
      place = id;
      (text_seen_ ? spec_.add_eos : spec_.add_bos) = true;
    }
    return {};
  }

 private:
  // The id of {"SpecialToken": {"id": NAME}} by the table of special tokens.
  Result<TokenId> token(const json& piece) const {
    const json none = json::object();
    const json special = piece.is_object() ? piece.value("SpecialToken", none) : none;
    const json name = special.is_object() ? special.value("id", json()) : json();
    const json* table = section_.find("special_tokens");
    if (name.is_string() && table && table->is_object()) {
      const json entry = table->value(name.get<std::string>(), none);
      const json ids = entry.is_object() ? entry.value("ids", json()) : json();
      if (ids.is_array() && ids.size() == 1 && ids[0].is_number_unsigned() &&
          ids[0].get<uint64_t>() < spec_.tokens.size())
        return TokenId{ids[0].get<int32_t>()};
    }
    return section_.error("single", "has a piece that is neither the text nor one token");
  }

  const JsonSection& section_;
  TokenizerSpec& spec_;
  bool text_seen_ = false;
};

// The older form: "cls" and "sep" are a spelling with its id.
Result<std::optional<TokenId>> pair_token(const JsonSection& section, const char* field,
                                          size_t tokens) {
  const json* pair = section.find(field);
  if (pair && pair->is_array() && pair->size() == 2 && (*pair)[1].is_number_unsigned() &&
      (*pair)[1].get<uint64_t>() < tokens)
    return std::optional(TokenId{(*pair)[1].get<int32_t>()});
  return section.error(field, "is no token with its id");
}

Result<void> read_pair(const JsonSection& section, TokenizerSpec& spec) {
  if (spec.bos || spec.eos)
    return section.error("cls", "comes after other tokens around the text", ErrorCode::unsupported);
  OCTAVO_TRY(spec.bos, pair_token(section, "cls", spec.tokens.size()));
  OCTAVO_TRY(spec.eos, pair_token(section, "sep", spec.tokens.size()));
  spec.add_bos = spec.add_eos = true;
  return {};
}

Result<void> read_processor(const Step& step, TokenizerSpec& spec) {
  if (step.type == "TemplateProcessing") return TemplateReader(step.section, spec).read();
  if (step.type == "BertProcessing" || step.type == "RobertaProcessing")
    return read_pair(step.section, spec);
  return unknown_step(step);
}

}  // namespace

Result<void> read_post_processor(const JsonSection& root, TokenizerSpec& spec) {
  spec.add_bos = false;
  spec.add_eos = false;
  OCTAVO_TRY(const auto steps, steps_of(root, "post_processor", "processors"));
  for (const Step& step : steps) {
    if (step.type == "ByteLevel") continue;  // it only counts characters
    OCTAVO_CHECK_OK(read_processor(step, spec));
  }
  return {};
}

}  // namespace octavo
