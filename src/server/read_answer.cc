#include "server/read_answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "base/hash.h"

namespace octavo {

AnswerParts ReadAnswer::read(std::string_view text, std::span<const TokenId> ids, bool is_end) {
  AnswerParts parts = parser_.push(text);
  if (is_end) {
    AnswerParts rest = parser_.finish();
    parts.reasoning += rest.reasoning;
    parts.content += rest.content;
  }
  num_calls_ += parts.calls.size();
  if (!counts_) return parts;
  for (const TokenId id : ids) {
    begins_.push_back(num_bytes_);
    num_bytes_ += detokenizer_.push(id).size();
  }
  return parts;
}

int64_t ReadAnswer::reasoning_tokens() const {
  const auto end = std::lower_bound(begins_.begin(), begins_.end(), parser_.reasoning_bytes());
  return std::distance(begins_.begin(), end);
}

std::string call_id(uint64_t seed, int choice, size_t call, bool is_short) {
  constexpr std::string_view kDigits =
      "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  const std::array<uint64_t, 3> parts = {seed, static_cast<uint64_t>(choice), call};
  uint64_t hash = hash64(std::as_bytes(std::span(parts)));
  if (!is_short) return fmt::format("call_{:016x}{:08x}", hash, static_cast<uint32_t>(seed));
  std::string id;
  for (int i = 0; i < 9; ++i, hash /= kDigits.size()) id += kDigits[hash % kDigits.size()];
  return id;
}

}  // namespace octavo
