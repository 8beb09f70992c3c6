#include "text/token_matcher.h"

#include <fmt/format.h>

#include <algorithm>

#include "text/utf8.h"

namespace octavo {
namespace {

Result<void> check(const TokenMatcher::Entry& entry) {
  if (entry.spelling.size() > TokenMatcher::kMaxSpelling) {
    return fail(ErrorCode::unsupported,
                fmt::format("tokenizer.ggml.tokens[{}] is a control or user-defined token of {} "
                            "bytes; the limit is {}",
                            raw(entry.id), entry.spelling.size(), TokenMatcher::kMaxSpelling));
  }
  if (find_invalid_utf8(entry.spelling)) {
    return fail(
        ErrorCode::corrupt_file,
        fmt::format(
            "tokenizer.ggml.tokens[{}] is a control or user-defined token and not valid UTF-8",
            raw(entry.id)));
  }
  return {};
}

}  // namespace

Result<TokenMatcher> TokenMatcher::create(std::vector<Entry> entries) {
  for (const Entry& entry : entries) OCTAVO_CHECK_OK(check(entry));
  std::erase_if(entries, [](const Entry& entry) { return entry.spelling.empty(); });
  std::stable_sort(entries.begin(), entries.end(),
                   [](const Entry& a, const Entry& b) { return a.spelling < b.spelling; });
  const auto same = [](const Entry& a, const Entry& b) { return a.spelling == b.spelling; };
  entries.erase(std::unique(entries.begin(), entries.end(), same), entries.end());

  TokenMatcher matcher;
  matcher.entries_ = std::move(entries);
  for (uint32_t i = 0; i < matcher.entries_.size(); ++i) {
    Range& range = matcher.by_first_byte_[matcher.byte_of(i, 0)];
    if (range.end == 0) range.begin = i;
    range.end = i + 1;
  }
  return matcher;
}

uint8_t TokenMatcher::byte_of(size_t entry, size_t depth) const {
  return static_cast<uint8_t>(entries_[entry].spelling[depth]);
}

// Narrows the sorted list byte by byte. An entry that ends at the present depth is the first of its
// range.
const TokenMatcher::Entry* TokenMatcher::longest_at(std::string_view rest) const {
  const Range first = by_first_byte_[static_cast<uint8_t>(rest[0])];
  uint32_t begin = first.begin, end = first.end;
  const Entry* best = nullptr;
  for (size_t depth = 1; begin < end; ++depth) {
    if (entries_[begin].spelling.size() == depth) best = &entries_[begin++];
    if (depth == rest.size()) break;
    const auto byte = static_cast<uint8_t>(rest[depth]);
    const auto bound = [&](bool past_equal) {
      uint32_t low = begin, high = end;
      while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        const uint8_t value = byte_of(middle, depth);
        value < byte || (past_equal && value == byte) ? low = middle + 1 : high = middle;
      }
      return low;
    };
    const uint32_t lower = bound(false), upper = bound(true);
    begin = lower;
    end = upper;
  }
  return best;
}

TokenMatcher::Match TokenMatcher::find(std::string_view text, size_t from, size_t until) const {
  for (size_t at = from; at < until; ++at) {
    const Range range = by_first_byte_[static_cast<uint8_t>(text[at])];
    if (range.begin == range.end) continue;
    if (const Entry* entry = longest_at(text.substr(at, until - at))) {
      return {at, at + entry->spelling.size(), entry->id};
    }
  }
  return {until, until, TokenId{-1}};
}

std::vector<TokenMatcher::Entry> entries_of_type(const Vocabulary& vocabulary, TokenType type) {
  std::vector<TokenMatcher::Entry> entries;
  for (size_t i = 0; i < vocabulary.size(); ++i) {
    const TokenId id{static_cast<int32_t>(i)};
    if (vocabulary.type(id) == type) entries.push_back({std::string(vocabulary.spelling(id)), id});
  }
  return entries;
}

}  // namespace octavo
