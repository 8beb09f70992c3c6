// Text to tokens and back, for one model. Immutable, but for which tokens end an answer: any number
// of threads may use it at once.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "core/ids.h"
#include "core/tokenizer_spec.h"
#include "text/end_tokens.h"
#include "text/merge.h"
#include "text/text_span.h"
#include "text/token_matcher.h"
#include "text/token_model.h"
#include "text/token_pipeline.h"
#include "text/vocabulary.h"

namespace octavo {

// The longest text that one call of encode() takes. A run of one letter of this length needs under
// 1 GiB of memory.
constexpr size_t kMaxTextBytes = size_t{16} << 20;

// SentencePiece models of the Llama 2 kind put a space before the text; when a whole text is
// decoded it may be stripped.
enum class SpacePrefix { keep, strip };

class Tokenizer {
 public:
  // Checks all of the spec. An unknown tokenizer model or pre-tokenizer is refused, with the names
  // that are known. Tokens that begin or end a sequence (bos, eos, eot, extra_eog) count as control
  // tokens whatever their type says.
  static Result<Tokenizer> create(TokenizerSpec spec);

  struct EncodeOptions {
    bool parse_special = false;  // recognise control tokens that are spelled out in the text
    bool add_special = false;    // add BOS and EOS by the file's rules, unless already there
    std::stop_token stop = {};
  };
  // Text that is not UTF-8 is refused with the byte's offset, too long text with the limit.
  // cancelled soon after `stop` asks for it.
  Result<std::vector<TokenId>> encode(std::string_view text, EncodeOptions options) const;
  Result<std::vector<TokenId>> encode(std::string_view text, EncodeOptions options,
                                      EncodeStats& stats) const;

  // A rendered chat. Control tokens are recognised only where they lie wholly inside template text;
  // the ordinary text around them is encoded as one run across the borders of spans (I11). Nothing
  // is added unless asked for.
  Result<std::vector<TokenId>> encode(std::span<const TextSpan> spans, bool add_special = false,
                                      std::stop_token stop = {}) const;

  // The bytes of a token, perhaps only part of a character. A control token gives its spelling, an
  // id outside the vocabulary nothing.
  std::string piece(TokenId id) const;

  // As piece(), with what is particular to the beginning of a text.
  std::string piece(TokenId id, PieceDecoder::State& state) const;

  // Valid UTF-8 always: bytes that are no character become U+FFFD.
  std::string decode(std::span<const TokenId> ids, bool skip_special,
                     SpacePrefix prefix = SpacePrefix::keep) const;

  size_t vocab_size() const { return vocabulary_->size(); }
  bool contains(TokenId id) const { return vocabulary_->contains(id); }
  bool is_control(TokenId id) const { return contains(id) && vocabulary_->is_control(id); }
  bool is_unused(TokenId id) const {
    return contains(id) && vocabulary_->type(id) == TokenType::unused;
  }
  bool is_eog(TokenId id) const;  // ends an answer

  // One more token that ends answers. REQUIRES: contains(id), and nobody else uses the tokenizer.
  void end_answers_with(TokenId id, EndReason reason);
  // None from `first` on, which the model cannot write. REQUIRES: as above.
  void forget_ends_from(TokenId first);

  // The control token with this spelling.
  std::optional<TokenId> find_control(std::string_view spelling) const;

  std::optional<TokenId> bos() const { return facts_.bos; }
  std::optional<TokenId> eos() const { return facts_.eos; }
  std::optional<TokenId> eot() const { return facts_.eot; }
  std::optional<TokenId> unknown() const { return facts_.unknown; }
  std::optional<TokenId> padding() const { return facts_.padding; }
  // Those that end an answer, ascending: by the model's files, by their usual names, and those of
  // end_answers_with().
  const std::vector<TokenId>& eog() const { return facts_.eog; }
  std::span<const EndToken> ends() const { return facts_.ends; }  // the same, with the reasons
  bool adds_bos() const { return facts_.adds_bos; }
  bool adds_eos() const { return facts_.adds_eos; }
  bool adds_space_prefix() const { return facts_.adds_space_prefix; }
  bool has_pipeline() const { return pipeline_ != nullptr; }  // it comes from a tokenizer.json
  const std::string& model() const { return facts_.model; }
  const std::string& pretokenizer() const { return facts_.pre; }
  const std::string& chat_template() const { return facts_.chat_template; }
  const std::string& tool_template() const { return facts_.tool_template; }
  const std::vector<std::string>& template_names() const { return facts_.template_names; }

 private:
  struct Facts {
    std::string model, pre, chat_template, tool_template;
    std::vector<std::string> template_names;
    std::optional<TokenId> bos, eos, eot, unknown, padding;
    std::vector<EndToken> ends;
    std::vector<TokenId> eog;
    std::vector<TokenId> strip_left, strip_right;  // ascending
    bool adds_bos, adds_eos, adds_space_prefix;
  };
  // A part of the text in which control tokens are recognised.
  using Region = AddedTokens::Region;

  Tokenizer(std::unique_ptr<const Vocabulary> vocabulary, TokenMatcher control)
      : vocabulary_(std::move(vocabulary)), control_(std::move(control)) {}
  static Facts take_facts(TokenizerSpec& spec, std::vector<EndToken> ends, bool default_adds_bos);
  static Result<std::unique_ptr<const TokenModel>> create_model(const TokenizerSpec& spec,
                                                                const Vocabulary& vocabulary,
                                                                bool& adds_bos);
  Result<std::vector<TokenId>> encode_regions(std::string_view text,
                                              std::span<const Region> regions,
                                              EncodeStats& stats) const;
  Result<void> encode_with_model(std::string_view text, std::span<const Region> regions,
                                 std::vector<TokenId>& ids, EncodeStats& stats) const;
  // What is left of the text from `done` to a control token, and where the text goes on after it,
  // when the token has taken the white space that it takes.
  std::string_view before(std::string_view text, size_t done,
                          const TokenMatcher::Match& match) const;
  size_t after(std::string_view text, const TokenMatcher::Match& match) const;
  void add_special(std::vector<TokenId>& ids) const;

  std::unique_ptr<const Vocabulary> vocabulary_;  // at a fixed address: the model refers to it
  std::unique_ptr<const TokenModel> model_;       // one of these two
  std::unique_ptr<const TokenPipeline> pipeline_;
  TokenMatcher control_;
  Facts facts_;
};

}  // namespace octavo
