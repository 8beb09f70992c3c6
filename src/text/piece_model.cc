#include "text/piece_model.h"

#include <fmt/format.h>

#include "text/rank_bpe.h"
#include "text/unigram.h"
#include "text/wordpiece.h"

namespace octavo {
namespace {

// Words that are tokens, and nothing smaller.
class WordLevel final : public PieceModel {
 public:
  WordLevel(const Vocabulary& vocabulary, TokenId unknown)
      : vocabulary_(vocabulary), unknown_(unknown) {}

  void encode(std::string_view word, std::vector<TokenId>& out, EncodeStats&) const override {
    out.push_back(vocabulary_.find(word).value_or(unknown_));
  }

 private:
  const Vocabulary& vocabulary_;
  TokenId unknown_;
};

}  // namespace

Result<std::unique_ptr<const PieceModel>> PieceModel::create(const PieceModelSpec& spec,
                                                             const Vocabulary& vocabulary) {
  using Kind = PieceModelSpec::Kind;
  if (spec.kind != Kind::bpe && !spec.unknown)
    return fail(ErrorCode::unsupported,
                "the tokenizer's model names no unknown token for what its vocabulary lacks; only "
                "BPE can do without one");
  switch (spec.kind) {
    case Kind::bpe:
      return RankBpe::create(spec, vocabulary);
    case Kind::unigram:
      return Unigram::create(spec, vocabulary);
    case Kind::wordpiece:
      return std::unique_ptr<const PieceModel>(std::make_unique<WordPiece>(spec, vocabulary));
    case Kind::wordlevel:
      break;
  }
  return std::unique_ptr<const PieceModel>(std::make_unique<WordLevel>(vocabulary, *spec.unknown));
}

ByteTokens::ByteTokens(const Vocabulary& vocabulary) {
  for (size_t byte = 0; byte < ids_.size(); ++byte) {
    const auto id = vocabulary.find(fmt::format("<0x{:02X}>", byte));
    ids_[byte] = id ? raw(*id) : -1;
  }
}

bool ByteTokens::append(std::string_view bytes, std::vector<TokenId>& out) const {
  const size_t before = out.size();
  for (const char byte : bytes) {
    const int32_t id = ids_[static_cast<uint8_t>(byte)];
    if (id < 0) {
      out.resize(before);
      return false;
    }
    out.push_back(TokenId{id});
  }
  return true;
}

}  // namespace octavo
