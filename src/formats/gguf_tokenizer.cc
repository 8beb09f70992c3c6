#include "formats/gguf_tokenizer.h"

#include <fmt/format.h>

#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/gguf_bert_tokenizer.h"
#include "formats/named_templates.h"

namespace octavo {
namespace {

constexpr std::string_view kTokens = "tokenizer.ggml.tokens";
constexpr std::string_view kScores = "tokenizer.ggml.scores";
constexpr std::string_view kTypes = "tokenizer.ggml.token_type";
constexpr std::string_view kBos = "tokenizer.ggml.bos_token_id";
constexpr std::string_view kMerges = "tokenizer.ggml.merges";

// REQUIRES: the file has the key, as an array.
Result<void> check_length(const GgufMetadata& file, std::string_view key, size_t tokens) {
  const GgufEntry& entry = *file.find(key);
  if (entry.count == tokens) return {};
  return file.error(
      entry, fmt::format("has {} elements, but '{}' has {}: one per token is expected", entry.count,
                         kTokens, tokens));
}

Result<std::string> optional_text(const GgufMetadata& file, std::string_view key) {
  OCTAVO_TRY(const auto text, file.find_string(key));
  return std::string(text.value_or(std::string_view()));
}

Result<StringTable> read_tokens(const GgufMetadata& file) {
  OCTAVO_TRY(StringTable tokens, file.get_strings(kTokens));
  const GgufEntry& entry = *file.find(kTokens);
  if (tokens.empty()) return file.error(entry, "is empty; a vocabulary is needed");
  if (tokens.size() > static_cast<size_t>(std::numeric_limits<int32_t>::max()))
    return file.error(entry, fmt::format("has {} tokens, more than ids can number", tokens.size()),
                      ErrorCode::unsupported);
  return tokens;
}

Result<std::vector<float>> read_scores(const GgufMetadata& file, size_t tokens) {
  if (!file.find(kScores)) return std::vector<float>();
  OCTAVO_TRY(auto scores, file.get_f32s(kScores));
  OCTAVO_CHECK_OK(check_length(file, kScores, tokens));
  return scores;
}

bool is_token_type(int32_t value) {
  return value >= static_cast<int32_t>(TokenType::normal) &&
         value <= static_cast<int32_t>(TokenType::byte);
}

Result<std::vector<TokenType>> read_types(const GgufMetadata& file, size_t tokens) {
  if (!file.find(kTypes)) return std::vector<TokenType>();
  OCTAVO_TRY(const auto values, file.get_i32s(kTypes));
  OCTAVO_CHECK_OK(check_length(file, kTypes, tokens));
  std::vector<TokenType> types;
  types.reserve(values.size());
  for (const int32_t value : values) {
    if (!is_token_type(value))
      return file.error(
          *file.find(kTypes),
          fmt::format("gives token {} the unknown type {}; known are 1 to 6", types.size(), value),
          ErrorCode::unsupported);
    types.push_back(static_cast<TokenType>(value));
  }
  return types;
}

Result<StringTable> read_merges(const GgufMetadata& file) {
  if (!file.find(kMerges)) return StringTable();
  return file.get_strings(kMerges);
}

// What each kind of tokenizer cannot do without. A kind that is not known is refused elsewhere.
struct NeededKey {
  std::string_view model, key;
};
constexpr NeededKey kNeeded[] = {
    {"gpt2", kMerges}, {"gpt2", kTypes}, {"llama", kScores}, {"llama", kTypes}, {"bert", kTypes},
};

Result<void> check_needed(const GgufMetadata& file, std::string_view model) {
  for (const NeededKey& needed : kNeeded)
    if (needed.model == model && !file.find(needed.key))
      return fail(ErrorCode::corrupt_file,
                  fmt::format("{}: metadata key '{}' is missing, which a tokenizer of the kind "
                              "'{}' needs; convert the model again",
                              file.file(), needed.key, model));
  return {};
}

// -1, in whatever width: the file has no such token.
bool says_none(const GgufMetadata& file, const GgufEntry& entry) {
  if (const auto id = file.get_i32(entry.key)) return *id == -1;
  const auto id = file.get_u64(entry.key);
  return id && (*id == UINT32_MAX || *id == UINT64_MAX);
}

Result<std::optional<TokenId>> read_id(const GgufMetadata& file, std::string_view key,
                                       size_t tokens) {
  const GgufEntry* entry = file.find(key);
  if (!entry || says_none(file, *entry)) return std::optional<TokenId>();
  OCTAVO_TRY(const uint64_t id, file.get_u64(key));
  if (id < tokens) return TokenId{static_cast<int32_t>(id)};
  return file.error(*entry, fmt::format("is {}, but the vocabulary has {} tokens", id, tokens));
}

// Nothing is computed with it, so that it may be wrong.
void read_padding(const GgufMetadata& file, TokenizerSpec& spec) {
  const auto id = read_id(file, "tokenizer.ggml.padding_token_id", spec.tokens.size());
  if (id)
    spec.padding = *id;
  else
    spec.notes.push_back(fmt::format("not used, and ignored: {}", id.error().message));
}

Result<void> read_ids(const GgufMetadata& file, TokenizerSpec& spec) {
  const size_t tokens = spec.tokens.size();
  OCTAVO_TRY(spec.bos, read_id(file, kBos, tokens));
  OCTAVO_TRY(spec.eos, read_id(file, "tokenizer.ggml.eos_token_id", tokens));
  // BERT's stand where others have BOS and EOS; spelled so by the converters.
  if (spec.model == "bert" && !spec.bos) {
    OCTAVO_TRY(spec.bos, read_id(file, "tokenizer.ggml.cls_token_id", tokens));
  }
  if (spec.model == "bert" && !spec.eos) {
    OCTAVO_TRY(spec.eos, read_id(file, "tokenizer.ggml.seperator_token_id", tokens));
  }
  OCTAVO_TRY(spec.eot, read_id(file, "tokenizer.ggml.eot_token_id", tokens));
  OCTAVO_TRY(spec.unknown, read_id(file, "tokenizer.ggml.unknown_token_id", tokens));
  OCTAVO_TRY(const auto end_of_message, read_id(file, "tokenizer.ggml.eom_token_id", tokens));
  if (end_of_message) spec.extra_eog.push_back(*end_of_message);
  read_padding(file, spec);
  return {};
}

// One template, and those of other names: "tokenizer.chat_template.NAME".
Result<void> read_templates(const GgufMetadata& file, TokenizerSpec& spec) {
  constexpr std::string_view kKey = "tokenizer.chat_template";
  OCTAVO_TRY(spec.chat_template, optional_text(file, kKey));
  for (const GgufEntry& entry : file.metadata()) {
    if (!entry.key.starts_with(kKey) || entry.key.size() <= kKey.size() + 1 ||
        entry.key[kKey.size()] != '.')
      continue;
    OCTAVO_TRY(const std::string_view source, file.get_string(entry.key));
    add_named_template(entry.key.substr(kKey.size() + 1), source, spec);
  }
  return {};
}

}  // namespace

Result<TokenizerSpec> read_tokenizer_spec(const GgufMetadata& file) {
  TokenizerSpec spec;
  OCTAVO_TRY(const std::string_view model, file.get_string("tokenizer.ggml.model"));
  spec.model = model;
  OCTAVO_TRY(spec.pre, optional_text(file, "tokenizer.ggml.pre"));
  OCTAVO_TRY(spec.tokens, read_tokens(file));
  OCTAVO_CHECK_OK(check_needed(file, model));
  OCTAVO_TRY(spec.scores, read_scores(file, spec.tokens.size()));
  OCTAVO_TRY(spec.types, read_types(file, spec.tokens.size()));
  OCTAVO_TRY(spec.merges, read_merges(file));
  OCTAVO_CHECK_OK(read_ids(file, spec));
  OCTAVO_TRY(spec.add_bos, file.find_bool("tokenizer.ggml.add_bos_token"));
  // A file that says that there is none wants none.
  if (!spec.add_bos && !spec.bos && file.find(kBos)) spec.add_bos = false;
  OCTAVO_TRY(spec.add_eos, file.find_bool("tokenizer.ggml.add_eos_token"));
  OCTAVO_TRY(spec.add_space_prefix, file.find_bool("tokenizer.ggml.add_space_prefix"));
  OCTAVO_CHECK_OK(read_templates(file, spec));
  if (spec.model == "bert") OCTAVO_CHECK_OK(read_bert_pipeline(file, spec));
  return spec;
}

}  // namespace octavo
