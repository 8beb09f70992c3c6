#include "text/byte_bpe.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "base/quote.h"
#include "text/byte_alphabet.h"
#include "text/normal_form.h"

namespace octavo {
namespace {

// See the vocabulary's index: only a crafted file comes near this.
constexpr size_t kMaxProbes = 1024;

uint64_t pair_of(int32_t left, int32_t right) {
  return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
}

// The finaliser of splitmix64: every input bit reaches every output bit.
uint64_t hash_of(uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
  return value ^ (value >> 31);
}

struct NamedMerge {
  std::string_view left, right;
};

// Pieces may begin with the space that separates them, but then they are one space only; look from
// the second byte.
std::optional<NamedMerge> parse_merge(std::string_view line) {
  const size_t space = line.find(' ', 1);
  if (space == std::string_view::npos || space + 1 == line.size()) return std::nullopt;
  return NamedMerge{line.substr(0, space), line.substr(space + 1)};
}

tl::unexpected<Error> bad_merge(size_t index, std::string_view line, std::string_view what) {
  return fail(ErrorCode::corrupt_file,
              fmt::format("tokenizer.ggml.merges[{}] {} {}; convert the model again", index,
                          quote(line), what));
}

class TableRules final : public MergeRules {
 public:
  explicit TableRules(const MergeTable& table) : table_(table) {}
  std::optional<Merge> find(const Symbol& left, const Symbol& right) override {
    if (left.id < 0 || right.id < 0) return std::nullopt;
    return table_.find(left.id, right.id);
  }

