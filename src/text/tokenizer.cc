#include "text/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/quote.h"
#include "text/byte_bpe.h"
#include "text/detokenizer.h"
#include "text/pretokenizer.h"
#include "text/sentencepiece.h"
#include "text/utf8.h"

namespace octavo {
namespace {

constexpr std::string_view kByteLevel = "gpt2";
constexpr std::string_view kSentencePiece = "llama";

// Older converters write no name or "default" for SentencePiece, which has no pre-tokenizer.
bool names_no_pretokenizer(std::string_view pre) { return pre.empty() || pre == "default"; }

Result<void> check_id(std::optional<TokenId> id, std::string_view key, size_t tokens) {
  if (!id || (raw(*id) >= 0 && static_cast<size_t>(raw(*id)) < tokens)) return {};
  return fail(ErrorCode::corrupt_file,
              fmt::format("tokenizer.ggml.{} is {}, outside the vocabulary of {} tokens", key,
                          raw(*id), tokens));
}

Result<void> check_ids(const TokenizerSpec& spec) {
  const size_t tokens = spec.tokens.size();
  OCTAVO_CHECK_OK(check_id(spec.bos, "bos_token_id", tokens));
  OCTAVO_CHECK_OK(check_id(spec.eos, "eos_token_id", tokens));
  OCTAVO_CHECK_OK(check_id(spec.eot, "eot_token_id", tokens));
  OCTAVO_CHECK_OK(check_id(spec.unknown, "unknown_token_id", tokens));
  OCTAVO_CHECK_OK(check_id(spec.padding, "padding_token_id", tokens));
  for (const TokenId id : spec.extra_eog)
    OCTAVO_CHECK_OK(check_id(id, "(further end-of-answer token)", tokens));
  return {};
}

Result<void> check_added(const std::optional<bool>& adds, const std::optional<TokenId>& id,
                         std::string_view name) {
  if (!adds.value_or(false) || id) return {};
  return fail(
      ErrorCode::corrupt_file,
      fmt::format("tokenizer.ggml.{0}_token_id is missing, but tokenizer.ggml.add_{0}_token "
                  "is true, or is not there and true for this tokenizer; set one or the "
                  "other in the file",
                  name));
}

std::vector<TokenId> ids_of(const std::vector<EndToken>& ends) {
  std::vector<TokenId> ids;
  for (const EndToken& end : ends) ids.push_back(end.id);
  return ids;
}

// No user text may become a token that begins or ends a sequence, also where the file calls it
// ordinary (I11). REQUIRES: the ids are in the vocabulary, and types are none or one per token.
void mark_control(TokenizerSpec& spec) {
  std::vector<TokenId> ids = ids_of(end_tokens(spec));
  if (spec.bos) ids.push_back(*spec.bos);
  if (spec.types.empty() && !ids.empty()) spec.types.assign(spec.tokens.size(), TokenType::normal);
  for (const TokenId id : ids) {
    TokenType& type = spec.types[raw(id)];
    if (type == TokenType::normal || type == TokenType::user_defined) type = TokenType::control;
  }
}

std::vector<TokenId> sorted(std::vector<TokenId> ids) {
  std::sort(ids.begin(), ids.end());
  return ids;
}

bool is_ascii_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

Result<TokenMatcher> control_matcher(const Vocabulary& vocabulary) {
  auto entries = entries_of_type(vocabulary, TokenType::control);
  for (auto& entry : entries_of_type(vocabulary, TokenType::unknown))
    entries.push_back(std::move(entry));
  return TokenMatcher::create(std::move(entries));
}

Result<void> check_text(std::string_view text) {
  if (text.size() > kMaxTextBytes) {
    return fail(ErrorCode::resource_exhausted,
                fmt::format("the text has {} bytes; the limit for one text is {}", text.size(),
                            kMaxTextBytes));
  }
  if (const auto bad = find_invalid_utf8(text)) {
    return fail(
        ErrorCode::invalid_argument,
        fmt::format("the text is not valid UTF-8 at byte {} (0x{:02X}); convert it to UTF-8", *bad,
                    static_cast<unsigned char>(text[*bad])));
  }
  return {};
}

}  // namespace

Result<Tokenizer> Tokenizer::create(TokenizerSpec spec) {
  OCTAVO_CHECK_OK(check_ids(spec));
  OCTAVO_CHECK_OK(check_added(spec.add_bos, spec.bos, "bos"));
  OCTAVO_CHECK_OK(check_added(spec.add_eos, spec.eos, "eos"));
  if (spec.types.empty() || spec.types.size() == spec.tokens.size()) mark_control(spec);
  std::vector<EndToken> ends = end_tokens(spec);
  OCTAVO_TRY(Vocabulary checked, Vocabulary::create(std::move(spec.tokens), std::move(spec.types),
                                                    std::move(spec.scores)));
  auto vocabulary = std::make_unique<const Vocabulary>(std::move(checked));
  OCTAVO_TRY(TokenMatcher control, control_matcher(*vocabulary));
  Tokenizer tokenizer(std::move(vocabulary), std::move(control));
  bool adds_bos = false;
  if (spec.pipeline) {
    OCTAVO_TRY(tokenizer.pipeline_,
               TokenPipeline::create(std::move(*spec.pipeline), *tokenizer.vocabulary_));
  } else {
    OCTAVO_TRY(tokenizer.model_, create_model(spec, *tokenizer.vocabulary_, adds_bos));
    if (adds_bos && !spec.add_bos) OCTAVO_CHECK_OK(check_added(adds_bos, spec.bos, "bos"));
  }
  tokenizer.facts_ = take_facts(spec, std::move(ends), adds_bos);
  return tokenizer;
}

Result<std::unique_ptr<const TokenModel>> Tokenizer::create_model(const TokenizerSpec& spec,
                                                                  const Vocabulary& vocabulary,
                                                                  bool& adds_bos) {
  if (spec.model == kByteLevel) {
    if (spec.add_space_prefix.value_or(false)) {
      return fail(ErrorCode::unsupported,
                  "tokenizer.ggml.add_space_prefix is true, which is not supported for the "
                  "tokenizer model 'gpt2'");
    }
    OCTAVO_TRY(PreTokenizer pre, spec.pre_rule ? PreTokenizer::create(*spec.pre_rule)
                                               : PreTokenizer::create(spec.pre));
    adds_bos = pre.rule().adds_bos;
    return ByteBpe::create(vocabulary, std::move(pre), spec.merges);
  }
  if (spec.model == kSentencePiece) {
    if (!names_no_pretokenizer(spec.pre)) {
      return fail(
          ErrorCode::unsupported,
          fmt::format("tokenizer.ggml.pre is {}; the tokenizer model 'llama' knows only 'default'",
                      quote(spec.pre)));
    }
    adds_bos = true;
    return SentencePiece::create(vocabulary,
                                 {.add_space_prefix = spec.add_space_prefix.value_or(true),
                                  .prefix_at_start_only = spec.space_prefix_at_start_only,
                                  .prefix_unless_space = spec.space_prefix_unless_space,
                                  .unknown = spec.unknown});
  }
  return fail(
      ErrorCode::unsupported,
      fmt::format("tokenizer.ggml.model is {}; known are '{}' and '{}'",
                  spec.model.empty() ? "missing" : quote(spec.model), kByteLevel, kSentencePiece));
}

Tokenizer::Facts Tokenizer::take_facts(TokenizerSpec& spec, std::vector<EndToken> ends,
                                       bool default_adds_bos) {
  const bool sentencepiece = spec.model == kSentencePiece;
  std::vector<TokenId> eog = ids_of(ends);
  return Facts{.model = std::move(spec.model),
               .pre = std::move(spec.pre),
               .chat_template = std::move(spec.chat_template),
               .tool_template = std::move(spec.tool_template),
               .template_names = std::move(spec.template_names),
               .bos = spec.bos,
               .eos = spec.eos,
               .eot = spec.eot,
               .unknown = spec.unknown,
               .padding = spec.padding,
               .ends = std::move(ends),
               .eog = std::move(eog),
               .strip_left = sorted(spec.strip_left),
               .strip_right = sorted(spec.strip_right),
               .adds_bos = spec.add_bos.value_or(default_adds_bos) && spec.bos,
               .adds_eos = spec.add_eos.value_or(false),
               .adds_space_prefix = spec.add_space_prefix.value_or(sentencepiece)};
}

bool Tokenizer::is_eog(TokenId id) const {
  return std::binary_search(facts_.eog.begin(), facts_.eog.end(), id);
}

void Tokenizer::end_answers_with(TokenId id, EndReason reason) {
  if (is_eog(id)) return;
  facts_.ends.insert(std::ranges::lower_bound(facts_.ends, id, {}, &EndToken::id), {id, reason});
  facts_.eog = ids_of(facts_.ends);
}

void Tokenizer::forget_ends_from(TokenId first) {
  std::erase_if(facts_.ends, [&](const EndToken& end) { return end.id >= first; });
  facts_.eog = ids_of(facts_.ends);
}

std::optional<TokenId> Tokenizer::find_control(std::string_view spelling) const {
  const auto match = control_.find(spelling, 0, spelling.size());
  if (match.begin != 0 || match.end != spelling.size() || spelling.empty()) return std::nullopt;
  return match.id;
}

Result<std::vector<TokenId>> Tokenizer::encode(std::string_view text, EncodeOptions options) const {
  EncodeStats stats;
  return encode(text, std::move(options), stats);
}

Result<std::vector<TokenId>> Tokenizer::encode(std::string_view text, EncodeOptions options,
                                               EncodeStats& stats) const {
  stats.stop = std::move(options.stop);
  const Region whole{0, text.size()};
  const std::span<const Region> regions(&whole, options.parse_special ? 1 : 0);
  OCTAVO_TRY(std::vector<TokenId> ids, encode_regions(text, regions, stats));
  if (options.add_special) add_special(ids);
  return ids;
}

Result<std::vector<TokenId>> Tokenizer::encode(std::span<const TextSpan> spans, bool add_special,
                                               std::stop_token stop) const {
  std::string text;
  std::vector<Region> regions;
  for (const TextSpan& span : spans) {
    const size_t begin = text.size();
    text += span.text;
    if (!span.is_template) continue;
    if (!regions.empty() && regions.back().end == begin) {
      regions.back().end = text.size();
    } else {
      regions.push_back({begin, text.size()});
    }
  }
  EncodeStats stats{.stop = std::move(stop)};
  OCTAVO_TRY(std::vector<TokenId> ids, encode_regions(text, regions, stats));
  if (add_special) this->add_special(ids);
  return ids;
}

Result<std::vector<TokenId>> Tokenizer::encode_regions(std::string_view text,
                                                       std::span<const Region> regions,
                                                       EncodeStats& stats) const {
  OCTAVO_CHECK_OK(check_text(text));
  std::vector<TokenId> ids;
  OCTAVO_CHECK_OK(pipeline_ ? pipeline_->encode(text, regions, ids, stats)
                            : encode_with_model(text, regions, ids, stats));
  if (stats.stop.stop_requested())
    return fail(ErrorCode::cancelled, "the text was still being encoded when nobody wanted it");
  return ids;
}

Result<void> Tokenizer::encode_with_model(std::string_view text, std::span<const Region> regions,
                                          std::vector<TokenId>& ids, EncodeStats& stats) const {
  size_t done = 0;
  for (const Region& region : regions) {
    for (size_t at = std::max(region.begin, done);
         at < region.end && !stats.stop.stop_requested();) {
      const auto match = control_.find(text, at, region.end);
      at = match.end;
      if (match.begin == match.end) break;
      OCTAVO_CHECK_OK(model_->encode(before(text, done, match), ids, stats));
      ids.push_back(match.id);
      done = at = after(text, match);
    }
  }
  return model_->encode(text.substr(done), ids, stats);
}

std::string_view Tokenizer::before(std::string_view text, size_t done,
                                   const TokenMatcher::Match& match) const {
  size_t end = match.begin;
  if (std::binary_search(facts_.strip_left.begin(), facts_.strip_left.end(), match.id))
    while (end > done && is_ascii_space(text[end - 1])) --end;
  return text.substr(done, end - done);
}

size_t Tokenizer::after(std::string_view text, const TokenMatcher::Match& match) const {
  size_t end = match.end;
  if (std::binary_search(facts_.strip_right.begin(), facts_.strip_right.end(), match.id))
    while (end < text.size() && is_ascii_space(text[end])) ++end;
  return end;
}

void Tokenizer::add_special(std::vector<TokenId>& ids) const {
  if (facts_.adds_bos && (ids.empty() || ids.front() != *facts_.bos))
    ids.insert(ids.begin(), *facts_.bos);
  if (facts_.adds_eos && (ids.empty() || ids.back() != *facts_.eos)) ids.push_back(*facts_.eos);
}

std::string Tokenizer::piece(TokenId id) const {
  PieceDecoder::State state = PieceDecoder::inside();
  return piece(id, state);
}

std::string Tokenizer::piece(TokenId id, PieceDecoder::State& state) const {
  std::string bytes;
  if (!contains(id)) return bytes;
  if (pipeline_) return pipeline_->decode(id, state);
  if (vocabulary_->is_control(id)) {
    bytes = vocabulary_->spelling(id);
  } else {
    model_->append_bytes(id, bytes);
  }
  return bytes;
}

std::string Tokenizer::decode(std::span<const TokenId> ids, bool skip_special,
                              SpacePrefix prefix) const {
  Detokenizer detokenizer(*this, skip_special, prefix);
  std::string text;
  for (const TokenId id : ids) detokenizer.append(id, text);
  return text + detokenizer.finish();
}

}  // namespace octavo
