// Unigram: of all ways to cut a word into pieces, the one with the highest sum of scores.
#pragma once

#include <cstdint>
#include <vector>

#include "text/piece_model.h"

namespace octavo {

// The pieces of a vocabulary by their bytes.
class PieceTrie {
 public:
  struct Node {
    uint32_t first_edge = 0, edges = 0;  // ascending by byte
    int32_t id = -1;                     // the piece that ends here
  };
  // `pieces` need not be sorted; of equal ones the last counts.
  struct Piece {
    std::string_view text;
    int32_t id;
  };
  explicit PieceTrie(std::vector<Piece> pieces);

  static constexpr uint32_t kRoot = 0, kNone = UINT32_MAX;
  uint32_t next(uint32_t node, uint8_t byte) const;
  int32_t id(uint32_t node) const { return nodes_[node].id; }

 private:
  std::vector<Node> nodes_;
  std::vector<uint8_t> bytes_;     // of the edges
  std::vector<uint32_t> targets_;  // of the edges
};

class Unigram final : public PieceModel {
 public:
  // Errors: corrupt_file (scores), unsupported (a piece of more than kLongestPiece bytes: the time
  // for a text grows with it).
  static Result<std::unique_ptr<const PieceModel>> create(const PieceModelSpec& spec,
                                                          const Vocabulary& vocabulary);
  static constexpr size_t kLongestPiece = 1024;

  void encode(std::string_view word, std::vector<TokenId>& out, EncodeStats& stats) const override;

 private:
  struct Best {
    double score = 0;
    uint32_t begin = UINT32_MAX;  // of the last piece; UINT32_MAX: no way leads here
    int32_t id = -1;
  };
  Unigram(const PieceModelSpec& spec, const Vocabulary& vocabulary, PieceTrie trie,
          double unknown_score);
  std::vector<Best> best_ways(std::string_view word, EncodeStats& stats) const;
  void append(std::string_view piece, std::vector<TokenId>& out) const;

  const Vocabulary& vocabulary_;
  PieceTrie trie_;
  std::vector<double> scores_;
  double unknown_score_;
  TokenId unknown_;
  bool byte_fallback_;
  ByteTokens bytes_;
};

}  // namespace octavo