 private:
  const MergeTable& table_;
};

}  // namespace

Result<MergeTable> MergeTable::create(const StringTable& merges, const Vocabulary& vocabulary) {
  MergeTable table;
  table.reserve(merges.size());
  std::string joined;
  for (size_t i = 0; i < merges.size(); ++i) {
    const auto merge = parse_merge(merges[i]);
    if (!merge) return bad_merge(i, merges[i], "is not two pieces separated by a space");
    joined.assign(merge->left).append(merge->right);
    const auto left = vocabulary.find(merge->left), right = vocabulary.find(merge->right);
    const auto whole = vocabulary.find(joined);
    if (!left || !right || !whole) {
      return bad_merge(i, merges[i],
                       "names a piece that is not an ordinary token of the vocabulary");
    }
    if (!table.insert(pair_of(raw(*left), raw(*right)), {static_cast<uint32_t>(i), raw(*whole)},
                      /*replaces=*/false)) {
      return bad_merge(i, merges[i], "collides with too many others in the index");
    }
  }
  return table;
}

Result<MergeTable> MergeTable::create_from_pairs(const StringTable& merges, size_t prefix,
                                                 const Vocabulary& vocabulary) {
  MergeTable table;
  table.reserve(merges.size() / 2);
  std::string joined;
  for (size_t i = 0; i + 1 < merges.size(); i += 2) {
    const std::string_view right_text = merges[i + 1];
    joined.assign(merges[i]).append(right_text.substr(std::min(prefix, right_text.size())));
    const auto left = vocabulary.find(merges[i]), right = vocabulary.find(right_text);
    const auto whole = vocabulary.find(joined);
    if (!left || !right || !whole) continue;
    if (!table.insert(pair_of(raw(*left), raw(*right)), {static_cast<uint32_t>(i / 2), raw(*whole)},
                      /*replaces=*/true))
      return bad_merge(i / 2, joined, "collides with too many others in the index");
  }
  return table;
}

void MergeTable::reserve(size_t merges) { slots_.resize(std::bit_ceil(merges * 2 + 1)); }

// Of equal pairs in a GGUF file the earlier counts: it has the better rank.
bool MergeTable::insert(uint64_t pair, Merge merge, bool replaces) {
  const size_t mask = slots_.size() - 1;
  for (size_t probe = 0; probe < kMaxProbes; ++probe) {
    Slot& slot = slots_[(hash_of(pair) + probe) & mask];
    if (slot.pair == pair && !replaces) return true;
    if (slot.pair == kFree || slot.pair == pair) {
      slot = {pair, merge};
      return true;
    }
  }
  return false;
}

std::optional<Merge> MergeTable::find(int32_t left, int32_t right) const {
  const uint64_t pair = pair_of(left, right);
  const size_t mask = slots_.size() - 1;
  for (size_t at = hash_of(pair) & mask; slots_[at].pair != kFree; at = (at + 1) & mask) {
    if (slots_[at].pair == pair) return slots_[at].merge;
  }
  return std::nullopt;
}

struct ByteBpe::Scratch {
  MergeEngine engine;
  std::vector<Symbol> symbols;
};

ByteBpe::ByteBpe(const Vocabulary& vocabulary, PreTokenizer pre, MergeTable merges,
                 TokenMatcher user_defined)
    : vocabulary_(vocabulary),
      pre_(std::move(pre)),
      merges_(std::move(merges)),
      user_defined_(std::move(user_defined)) {
  for (int byte = 0; byte < 256; ++byte) {
    std::string spelling;
    append_byte_spelling(spelling, static_cast<uint8_t>(byte));
    const auto id = vocabulary.find(spelling);
    byte_tokens_[byte] = id ? raw(*id) : -1;
  }
}

Result<std::unique_ptr<ByteBpe>> ByteBpe::create(const Vocabulary& vocabulary, PreTokenizer pre,
                                                 const StringTable& merges) {
  OCTAVO_TRY(TokenMatcher user_defined,
             TokenMatcher::create(entries_of_type(vocabulary, TokenType::user_defined)));
  OCTAVO_TRY(MergeTable table, MergeTable::create(merges, vocabulary));
  return std::unique_ptr<ByteBpe>(
      new ByteBpe(vocabulary, std::move(pre), std::move(table), std::move(user_defined)));
}

Result<void> ByteBpe::encode(std::string_view run, std::vector<TokenId>& out,
                             EncodeStats& stats) const {
  Scratch scratch;
  for (size_t at = 0; at < run.size();) {
    const auto match = user_defined_.find(run, at, run.size());
    OCTAVO_CHECK_OK(encode_words(run.substr(at, match.begin - at), out, scratch, stats));
    if (match.begin < match.end) out.push_back(match.id);
    at = match.end;
  }
  return {};
}

Result<void> ByteBpe::encode_words(std::string_view text, std::vector<TokenId>& out,
                                   Scratch& scratch, EncodeStats& stats) const {
  std::string normal;
  if (pre_.rule().nfc) {
    normal = normalize_nfc(text);
    text = normal;
  }
  OCTAVO_TRY(const auto ends, pre_.split(text));
  size_t begin = 0;
  for (const uint32_t end : ends) {
    if (stats.stop.stop_requested()) break;
    encode_word(text.substr(begin, end - begin), out, scratch, stats);
    begin = end;
  }
  return {};
}

void ByteBpe::encode_word(std::string_view word, std::vector<TokenId>& out, Scratch& scratch,
                          EncodeStats& stats) const {
  if (pre_.rule().whole_words) {
    if (const auto whole = vocabulary_.find(spell_bytes(word))) {
      out.push_back(*whole);
      return;
    }
  }
  scratch.symbols.clear();
  scratch.symbols.reserve(word.size());
  for (uint32_t i = 0; i < word.size(); ++i) {
    scratch.symbols.push_back({i, 1, byte_tokens_[static_cast<uint8_t>(word[i])]});
  }
  TableRules rules(merges_);
  scratch.engine.run(scratch.symbols, rules, stats);
  for (const Symbol& symbol : scratch.symbols) {
    // Like the models' own tokenizers: some vocabularies lack a few control characters, and these
    // are left out.
    symbol.id < 0 ? static_cast<void>(++stats.dropped_bytes) : out.push_back(TokenId{symbol.id});
  }
}

void ByteBpe::append_bytes(TokenId id, std::string& out) const {
  if (vocabulary_.type(id) == TokenType::user_defined) {
    out.append(vocabulary_.spelling(id));
  } else {
    append_spelled_bytes(out, vocabulary_.spelling(id));
  }
}

}  // namespace octavo
