#include "formats/tokenizer_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "formats/json_section.h"
#include "formats/quote.h"
#include "formats/shallow_json.h"
#include "formats/tokenizer_json_pipeline.h"
#include "formats/tokenizer_json_post.h"
#include "formats/tokenizer_json_steps.h"
#include "formats/tokenizer_json_text.h"

namespace octavo {
namespace {

using nlohmann::json;
using tokenizer_json::flag;

constexpr size_t kMaxBytes = size_t{64} << 20;  // the largest published have half of it
constexpr int kMaxDepth = 32;
constexpr size_t kMaxTokens = size_t{1} << 24;

class TokenizerReader {
 public:
  TokenizerReader(const json& root, const std::string& file) : root_(root, file, ""), file_(file) {}

  Result<TokenizerSpec> read() && {
    const json* model = root_.find("model");
    if (!model || !model->is_object()) return root_.error("model", "is missing or no object");
    const JsonSection section(*model, file_, "model.");
    TokenPipelineSpec pipeline;
    OCTAVO_TRY(pipeline.model.kind, read_kind(section));
    OCTAVO_CHECK_OK(read_vocabulary(section, pipeline.model));
    OCTAVO_TRY(pipeline.added, read_added());
    OCTAVO_CHECK_OK(read_model(section, pipeline.model));
    OCTAVO_CHECK_OK(read_pipeline_steps(root_, pipeline));
    OCTAVO_CHECK_OK(read_post_processor(root_, spec_));
    if (pipeline.model.kind == Kind::bpe) say_as_gguf(pipeline.model);
    spec_.pipeline = std::move(pipeline);
    return std::move(spec_);
  }

 private:
  using Kind = PieceModelSpec::Kind;

  // Old files leave the type away.
  Result<Kind> read_kind(const JsonSection& model) {
    struct Name {
      std::string_view type, model;
      Kind kind;
    };
    constexpr Name kNames[] = {{"BPE", "bpe", Kind::bpe},
                               {"Unigram", "unigram", Kind::unigram},
                               {"WordPiece", "wordpiece", Kind::wordpiece},
                               {"WordLevel", "wordlevel", Kind::wordlevel}};
    OCTAVO_TRY(const auto type, model.find_string("type"));
    for (const Name& name : kNames) {
      if (name.type != type.value_or("BPE")) continue;
      spec_.model = name.model;
      return name.kind;
    }
    return model.error(
        "type", fmt::format("is {}; known are BPE, Unigram, WordPiece and WordLevel", quote(*type)),
        ErrorCode::unsupported);
  }

  Result<void> read_vocabulary(const JsonSection& model, PieceModelSpec& out) {
    const json* vocab = model.find("vocab");
    const bool scored = out.kind == Kind::unigram;
    if (!vocab || !(scored ? vocab->is_array() : vocab->is_object()) || vocab->empty())
      return model.error("vocab",
                         fmt::format("is missing, empty or no {}", scored ? "list" : "object"));
    if (scored) return read_scored(*vocab, out);
    for (const auto& [spelling, id] : vocab->items())
      OCTAVO_CHECK_OK(place(spelling, id, "model.vocab"));
    for (const auto& spelling : spellings_) out.in_vocabulary.push_back(spelling.has_value());
    return {};
  }

  Result<void> read_scored(const json& vocab, PieceModelSpec& out) {
    if (vocab.size() > kMaxTokens) return root_.error("model.vocab", "has too many pieces");
    for (size_t i = 0; i < vocab.size(); ++i) {
      const json& pair = vocab[i];
      if (!pair.is_array() || pair.size() != 2 || !pair[0].is_string() || !pair[1].is_number())
        return root_.error("model.vocab",
                           fmt::format("has no piece with its score at place {}", i));
      out.scores.push_back(pair[1].get<double>());
      ids_[spellings_.emplace_back(pair[0].get<std::string>()).value()] = static_cast<int32_t>(i);
    }
    // Of equal pieces the last counts.
    for (size_t i = 0; i < spellings_.size(); ++i)
      out.in_vocabulary.push_back(ids_[*spellings_[i]] == static_cast<int32_t>(i));
    return {};
  }

  // Added tokens are in the vocabulary too, or come after it.
  Result<void> place(const std::string& spelling, const json& id, std::string_view where) {
    const uint64_t number = id.is_number_unsigned() ? id.get<uint64_t>() : kMaxTokens;
    if (number >= kMaxTokens)
      return root_.error(
          where, fmt::format("gives {} no id from 0 to {}", quote(spelling), kMaxTokens - 1));
    // A few holes are what real files have; a file must not make a gigabyte of them.
    if (number >= tokens_given() + kMaxHole)
      return root_.error(
          where, fmt::format("gives {} the id {}, far beyond the others", quote(spelling), number));
    if (number >= spellings_.size()) spellings_.resize(number + 1);
    auto& slot = spellings_[number];
    if (slot && *slot != spelling)
      return root_.error(where, fmt::format("gives the id {} to {} and to {}", number, quote(*slot),
                                            quote(spelling)));
    slot = spelling;
    const auto [known, fresh] = ids_.emplace(spelling, static_cast<int32_t>(number));
    if (!fresh && known->second != static_cast<int32_t>(number))
      return root_.error(
          where, fmt::format("gives {} the ids {} and {}", quote(spelling), known->second, number));
    return {};
  }

