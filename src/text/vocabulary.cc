#include "text/vocabulary.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <functional>

namespace octavo {
namespace {

constexpr size_t kMaxTokens = size_t{1} << 24;

// At half load a good hash never comes near this; a file made to collide is refused instead of
// taking quadratic time.
constexpr size_t kMaxProbes = 1024;

Result<void> check_types(const std::vector<TokenType>& types, size_t tokens) {
  if (!types.empty() && types.size() != tokens) {
    return fail(
        ErrorCode::corrupt_file,
        fmt::format(
            "tokenizer.ggml.token_type has {} entries for {} tokens; convert the model again",
            types.size(), tokens));
  }
  for (size_t i = 0; i < types.size(); ++i) {
    if (types[i] < TokenType::normal || types[i] > TokenType::byte) {
      return fail(ErrorCode::unsupported,
                  fmt::format("tokenizer.ggml.token_type[{}] is {}; known are 1 to 6", i,
                              static_cast<int>(types[i])));
    }
  }
  return {};
}

Result<void> check_scores(const std::vector<float>& scores, size_t tokens) {
  if (!scores.empty() && scores.size() != tokens) {
    return fail(
        ErrorCode::corrupt_file,
        fmt::format("tokenizer.ggml.scores has {} entries for {} tokens; convert the model again",
                    scores.size(), tokens));
  }
  for (size_t i = 0; i < scores.size(); ++i) {
    if (!std::isfinite(scores[i])) {
      return fail(ErrorCode::corrupt_file,
                  fmt::format("tokenizer.ggml.scores[{}] is not a finite number", i));
    }
  }
  return {};
}

bool is_ordinary(TokenType type) {
  return type == TokenType::normal || type == TokenType::user_defined || type == TokenType::unused;
}

uint64_t hash_of(std::string_view spelling) { return std::hash<std::string_view>{}(spelling); }

}  // namespace

Result<Vocabulary> Vocabulary::create(StringTable spellings, std::vector<TokenType> types,
                                      std::vector<float> scores) {
  if (spellings.empty()) {
    return fail(ErrorCode::corrupt_file,
                "tokenizer.ggml.tokens is missing or empty: the file has no vocabulary");
  }
  if (spellings.size() > kMaxTokens) {
    return fail(ErrorCode::unsupported,
                fmt::format("tokenizer.ggml.tokens has {} entries; the limit is {}",
                            spellings.size(), kMaxTokens));
  }
  OCTAVO_CHECK_OK(check_types(types, spellings.size()));
  OCTAVO_CHECK_OK(check_scores(scores, spellings.size()));
  Vocabulary vocabulary;
  vocabulary.spellings_ = std::move(spellings);
  vocabulary.types_ = std::move(types);
  vocabulary.scores_ = std::move(scores);
  OCTAVO_CHECK_OK(vocabulary.build_index());
  return vocabulary;
}

bool Vocabulary::is_control(TokenId id) const {
  return type(id) == TokenType::control || type(id) == TokenType::unknown;
}

Result<void> Vocabulary::build_index() {
  slots_.assign(std::bit_ceil(size() * 2), Slot{0, -1});
  for (size_t i = 0; i < size(); ++i) {
    const TokenId id{static_cast<int32_t>(i)};
    if (!is_ordinary(type(id)) || spelling(id).empty()) continue;
    if (!insert(id)) {
      return fail(
          ErrorCode::corrupt_file,
          fmt::format(
              "tokenizer.ggml.tokens[{}] collides with over {} others in the index: the vocabulary "
              "looks crafted",
              i, kMaxProbes));
    }
    longest_spelling_ = std::max(longest_spelling_, spelling(id).size());
  }
  return {};
}

bool Vocabulary::insert(TokenId id) {
  const uint64_t hash = hash_of(spelling(id));
  const auto tag = static_cast<uint32_t>(hash >> 32);
  const size_t mask = slots_.size() - 1;
  for (size_t probe = 0; probe < kMaxProbes; ++probe) {
    Slot& slot = slots_[(hash + probe) & mask];
    if (slot.id < 0) {
      slot = {tag, raw(id)};
      return true;
    }
    if (slot.tag == tag && spellings_[slot.id] == spelling(id)) return true;
  }
  return false;
}

std::optional<TokenId> Vocabulary::find(std::string_view wanted) const {
  if (wanted.size() > longest_spelling_) return std::nullopt;
  const uint64_t hash = hash_of(wanted);
  const auto tag = static_cast<uint32_t>(hash >> 32);
  const size_t mask = slots_.size() - 1;
  for (size_t at = hash & mask; slots_[at].id >= 0; at = (at + 1) & mask) {
    if (slots_[at].tag == tag && spellings_[slots_[at].id] == wanted) return TokenId{slots_[at].id};
  }
  return std::nullopt;
}

}  // namespace octavo
