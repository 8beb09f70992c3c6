#include "formats/gguf_bert_tokenizer.h"

#include <fmt/format.h>

namespace octavo {
namespace {

constexpr std::string_view kWordStart = "\xE2\x96\x81", kInner = "##";

bool is_normal(const TokenizerSpec& spec, size_t i) {
  return spec.types.empty() || spec.types[i] == TokenType::normal;
}

std::string spelled(const TokenizerSpec& spec, size_t i) {
  const std::string_view token = spec.tokens[i];
  if (!is_normal(spec, i)) return std::string(token);
  if (token.starts_with(kWordStart)) return std::string(token.substr(kWordStart.size()));
  return fmt::format("{}{}", kInner, token);
}

}  // namespace

Result<void> read_bert_pipeline(const GgufMetadata& file, TokenizerSpec& spec) {
  if (!spec.unknown)
    return fail(ErrorCode::unsupported,
                fmt::format("{}: tokenizer.ggml.unknown_token_id is missing, which a tokenizer "
                            "'bert' needs",
                            file.file()));
  // BERT reads no text without them.
  if (!spec.add_bos) spec.add_bos = spec.bos.has_value();
  if (!spec.add_eos) spec.add_eos = spec.eos.has_value();
  OCTAVO_TRY(const auto lowercase, file.find_bool("tokenizer.ggml.normalizer.lowercase"));
  TokenPipelineSpec out;
  const bool lower = lowercase.value_or(true);
  out.normalizers = {normalizer::Bert{.strip_accents = lower, .lowercase = lower}};
  out.splitters = {
      splitter::Class{splitter::Characters::white_space, splitter::Behavior::removed},
      splitter::Class{splitter::Characters::punctuation, splitter::Behavior::isolated}};
  out.model.kind = PieceModelSpec::Kind::wordpiece;
  out.model.unknown = spec.unknown;
  out.model.prefix = kInner;
  out.decoders = {decoder::WordPiece{.prefix = std::string(kInner)}};
  StringTable tokens;
  for (size_t i = 0; i < spec.tokens.size(); ++i) {
    tokens.push_back(spelled(spec, i));
    out.model.in_vocabulary.push_back(true);
    if (!is_normal(spec, i))
      out.added.push_back({.id = TokenId{static_cast<int32_t>(i)},
                           .content = std::string(spec.tokens[i]),
                           .special = true});
  }
  spec.tokens = std::move(tokens);
  spec.pipeline = std::move(out);
  return {};
}

}  // namespace octavo