  // REQUIRES: the model has a vocabulary.
  size_t tokens_given() const {
    const json* added = root_.find("added_tokens");
    return root_.find("model")->find("vocab")->size() + (added ? added->size() : 0);
  }

  Result<std::vector<AddedToken>> read_added() {
    const json* added = root_.find("added_tokens");
    if (added && !added->is_array()) return root_.error("added_tokens", "is not a list");
    std::vector<AddedToken> tokens;
    for (const json& token : added ? *added : json::array()) {
      if (!token.is_object()) return root_.error("added_tokens", "has an entry that is no object");
      OCTAVO_TRY(tokens.emplace_back(), read_token(JsonSection(token, file_, "added_tokens.")));
    }
    fill_table();
    for (const AddedToken& token : tokens) {
      spec_.types[static_cast<size_t>(raw(token.id))] =
          token.special ? TokenType::control : TokenType::user_defined;
      if (token.strip_left) spec_.strip_left.push_back(token.id);
      if (token.strip_right) spec_.strip_right.push_back(token.id);
    }
    return tokens;
  }

  Result<AddedToken> read_token(const JsonSection& section) {
    AddedToken token;
    OCTAVO_TRY(const auto content, section.find_string("content"));
    if (!content || content->empty()) return section.error("content", "is missing or empty");
    const json* id = section.find("id");
    if (!id) return section.error("id", "is missing");
    OCTAVO_CHECK_OK(place(*content, *id, "added_tokens"));
    token.content = *content;
    token.id = TokenId{id->get<int32_t>()};
    OCTAVO_TRY(token.special, flag(section, "special", false));
    OCTAVO_TRY(token.single_word, flag(section, "single_word", false));
    OCTAVO_TRY(token.strip_left, flag(section, "lstrip", false));
    OCTAVO_TRY(token.strip_right, flag(section, "rstrip", false));
    OCTAVO_TRY(token.normalized, flag(section, "normalized", !token.special));
    return token;
  }

  void fill_table() {
    spec_.types.assign(spellings_.size(), TokenType::normal);
    for (size_t i = 0; i < spellings_.size(); ++i) {
      spec_.tokens.push_back(spellings_[i].value_or(""));
      if (!spellings_[i]) spec_.types[i] = TokenType::unused;
    }
  }

  Result<void> read_model(const JsonSection& section, PieceModelSpec& out) {
    OCTAVO_TRY(out.unknown, read_unknown(section, out));
    OCTAVO_TRY(out.byte_fallback, flag(section, "byte_fallback", false));
    if (out.kind == Kind::unigram) out.scores.resize(spellings_.size());
    if (out.kind == Kind::wordpiece) return read_wordpiece(section, out);
    return out.kind == Kind::bpe ? read_bpe(section, out) : Result<void>();
  }

  // Unigram gives the id, the others the spelling.
  Result<std::optional<TokenId>> read_unknown(const JsonSection& model, const PieceModelSpec& out) {
    if (out.kind == Kind::unigram) {
      OCTAVO_TRY(const auto id,
                 model.find_number("unk_id", 0, static_cast<int64_t>(out.scores.size()) - 1));
      if (!id) return std::optional<TokenId>();
      return std::optional(TokenId{static_cast<int32_t>(*id)});
    }
    OCTAVO_TRY(const auto unknown, model.find_string("unk_token"));
    if (!unknown) return std::optional<TokenId>();
    const auto id = ids_.find(*unknown);
    if (id == ids_.end())
      return model.error("unk_token", fmt::format("{} is not in the vocabulary", quote(*unknown)));
    return std::optional(TokenId{id->second});
  }

  Result<void> read_wordpiece(const JsonSection& model, PieceModelSpec& out) {
    OCTAVO_TRY(const auto prefix, model.find_string("continuing_subword_prefix"));
    OCTAVO_TRY(const auto longest, model.find_number("max_input_chars_per_word", 0, kLongestWord));
    out.prefix = prefix.value_or("##");
    out.longest_word = static_cast<size_t>(longest.value_or(100));
    return {};
  }

  Result<void> read_bpe(const JsonSection& model, PieceModelSpec& out) {
    const json* dropout = model.find("dropout");
    if (dropout && !(dropout->is_number() && dropout->get<double>() == 0))
      return model.error("dropout", "is set, which is not supported", ErrorCode::unsupported);
    OCTAVO_TRY(const auto prefix, model.find_string("continuing_subword_prefix"));
    OCTAVO_TRY(const auto suffix, model.find_string("end_of_word_suffix"));
    out.prefix = prefix.value_or("");
    out.suffix = suffix.value_or("");
    OCTAVO_TRY(out.fuse_unknown, flag(model, "fuse_unk", false));
    OCTAVO_TRY(out.whole_words, flag(model, "ignore_merges", false));
    return read_merges(model, out);
  }

