#include "text/sentencepiece.h"

#include <fmt/format.h>

#include <bit>
#include <unordered_map>

#include "text/byte_spelling.h"
#include "text/utf8.h"

namespace octavo {
namespace {

constexpr std::string_view kSpaceMark = "\xE2\x96\x81";  // U+2581

std::string mark_spaces(std::string_view text, bool prefix) {
  std::string out;
  out.reserve(text.size() + text.size() / 2 + kSpaceMark.size());
  if (prefix) out.append(kSpaceMark);
  for (const char byte : text) {
    if (byte == ' ') {
      out.append(kSpaceMark);
    } else {
      out.push_back(byte);
    }
  }
  return out;
}

// Order of float scores, best first, as unsigned integers. REQUIRES: finite.
uint32_t priority_of(float score) {
  const auto bits = std::bit_cast<uint32_t>(score + 0.0f);  // -0 becomes +0
  const uint32_t ascending = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
  return ~ascending;
}

// Joins what the vocabulary has. A piece of type `unused` may appear on the way to a longer one but
// not in the result: how it was joined is remembered, so that it can be taken apart.
class ScoreRules final : public MergeRules {
 public:
  ScoreRules(std::string_view text, const Vocabulary& vocabulary)
      : text_(text), vocabulary_(vocabulary) {}

  std::optional<Merge> find(const Symbol& left, const Symbol& right) override {
    const auto id = vocabulary_.find(text_.substr(left.begin, left.size + right.size));
    if (!id) return std::nullopt;
    if (vocabulary_.type(*id) == TokenType::unused) splits_[raw(*id)] = {left, right};
    return Merge{priority_of(vocabulary_.score(*id)), raw(*id)};
  }

  // Replaces unused pieces by the pieces that they were joined from.
  std::vector<Symbol> take_unused_apart(const std::vector<Symbol>& symbols) const {
    std::vector<Symbol> out, stack;
    for (const Symbol& symbol : symbols) {
      stack.push_back(symbol);
      while (!stack.empty()) {
        const Symbol top = stack.back();
        stack.pop_back();
        const auto split = splits_.find(top.id);
        if (split == splits_.end()) {
          out.push_back(top);
        } else {
          stack.push_back(split->second.right);
          stack.push_back(split->second.left);
        }
      }
    }
    return out;
  }

  bool met_unused() const { return !splits_.empty(); }

 private:
  struct Parts {
    Symbol left, right;
  };
  std::string_view text_;
  const Vocabulary& vocabulary_;
  std::unordered_map<int32_t, Parts> splits_;
};

}  // namespace

SentencePiece::SentencePiece(const Vocabulary& vocabulary, TokenMatcher user_defined,
                             Options options)
    : vocabulary_(vocabulary), user_defined_(std::move(user_defined)), options_(options) {
  byte_tokens_.fill(-1);
}

Result<std::unique_ptr<SentencePiece>> SentencePiece::create(const Vocabulary& vocabulary,
                                                             Options options) {
  if (!vocabulary.has_scores() || !vocabulary.has_types()) {
    return fail(ErrorCode::corrupt_file,
                fmt::format("tokenizer.ggml.{} is missing; the tokenizer model 'llama' needs it. "
                            "Convert the model again",
                            vocabulary.has_scores() ? "token_type" : "scores"));
  }
  // Text is matched after its spaces are marked, so the spellings are marked too.
  auto entries = entries_of_type(vocabulary, TokenType::user_defined);
  for (auto& entry : entries) entry.spelling = mark_spaces(entry.spelling, /*prefix=*/false);
  OCTAVO_TRY(TokenMatcher user_defined, TokenMatcher::create(std::move(entries)));
  std::unique_ptr<SentencePiece> model(
      new SentencePiece(vocabulary, std::move(user_defined), options));
  OCTAVO_CHECK_OK(model->read_byte_tokens());
  model->find_bytes_before_mark();
  if (!model->has_byte_tokens_ && !options.unknown) {
    return fail(ErrorCode::corrupt_file,
                "the vocabulary has no byte tokens and tokenizer.ggml.unknown_token_id is missing: "
                "characters without "
                "a piece cannot be encoded. Set the key in the file");
  }
  return model;
}

Result<void> SentencePiece::read_byte_tokens() {
  size_t found = 0;
  for (size_t i = 0; i < vocabulary_.size(); ++i) {
    const TokenId id{static_cast<int32_t>(i)};
    if (vocabulary_.type(id) != TokenType::byte) continue;
    const auto byte = parse_byte_spelling(vocabulary_.spelling(id));
    if (!byte || byte_tokens_[*byte] >= 0) {
      return fail(ErrorCode::corrupt_file,
                  fmt::format("tokenizer.ggml.tokens[{}] has the type byte but is {}", i,
                              byte ? "a second token of that byte" : "not spelled like <0x0A>"));
    }
    byte_tokens_[*byte] = raw(id);
    ++found;
  }
  if (found != 0 && found != byte_tokens_.size()) {
    return fail(
        ErrorCode::corrupt_file,
        fmt::format("the vocabulary has {} byte tokens; it must have all 256 or none", found));
  }
  has_byte_tokens_ = found != 0;
  return {};
}

void SentencePiece::find_bytes_before_mark() {
  for (size_t i = 0; i < vocabulary_.size(); ++i) {
    const std::string_view spelling = vocabulary_.spelling(TokenId{static_cast<int32_t>(i)});
    for (size_t at = spelling.find(kSpaceMark, 1); at < spelling.size();
         at = spelling.find(kSpaceMark, at + 1)) {
      before_mark_.set(static_cast<uint8_t>(spelling[at - 1]));
    }
  }
}

// One encoding: collects the characters of a word, merges them, appends the tokens, goes on.
class SentencePiece::Run {
 public:
  Run(const SentencePiece& model, std::string_view text, std::vector<TokenId>& out,
      EncodeStats& stats)
      : model_(model), text_(text), out_(out), stats_(stats), rules_(text, model.vocabulary_) {}

