#include "text/added_tokens.h"

#include <algorithm>

#include "text/characters.h"

namespace octavo {
namespace {

size_t space_before(std::string_view text, size_t at) {
  while (at > 0) {
    const size_t last = previous_utf8_char(text, at);
    if (!is_white_space(utf8_char(text, last))) break;
    at = last;
  }
  return at;
}

size_t space_after(std::string_view text, size_t at) {
  while (at < text.size() && is_white_space(utf8_char(text, at))) at += utf8_char_size(text, at);
  return at;
}

bool stands_alone(std::string_view text, size_t begin, size_t end) {
  const bool joined_left = begin > 0 && is_word(utf8_char(text, previous_utf8_char(text, begin)));
  const bool joined_right = end < text.size() && is_word(utf8_char(text, end));
  return !joined_left && !joined_right;
}

}  // namespace

Result<AddedTokens> AddedTokens::create(std::vector<Entry> entries) {
  AddedTokens added;
  std::vector<TokenMatcher::Entry> special, ordinary;
  for (Entry& entry : entries) {
    (entry.token.special ? special : ordinary).push_back({entry.spelling, entry.token.id});
    added.tokens_.push_back(std::move(entry.token));
  }
  OCTAVO_TRY(added.special_, TokenMatcher::create(std::move(special)));
  OCTAVO_TRY(added.ordinary_, TokenMatcher::create(std::move(ordinary)));
  std::sort(added.tokens_.begin(), added.tokens_.end(),
            [](const AddedToken& a, const AddedToken& b) { return raw(a.id) < raw(b.id); });
  return added;
}

const AddedToken& AddedTokens::token(TokenId id) const {
  return *std::lower_bound(
      tokens_.begin(), tokens_.end(), id,
      [](const AddedToken& token, TokenId wanted) { return raw(token.id) < raw(wanted); });
}

// Keeps the next match of each kind, so that each is searched for only once.
class AddedTokens::Search {
 public:
  Search(const AddedTokens& added, std::string_view text, std::span<const Region> regions)
      : added_(added), text_(text), regions_(regions) {
    find_ordinary(0);
    find_special(0);
  }

  // At or after `from`, which never shrinks. None: begin = end = the text's end.
  TokenMatcher::Match next(size_t from) {
    if (ordinary_.begin < from) find_ordinary(from);
    if (special_.begin < from) find_special(from);
    if (special_.begin != ordinary_.begin)
      return special_.begin < ordinary_.begin ? special_ : ordinary_;
    return special_.end >= ordinary_.end ? special_ : ordinary_;
  }

 private:
  void find_ordinary(size_t from) { ordinary_ = added_.ordinary_.find(text_, from, text_.size()); }

  void find_special(size_t from) {
    for (; region_ < regions_.size(); ++region_) {
      const Region region = regions_[region_];
      const size_t begin = std::max(from, region.begin);
      if (begin >= region.end) continue;
      special_ = added_.special_.find(text_, begin, region.end);
      if (special_.begin < special_.end) return;
    }
    special_ = {text_.size(), text_.size(), TokenId{-1}};
  }

  const AddedTokens& added_;
  std::string_view text_;
  std::span<const Region> regions_;
  size_t region_ = 0;  // those before are searched
  TokenMatcher::Match ordinary_{}, special_{};
};

std::vector<AddedTokens::Piece> AddedTokens::split(std::string_view text,
                                                   std::span<const Region> regions) const {
  std::vector<Piece> pieces;
  size_t done = 0;
  if (!tokens_.empty()) {
    Search search(*this, text, regions);
    for (auto match = search.next(0); match.begin < match.end; match = search.next(match.end)) {
      const AddedToken& found = token(match.id);
      if (found.single_word && !stands_alone(text, match.begin, match.end)) continue;
      size_t begin = match.begin, end = match.end;
      if (found.strip_left) begin = std::max(space_before(text, begin), done);
      if (found.strip_right) end = space_after(text, end);
      if (done < begin) pieces.push_back({done, begin, TokenId{-1}});
      pieces.push_back({begin, end, match.id});
      done = end;
    }
  }
  if (done < text.size()) pieces.push_back({done, text.size(), TokenId{-1}});
  return pieces;
}

}  // namespace octavo
