#include "text/unigram.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "text/utf8.h"

namespace octavo {
namespace {

constexpr double kUnknownPenalty = 10;

}  // namespace

// Level by level: a node's edges are the next bytes of a range of the sorted pieces.
PieceTrie::PieceTrie(std::vector<Piece> pieces) {
  std::stable_sort(pieces.begin(), pieces.end(),
                   [](const Piece& a, const Piece& b) { return a.text < b.text; });
  struct Range {
    size_t begin, end, depth;
  };
  std::vector<Range> ranges = {{0, pieces.size(), 0}};
  nodes_.emplace_back();
  for (size_t node = 0; node < ranges.size(); ++node) {
    auto [at, end, depth] = ranges[node];
    for (; at < end && pieces[at].text.size() == depth; ++at) nodes_[node].id = pieces[at].id;
    nodes_[node].first_edge = static_cast<uint32_t>(bytes_.size());
    while (at < end) {
      const char byte = pieces[at].text[depth];
      const size_t begin = at;
      while (at < end && pieces[at].text[depth] == byte) ++at;
      bytes_.push_back(static_cast<uint8_t>(byte));
      targets_.push_back(static_cast<uint32_t>(ranges.size()));
      ranges.push_back({begin, at, depth + 1});
      nodes_.emplace_back();
      ++nodes_[node].edges;
    }
  }
}

uint32_t PieceTrie::next(uint32_t node, uint8_t byte) const {
  const auto begin = bytes_.begin() + nodes_[node].first_edge, end = begin + nodes_[node].edges;
  const auto edge = std::lower_bound(begin, end, byte);
  if (edge == end || *edge != byte) return kNone;
  return targets_[static_cast<size_t>(edge - bytes_.begin())];
}

Unigram::Unigram(const PieceModelSpec& spec, const Vocabulary& vocabulary, PieceTrie trie,
                 double unknown_score)
    : vocabulary_(vocabulary),
      trie_(std::move(trie)),
      scores_(spec.scores),
      unknown_score_(unknown_score),
      unknown_(*spec.unknown),
      byte_fallback_(spec.byte_fallback),
      bytes_(vocabulary) {}

Result<std::unique_ptr<const PieceModel>> Unigram::create(const PieceModelSpec& spec,
                                                          const Vocabulary& vocabulary) {
  if (spec.scores.size() != vocabulary.size())
    return fail(ErrorCode::corrupt_file, "the tokenizer's Unigram model has no score per token");
  std::vector<PieceTrie::Piece> pieces;
  double least = INFINITY;
  for (size_t i = 0; i < vocabulary.size(); ++i) {
    const TokenId id{static_cast<int32_t>(i)};
    const std::string_view text = vocabulary.spelling(id);
    if (!spec.in_vocabulary[i]) continue;
    if (!std::isfinite(spec.scores[i]))
      return fail(ErrorCode::corrupt_file, fmt::format("token {} has no finite score", i));
    if (text.size() > kLongestPiece)
      return fail(ErrorCode::unsupported, fmt::format("token {} has {} bytes; the limit is {}", i,
                                                      text.size(), kLongestPiece));
    least = std::min(least, spec.scores[i]);
    if (!text.empty() && vocabulary.find(text)) pieces.push_back({text, raw(id)});
  }
  return std::unique_ptr<const PieceModel>(
      new Unigram(spec, vocabulary, PieceTrie(std::move(pieces)), least - kUnknownPenalty));
}

std::vector<Unigram::Best> Unigram::best_ways(std::string_view word, EncodeStats& stats) const {
  std::vector<Best> best(word.size() + 1);
  const auto offer = [&](size_t begin, size_t end, double score, int32_t id) {
    Best& place = best[end];
    const double sum = best[begin].score + score;
    if (place.begin != UINT32_MAX && sum <= place.score) return;
    place = {sum, static_cast<uint32_t>(begin), id};
  };
  for (size_t at = 0; at < word.size();) {
    const size_t size = utf8_char_size(word, at);
    bool single = false;
    uint32_t node = PieceTrie::kRoot;
    for (size_t end = at; end < word.size(); ++stats.lookups) {
      node = trie_.next(node, static_cast<uint8_t>(word[end++]));
      if (node == PieceTrie::kNone) break;
      const int32_t id = trie_.id(node);
      if (id < 0) continue;
      offer(at, end, scores_[static_cast<size_t>(id)], id);
      single = single || end == at + size;
    }
    if (!single) offer(at, at + size, unknown_score_, raw(unknown_));
    at += size;
  }
  return best;
}

// Characters without a piece that follow each other are one.
void Unigram::encode(std::string_view word, std::vector<TokenId>& out, EncodeStats& stats) const {
  const std::vector<Best> best = best_ways(word, stats);
  struct Piece {
    size_t begin, end;
    bool unknown;
  };
  std::vector<Piece> pieces;  // last first
  for (size_t end = word.size(); end > 0; end = best[end].begin) {
    const bool unknown = best[end].id == raw(unknown_);
    if (unknown && !pieces.empty() && pieces.back().unknown)
      pieces.back().begin = best[end].begin;
    else
      pieces.push_back({best[end].begin, end, unknown});
  }
  for (auto piece = pieces.rbegin(); piece != pieces.rend(); ++piece)
    append(word.substr(piece->begin, piece->end - piece->begin), out);
}

void Unigram::append(std::string_view piece, std::vector<TokenId>& out) const {
  if (const auto id = vocabulary_.find(piece))
    out.push_back(*id);
  else if (!byte_fallback_ || !bytes_.append(piece, out))
    out.push_back(unknown_);
}

}  // namespace octavo