  // "left right", or a pair.
  Result<void> read_merges(const JsonSection& model, PieceModelSpec& out) {
    const json* merges = model.find("merges");
    if (!merges || !merges->is_array()) return model.error("merges", "is missing or no list");
    for (size_t i = 0; i < merges->size(); ++i) {
      const auto pair = parse_merge((*merges)[i]);
      if (!pair) return model.error("merges", fmt::format("has no pair of pieces at place {}", i));
      const auto& [left, right] = *pair;
      for (const std::string& piece :
           {left, right, left + right.substr(std::min(out.prefix.size(), right.size()))})
        if (!ids_.contains(piece))
          return model.error("merges", fmt::format("need {} at place {}, which is not in the "
                                                   "vocabulary",
                                                   quote(piece), i));
      out.merges.push_back(left);
      out.merges.push_back(right);
    }
    return {};
  }

  static std::optional<std::pair<std::string, std::string>> parse_merge(const json& merge) {
    if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string())
      return std::pair(merge[0].get<std::string>(), merge[1].get<std::string>());
    if (!merge.is_string()) return std::nullopt;
    const auto& text = merge.get_ref<const std::string&>();
    const size_t space = text.find(' ');
    if (space == std::string::npos || text.find(' ', space + 1) != std::string::npos)
      return std::nullopt;
    return std::pair(text.substr(0, space), text.substr(space + 1));
  }

  // Leaves spec.model as it is where no GGUF file could say the like.
  void say_as_gguf(const PieceModelSpec& bpe) {
    TokenizerSpec text;
    if (!bpe.prefix.empty() || !bpe.suffix.empty()) return;
    if (!read_tokenizer_text(root_, bpe.byte_fallback, text)) return;
    spec_.model = bpe.byte_fallback ? "llama" : "gpt2";
    spec_.pre_rule = std::move(text.pre_rule);
    if (spec_.pre_rule) spec_.pre_rule->whole_words = bpe.whole_words;
    spec_.add_space_prefix = text.add_space_prefix;
    spec_.space_prefix_at_start_only = text.space_prefix_at_start_only;
    spec_.space_prefix_unless_space = text.space_prefix_unless_space;
    spec_.unknown = bpe.unknown;
    if (bpe.byte_fallback)
      score_pieces(bpe);
    else
      for (size_t i = 0; i + 1 < bpe.merges.size(); i += 2)
        spec_.merges.push_back(fmt::format("{} {}", bpe.merges[i], bpe.merges[i + 1]));
  }

  // SentencePiece's order: a piece joins at the rank of its first merge.
  void score_pieces(const PieceModelSpec& bpe) {
    spec_.scores.assign(spellings_.size(), kNeverMerged);
    for (size_t i = 0; i + 1 < bpe.merges.size(); i += 2) {
      const auto id = ids_.find(std::string(bpe.merges[i]).append(bpe.merges[i + 1]));
      float& score = spec_.scores[static_cast<size_t>(id->second)];
      score = std::max(score, -static_cast<float>(i / 2));
    }
    for (int byte = 0; byte < 256; ++byte) {
      const auto id = ids_.find(fmt::format("<0x{:02X}>", byte));
      if (id != ids_.end()) spec_.types[static_cast<size_t>(id->second)] = TokenType::byte;
    }
    if (bpe.unknown) spec_.types[static_cast<size_t>(raw(*bpe.unknown))] = TokenType::unknown;
  }

  static constexpr size_t kMaxHole = 4096;
  static constexpr int64_t kLongestWord = 256;
  static constexpr float kNeverMerged = -1e9f;  // but for single characters, which need no merge

  JsonSection root_;
  const std::string& file_;
  std::vector<std::optional<std::string>> spellings_;  // by id
  std::unordered_map<std::string, int32_t> ids_;
  TokenizerSpec spec_;
};

}  // namespace

Result<TokenizerSpec> parse_tokenizer_json(std::string_view text, const std::string& name) {
  if (text.size() > kMaxBytes)
    return fail(ErrorCode::unsupported, fmt::format("{}: has {} bytes, above the limit of {}", name,
                                                    text.size(), kMaxBytes));
  const StrictJson parsed = parse_strict_json(text, kMaxDepth);
  if (parsed.too_deep)
    return fail(ErrorCode::unsupported,
                fmt::format("{}: is nested deeper than {} levels", name, kMaxDepth));
  if (!parsed.root.is_object())
    return fail(ErrorCode::corrupt_file, fmt::format("{}: is not a JSON object", name));
  if (parsed.repeated_key)
    return fail(ErrorCode::corrupt_file,
                fmt::format("{}: {} is given more than once", name, quote(*parsed.repeated_key)));
  return TokenizerReader(parsed.root, name).read();
}

std::optional<TokenId> find_token(const TokenizerSpec& spec, std::string_view spelling) {
  for (size_t i = 0; i < spec.tokens.size(); ++i)
    if (spec.tokens[i] == spelling && !spelling.empty()) return TokenId{static_cast<int32_t>(i)};
  return std::nullopt;
}

}  // namespace octavo
