#include "text/rank_bpe.h"

#include <fmt/format.h>

#include "text/utf8.h"

namespace octavo {
namespace {

class TableRules final : public MergeRules {
 public:
  explicit TableRules(const MergeTable& table) : table_(table) {}
  std::optional<Merge> find(const Symbol& left, const Symbol& right) override {
    return table_.find(left.id, right.id);
  }

 private:
  const MergeTable& table_;
};

}  // namespace

// The characters of a word, before they are merged.
class RankBpe::Word {
 public:
  Word(const RankBpe& model, std::string_view text, EncodeStats& stats)
      : model_(model), text_(text), stats_(stats) {}

  std::vector<Symbol> take_symbols() && {
    for (size_t at = 0; at < text_.size();) {
      const size_t size = utf8_char_size(text_, at);
      add(at, size);
      at += size;
    }
    flush();
    return std::move(symbols_);
  }

 private:
  void add(size_t at, size_t size) {
    const std::string_view character = text_.substr(at, size);
    const bool first = at == 0, last = at + size == text_.size();
    if (const auto id = model_.find(character, first, last)) {
      flush();
      push(*id, size);
    } else if (!add_bytes(character, first, last)) {
      add_unknown(size);
    }
  }

  bool add_bytes(std::string_view character, bool first, bool last) {
    if (!model_.byte_fallback_) return false;
    std::vector<TokenId> ids;
    const std::string spelled =
        fmt::format("{}{}{}", first ? "" : model_.prefix_, character, last ? model_.suffix_ : "");
    if (!model_.bytes_.append(spelled, ids)) return false;
    for (const TokenId id : ids) push(id, 1);
    return true;
  }

  // Held back until it is known whether more unknown characters follow.
  void add_unknown(size_t size) {
    if (!model_.unknown_) {
      stats_.dropped_bytes += size;
      return;
    }
    if (unknown_bytes_ > 0 && !model_.fuse_unknown_) flush();
    unknown_bytes_ += size;
  }

  void flush() {
    if (unknown_bytes_ > 0) push(*model_.unknown_, unknown_bytes_);
    unknown_bytes_ = 0;
  }

  void push(TokenId id, size_t size) {
    symbols_.push_back({place_, static_cast<uint32_t>(size), raw(id)});
    place_ += static_cast<uint32_t>(size);
  }

  const RankBpe& model_;
  std::string_view text_;
  EncodeStats& stats_;
  std::vector<Symbol> symbols_;
  uint32_t place_ = 0;
  size_t unknown_bytes_ = 0;
};

RankBpe::RankBpe(const PieceModelSpec& spec, const Vocabulary& vocabulary, MergeTable merges)
    : vocabulary_(vocabulary),
      merges_(std::move(merges)),
      prefix_(spec.prefix),
      suffix_(spec.suffix),
      unknown_(spec.unknown),
      byte_fallback_(spec.byte_fallback),
      fuse_unknown_(spec.fuse_unknown),
      whole_words_(spec.whole_words),
      bytes_(vocabulary) {}

Result<std::unique_ptr<const PieceModel>> RankBpe::create(const PieceModelSpec& spec,
                                                          const Vocabulary& vocabulary) {
  OCTAVO_TRY(MergeTable merges,
             MergeTable::create_from_pairs(spec.merges, spec.prefix.size(), vocabulary));
  return std::unique_ptr<const PieceModel>(new RankBpe(spec, vocabulary, std::move(merges)));
}

std::optional<TokenId> RankBpe::find(std::string_view character, bool first, bool last) const {
  if (prefix_.empty() && suffix_.empty()) return vocabulary_.find(character);
  return vocabulary_.find(
      fmt::format("{}{}{}", first ? "" : prefix_, character, last ? suffix_ : ""));
}

void RankBpe::encode(std::string_view word, std::vector<TokenId>& out, EncodeStats& stats) const {
  if (whole_words_) {
    if (const auto whole = vocabulary_.find(word)) {
      out.push_back(*whole);
      return;
    }
  }
  std::vector<Symbol> symbols = Word(*this, word, stats).take_symbols();
  MergeEngine engine;
  TableRules rules(merges_);
  engine.run(symbols, rules, stats);
  for (const Symbol& symbol : symbols) out.push_back(TokenId{symbol.id});
}

}  // namespace octavo
