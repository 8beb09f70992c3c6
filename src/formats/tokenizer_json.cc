#include "formats/tokenizer_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "formats/json_section.h"
#include "formats/quote.h"
#include "formats/shallow_json.h"
#include "formats/tokenizer_json_text.h"

namespace octavo {
namespace {

using nlohmann::json;

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
    OCTAVO_CHECK_OK(check_model(section));
    OCTAVO_CHECK_OK(read_vocabulary(section));
    OCTAVO_CHECK_OK(read_added());
    OCTAVO_CHECK_OK(read_merges(section));
    if (byte_fallback_) mark_bytes();
    OCTAVO_TRY(const auto ignore_merges, section.find_bool("ignore_merges"));
    OCTAVO_CHECK_OK(read_tokenizer_text(root_, byte_fallback_, spec_));
    if (spec_.pre_rule) spec_.pre_rule->whole_words = ignore_merges.value_or(false);
    OCTAVO_CHECK_OK(read_unknown(section));
    OCTAVO_CHECK_OK(read_post_processor(root_, spec_));
    return std::move(spec_);
  }

 private:
  Result<void> check_model(const JsonSection& model) {
    OCTAVO_TRY(const auto type, model.find_string("type"));
    // Old files leave the type away.
    if (type.value_or("BPE") != "BPE")
      return model.error("type", fmt::format("is {}; only BPE is supported", quote(*type)),
                         ErrorCode::unsupported);
    for (const char* field : {"dropout", "continuing_subword_prefix", "end_of_word_suffix"}) {
      const json* value = model.find(field);
      const bool unset = !value || (value->is_string() && value->get<std::string>().empty()) ||
                         (value->is_number() && value->get<double>() == 0);
      if (!unset)
        return model.error(field, "is set, which is not supported", ErrorCode::unsupported);
    }
    OCTAVO_TRY(const auto fallback, model.find_bool("byte_fallback"));
    byte_fallback_ = fallback.value_or(false);
    spec_.model = byte_fallback_ ? "llama" : "gpt2";
    return {};
  }

  Result<void> read_vocabulary(const JsonSection& model) {
    const json* vocab = model.find("vocab");
    if (!vocab || !vocab->is_object() || vocab->empty())
      return model.error("vocab", "is missing, empty or no object");
    for (const auto& [spelling, id] : vocab->items())
      OCTAVO_CHECK_OK(place(spelling, id, "model.vocab"));
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
    ids_.emplace(spelling, static_cast<int32_t>(number));
    return {};
  }

  // REQUIRES: the model has a vocabulary.
  size_t tokens_given() const {
    const json* added = root_.find("added_tokens");
    return root_.find("model")->find("vocab")->size() + (added ? added->size() : 0);
  }

  Result<void> read_added() {
    const json* added = root_.find("added_tokens");
    if (added && !added->is_array()) return root_.error("added_tokens", "is not a list");
    std::vector<int32_t> control, defined;
    for (const json& token : added ? *added : json::array()) {
      if (!token.is_object()) return root_.error("added_tokens", "has an entry that is no object");
      const JsonSection section(token, file_, "added_tokens.");
      OCTAVO_TRY(const auto content, section.find_string("content"));
      if (!content || content->empty()) return section.error("content", "is missing or empty");
      if (!token.contains("id")) return section.error("id", "is missing");
      OCTAVO_CHECK_OK(place(*content, token["id"], "added_tokens"));
      OCTAVO_TRY(const auto special, section.find_bool("special"));
      const auto id = token["id"].get<int32_t>();
      (special.value_or(false) ? control : defined).push_back(id);
      OCTAVO_CHECK_OK(read_flags(section, *content, special.value_or(false), TokenId{id}));
    }
    fill_table();
    for (const int32_t id : control) spec_.types[static_cast<size_t>(id)] = TokenType::control;
    for (const int32_t id : defined) spec_.types[static_cast<size_t>(id)] = TokenType::user_defined;
    return {};
  }

  Result<void> read_flags(const JsonSection& token, const std::string& content, bool special,
                          TokenId id) {
    for (const char* flag : {"single_word", "lstrip", "rstrip"}) {
      OCTAVO_TRY(const auto set, token.find_bool(flag));
      if (!set.value_or(false)) continue;
      const std::string_view name = flag;
      if (name == "single_word" || !special)
        return token.error(flag,
                           fmt::format("is true for {}, which is not supported", quote(content)),
                           ErrorCode::unsupported);
      (name == "lstrip" ? spec_.strip_left : spec_.strip_right).push_back(id);
    }
    return {};
  }

  void fill_table() {
    spec_.types.assign(spellings_.size(), TokenType::normal);
    for (size_t i = 0; i < spellings_.size(); ++i) {
      spec_.tokens.push_back(spellings_[i].value_or(""));
      if (!spellings_[i]) spec_.types[i] = TokenType::unused;
    }
  }

  // "left right", or a pair.
  Result<void> read_merges(const JsonSection& model) {
    const json* merges = model.find("merges");
    if (!merges || !merges->is_array()) return model.error("merges", "is missing or no list");
    if (byte_fallback_) spec_.scores.assign(spellings_.size(), kNeverMerged);
    for (size_t i = 0; i < merges->size(); ++i) {
      const auto pair = parse_merge((*merges)[i]);
      if (!pair) return model.error("merges", fmt::format("has no pair of pieces at place {}", i));
      if (byte_fallback_) {
        OCTAVO_CHECK_OK(score(model, pair->first + pair->second, i));
      } else {
        spec_.merges.push_back(fmt::format("{} {}", pair->first, pair->second));
      }
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

  // SentencePiece's order: a piece joins at the rank of its first merge.
  Result<void> score(const JsonSection& model, const std::string& piece, size_t rank) {
    const auto id = ids_.find(piece);
    if (id == ids_.end())
      return model.error(
          "merges",
          fmt::format("make {} at place {}, which is not in the vocabulary", quote(piece), rank));
    float& score = spec_.scores[static_cast<size_t>(id->second)];
    score = std::max(score, -static_cast<float>(rank));
    return {};
  }

  void mark_bytes() {
    for (int byte = 0; byte < 256; ++byte) {
      const auto id = ids_.find(fmt::format("<0x{:02X}>", byte));
      if (id != ids_.end()) spec_.types[static_cast<size_t>(id->second)] = TokenType::byte;
    }
  }

  Result<void> read_unknown(const JsonSection& model) {
    OCTAVO_TRY(const auto unknown, model.find_string("unk_token"));
    if (!unknown) return {};
    const auto id = ids_.find(*unknown);
    if (id == ids_.end())
      return model.error("unk_token", fmt::format("{} is not in the vocabulary", quote(*unknown)));
    spec_.unknown = TokenId{id->second};
    if (byte_fallback_) spec_.types[static_cast<size_t>(id->second)] = TokenType::unknown;
    return {};
  }

  static constexpr size_t kMaxHole = 4096;
  static constexpr float kNeverMerged = -1e9f;  // but for single characters, which need no merge

  JsonSection root_;
  const std::string& file_;
  bool byte_fallback_ = false;
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