  void encode() {
    for (size_t at = 0; at < text_.size() && !stats_.stop.stop_requested();) {
      const auto match = model_.user_defined_.find(text_, at, text_.size());
      while (at < match.begin) at += add_character(at);
      if (match.begin < match.end) {  // a user-defined piece never merges
        end_word();
        emit_token(match.id);
      }
      at = match.end;
    }
    end_word();
  }

 private:
  size_t add_character(size_t at) {
    const size_t size = utf8_char_size(text_, at);
    const std::string_view character = text_.substr(at, size);
    if (character == kSpaceMark && at > 0 &&
        !model_.before_mark_[static_cast<uint8_t>(text_[at - 1])])
      end_word();
    const auto id = model_.vocabulary_.find(character);
    word_.push_back({static_cast<uint32_t>(at), static_cast<uint32_t>(size), id ? raw(*id) : -1});
    return size;
  }

  void end_word() {
    engine_.run(word_, rules_, stats_);
    if (rules_.met_unused()) word_ = rules_.take_unused_apart(word_);
    for (const Symbol& symbol : word_) {
      symbol.id < 0 ? emit_unknown(symbol) : emit_token(TokenId{symbol.id});
    }
    word_.clear();
  }

  void emit_token(TokenId id) {
    out_.push_back(id);
    after_unknown_ = false;
  }

  // Byte tokens; without them, one unknown token for all characters without a piece that follow
  // each other.
  void emit_unknown(const Symbol& symbol) {
    if (!model_.has_byte_tokens_) {
      if (!after_unknown_) out_.push_back(*model_.options_.unknown);
      after_unknown_ = true;
      return;
    }
    for (const char byte : text_.substr(symbol.begin, symbol.size)) {
      out_.push_back(TokenId{model_.byte_tokens_[static_cast<uint8_t>(byte)]});
    }
  }

  const SentencePiece& model_;
  std::string_view text_;
  std::vector<TokenId>& out_;
  EncodeStats& stats_;
  ScoreRules rules_;
  MergeEngine engine_;
  std::vector<Symbol> word_;
  bool after_unknown_ = false;
};

Result<void> SentencePiece::encode(std::string_view run, std::vector<TokenId>& out,
                                   EncodeStats& stats) const {
  if (run.empty()) return {};
  const bool prefix = options_.add_space_prefix &&
                      !(options_.prefix_at_start_only && !out.empty()) &&
                      !(options_.prefix_unless_space && run.starts_with(' '));
  const std::string text = mark_spaces(run, prefix);
  Run(*this, text, out, stats).encode();
  return {};
}

void SentencePiece::append_bytes(TokenId id, std::string& out) const {
  const std::string_view spelling = vocabulary_.spelling(id);
  if (vocabulary_.type(id) == TokenType::byte) {
    if (const auto byte = parse_byte_spelling(spelling)) out.push_back(static_cast<char>(*byte));
    return;
  }
  for (size_t at = 0; at < spelling.size();) {
    const size_t mark = std::min(spelling.find(kSpaceMark, at), spelling.size());
    out.append(spelling.substr(at, mark - at));
    if (mark < spelling.size()) out.push_back(' ');
    at = mark + kSpaceMark.size();
  }
}

}  // namespace octavo
