#include "text/gguf_bert.h"

#include <algorithm>
#include <string>

namespace octavo {
namespace {

constexpr const char* kMark = "\xE2\x96\x81";  // U+2581
constexpr size_t kLongestWord = 100;

bool is_ordinary(const TokenizerSpec& spec, size_t i) {
  return spec.types.empty() || spec.types[i] == TokenType::normal;
}

// The file does not tell; a vocabulary of lower-case text has no capital letter.
bool has_capitals(const TokenizerSpec& spec) {
  for (size_t i = 0; i < spec.tokens.size(); ++i) {
    const std::string_view token = spec.tokens[i];
    // [unused0] and [MASK] may be called ordinary.
    if (!is_ordinary(spec, i) || token.ends_with(']')) continue;
    if (std::any_of(token.begin(), token.end(), [](char c) { return c >= 'A' && c <= 'Z'; }))
      return true;
  }
  return false;
}

std::optional<TokenId> find_unknown(const TokenizerSpec& spec) {
  if (spec.unknown) return spec.unknown;
  for (size_t i = 0; i < spec.tokens.size(); ++i)
    if (spec.tokens[i] == "[UNK]") return TokenId{static_cast<int32_t>(i)};
  return std::nullopt;
}

std::vector<AddedToken> control_tokens(const TokenizerSpec& spec) {
  std::vector<AddedToken> added;
  for (size_t i = 0; i < spec.tokens.size(); ++i) {
    if (is_ordinary(spec, i) || spec.types[i] == TokenType::unused) continue;
    AddedToken token;
    token.id = TokenId{static_cast<int32_t>(i)};
    token.content = spec.tokens[i];
    token.special = true;
    added.push_back(std::move(token));
  }
  return added;
}

}  // namespace

Result<void> add_bert_pipeline(TokenizerSpec& spec) {
  if (!spec.types.empty() && spec.types.size() != spec.tokens.size())
    return fail(ErrorCode::corrupt_file, "tokenizer.ggml.token_type is not one per token");
  spec.unknown = find_unknown(spec);
  if (!spec.unknown)
    return fail(ErrorCode::corrupt_file,
                "tokenizer.ggml.unknown_token_id is missing, and the vocabulary has no [UNK]; set "
                "the key in the file");
  if (!spec.add_bos) spec.add_bos = spec.bos.has_value();
  if (!spec.add_eos) spec.add_eos = spec.eos.has_value();

  const bool cased = has_capitals(spec);
  TokenPipelineSpec pipeline;
  pipeline.normalizers = {normalizer::Bert{.strip_accents = !cased, .lowercase = !cased}};
  pipeline.splitters = {
      splitter::Class{splitter::Characters::white_space, splitter::Behavior::removed},
      splitter::Class{splitter::Characters::punctuation, splitter::Behavior::isolated},
      splitter::Metaspace{.mark = kMark, .prefix = splitter::Prefix::always, .split = false}};
  pipeline.model.kind = PieceModelSpec::Kind::wordpiece;
  pipeline.model.in_vocabulary.assign(spec.tokens.size(), true);
  pipeline.model.unknown = spec.unknown;
  pipeline.model.longest_word = kLongestWord + 1;  // with the mark
  pipeline.added = control_tokens(spec);
  pipeline.decoders = {decoder::Metaspace{.mark = kMark, .strips_first = true}};
  spec.pipeline = std::move(pipeline);
  return {};
}

}  // namespace octavo
