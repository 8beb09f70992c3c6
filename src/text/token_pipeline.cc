#include "text/token_pipeline.h"

#include <fmt/format.h>

#include <algorithm>

namespace octavo {
namespace {

// What the model may find in ordinary text: its own pieces that are no control tokens.
Result<Vocabulary> findable(const PieceModelSpec& spec, const Vocabulary& all) {
  StringTable spellings;
  std::vector<TokenType> types;
  for (size_t i = 0; i < all.size(); ++i) {
    const TokenId id{static_cast<int32_t>(i)};
    const bool hidden = !spec.in_vocabulary[i] || all.is_control(id);
    spellings.push_back(all.spelling(id));
    types.push_back(hidden ? TokenType::control : TokenType::normal);
  }
  return Vocabulary::create(std::move(spellings), std::move(types), {});
}

}  // namespace

Result<std::unique_ptr<const TokenPipeline>> TokenPipeline::create(TokenPipelineSpec spec,
                                                                   const Vocabulary& vocabulary) {
  std::unique_ptr<TokenPipeline> pipeline(new TokenPipeline(vocabulary));
  spec.model.in_vocabulary.resize(vocabulary.size());
  OCTAVO_TRY(Vocabulary pieces, findable(spec.model, vocabulary));
  pipeline->pieces_ = std::make_unique<const Vocabulary>(std::move(pieces));
  OCTAVO_TRY(pipeline->normalizer_, TextNormalizer::create(spec.normalizers));
  OCTAVO_TRY(pipeline->splitter_, TextSplitter::create(spec.splitters));
  OCTAVO_TRY(pipeline->model_, PieceModel::create(spec.model, *pipeline->pieces_));
  OCTAVO_TRY(pipeline->decoder_,
             PieceDecoder::create(std::move(spec.decoders), spec.spaces_between));
  // The vocabulary's types count: a token that ends an answer is a control token.
  for (AddedToken& token : spec.added) token.special = vocabulary.is_control(token.id);
  OCTAVO_CHECK_OK(pipeline->add_tokens(spec.added));
  return std::unique_ptr<const TokenPipeline>(std::move(pipeline));
}

Result<void> TokenPipeline::add_tokens(const std::vector<AddedToken>& added) {
  std::vector<AddedTokens::Entry> raw_entries, written, normal;
  for (const AddedToken& token : added) {
    if (token.special || !token.normalized) written.push_back({token.content, token});
    if (!token.normalized) {
      raw_entries.push_back({token.content, token});
      continue;
    }
    OCTAVO_TRY(std::string spelling, normalizer_.apply(token.content));
    if (spelling != token.content) decoded_spellings_.emplace_back(token.id, spelling);
    normal.push_back({std::move(spelling), token});
  }
  std::sort(decoded_spellings_.begin(), decoded_spellings_.end(),
            [](const auto& a, const auto& b) { return raw(a.first) < raw(b.first); });
  OCTAVO_TRY(raw_, AddedTokens::create(std::move(raw_entries)));
  OCTAVO_TRY(written_, AddedTokens::create(std::move(written)));
  OCTAVO_TRY(normal_, AddedTokens::create(std::move(normal)));
  return {};
}

Result<void> TokenPipeline::encode(std::string_view text,
                                   std::span<const AddedTokens::Region> regions,
                                   std::vector<TokenId>& out, EncodeStats& stats) const {
  const bool whole = regions.size() == 1 && regions[0].begin == 0 && regions[0].end == text.size();
  for (const auto& piece : (whole ? raw_ : written_).split(text, regions)) {
    if (raw(piece.id) >= 0)
      out.push_back(piece.id);
    else
      OCTAVO_CHECK_OK(encode_raw(text.substr(piece.begin, piece.end - piece.begin),
                                 piece.begin == 0, whole, out, stats));
  }
  return {};
}

Result<void> TokenPipeline::encode_raw(std::string_view text, bool at_start, bool whole,
                                       std::vector<TokenId>& out, EncodeStats& stats) const {
  OCTAVO_TRY(const std::string normal, normalizer_.apply(std::string(text)));
  const AddedTokens::Region all{0, normal.size()};
  for (const auto& piece : normal_.split(normal, std::span(&all, whole ? 1 : 0))) {
    if (raw(piece.id) >= 0)
      out.push_back(piece.id);
    else
      OCTAVO_CHECK_OK(
          encode_normal(std::string_view(normal).substr(piece.begin, piece.end - piece.begin),
                        at_start && piece.begin == 0, out, stats));
  }
  return {};
}

Result<void> TokenPipeline::encode_normal(std::string_view text, bool at_start,
                                          std::vector<TokenId>& out, EncodeStats& stats) const {
  OCTAVO_TRY(const TextWords split, splitter_.split(std::string(text), at_start));
  for (const TextRange& word : split.words) {
    if (stats.stop.stop_requested()) break;
    model_->encode(std::string_view(split.text).substr(word.begin, word.end - word.begin), out,
                   stats);
  }
  return {};
}

std::string TokenPipeline::decode(TokenId id, PieceDecoder::State& state) const {
  const auto own = std::lower_bound(
      decoded_spellings_.begin(), decoded_spellings_.end(), id,
      [](const auto& entry, TokenId wanted) { return raw(entry.first) < raw(wanted); });
  const bool found = own != decoded_spellings_.end() && own->first == id;
  return decoder_.decode(found ? std::string_view(own->second) : vocabulary_.spelling(id), state);
}

}  // namespace octavo
