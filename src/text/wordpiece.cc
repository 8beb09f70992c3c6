#include "text/wordpiece.h"

#include <algorithm>
#include <optional>

#include "text/characters.h"

namespace octavo {
namespace {

struct Found {
  TokenId id;
  size_t size;  // bytes of the word
};

size_t count_characters(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char byte) {
    return (static_cast<uint8_t>(byte) & 0xC0) != 0x80;
  }));
}

// Where a prefix of at most `most` bytes ends between characters.
size_t cut_before(std::string_view text, size_t most) {
  if (text.size() <= most) return text.size();
  return previous_utf8_char(text, most + 1);
}

std::optional<Found> longest(const Vocabulary& vocabulary, std::string_view prefix,
                             std::string_view rest, EncodeStats& stats) {
  std::string piece(prefix);
  piece.append(rest.substr(0, cut_before(rest, vocabulary.longest_spelling())));
  while (piece.size() > prefix.size()) {
    ++stats.lookups;
    if (const auto id = vocabulary.find(piece)) return Found{*id, piece.size() - prefix.size()};
    piece.resize(previous_utf8_char(piece, piece.size()));
  }
  return std::nullopt;
}

}  // namespace

WordPiece::WordPiece(const PieceModelSpec& spec, const Vocabulary& vocabulary)
    : vocabulary_(vocabulary),
      prefix_(spec.prefix),
      longest_word_(spec.longest_word),
      unknown_(*spec.unknown) {}

void WordPiece::encode(std::string_view word, std::vector<TokenId>& out, EncodeStats& stats) const {
  const size_t before = out.size();
  bool known = count_characters(word) <= longest_word_;
  for (size_t at = 0; known && at < word.size();) {
    const auto found =
        longest(vocabulary_, at == 0 ? std::string_view() : prefix_, word.substr(at), stats);
    known = found.has_value();
    if (!known) break;
    out.push_back(found->id);
    at += found->size;
  }
  if (known) return;
  out.resize(before);
  out.push_back(unknown_);
}

}  // namespace octavo
