#include "formats/gguf_tokenizer_pairs.h"

#include <fmt/format.h>

#include <algorithm>

#include "formats/quote.h"
#include "text/pretokenizer_rules.h"

namespace octavo {
namespace {

constexpr size_t kMaxEnds = 2;  // beside eos
constexpr float kUnusedScore = -1e9f;

class PairWriter {
 public:
  PairWriter(const TokenizerSpec& spec, size_t num_rows, const std::string& name, GgufPairs& pairs)
      : spec_(spec), size_(std::max(num_rows, spec.tokens.size())), name_(name), pairs_(pairs) {}

  Result<std::vector<std::string>> write() {
    OCTAVO_CHECK_OK(write_kind());
    write_tokens();
    write_ids();
    if (spec_.add_bos) pairs_.set_bool("tokenizer.ggml.add_bos_token", *spec_.add_bos);
    if (spec_.add_eos) pairs_.set_bool("tokenizer.ggml.add_eos_token", *spec_.add_eos);
    if (spec_.add_space_prefix)
      pairs_.set_bool("tokenizer.ggml.add_space_prefix", *spec_.add_space_prefix);
    if (!spec_.chat_template.empty())
      pairs_.set_string("tokenizer.chat_template", spec_.chat_template);
    if (!spec_.tool_template.empty())
      pairs_.set_string("tokenizer.chat_template.tool_use", spec_.tool_template);
    note_losses();
    return std::move(notes_);
  }

 private:
  Result<void> write_kind() {
    if (spec_.model != "gpt2" && spec_.model != "llama")
      return fail(
          ErrorCode::unsupported,
          fmt::format("{}: its tokenizer, of the kind {}, does what a GGUF file cannot say, "
                      "so that none can be written; the folder itself can be used",
                      name_, quote(spec_.model)));
    pairs_.set_string("tokenizer.ggml.model", spec_.model);
    OCTAVO_TRY(const std::string pre, pretokenizer());
    pairs_.set_string("tokenizer.ggml.pre", pre);
    return {};
  }

  Result<std::string> pretokenizer() const {
    if (spec_.model == "llama") return std::string("default");
    if (!spec_.pre_rule) return spec_.pre;
    if (const auto known = pretokenizer_name(*spec_.pre_rule)) return std::string(*known);
    return fail(ErrorCode::unsupported,
                fmt::format("{}: its tokenizer cuts words in a way that has no name in GGUF files, "
                            "so that none can be written; the folder itself can be used",
                            name_));
  }

  void write_tokens() {
    StringTable tokens;
    std::vector<int32_t> types;
    for (size_t i = 0; i < size_; ++i) {
      const bool is_hole = i >= spec_.tokens.size() || spec_.tokens[i].empty();
      tokens.push_back(is_hole ? fmt::format("[PAD{}]", i) : std::string(spec_.tokens[i]));
      types.push_back(static_cast<int32_t>(is_hole ? TokenType::unused : type(i)));
    }
    pairs_.set_strings("tokenizer.ggml.tokens", tokens);
    pairs_.set_i32s("tokenizer.ggml.token_type", types);
    if (!spec_.scores.empty()) {
      std::vector<float> scores = spec_.scores;
      scores.resize(size_, kUnusedScore);
      pairs_.set_f32s("tokenizer.ggml.scores", scores);
    }
    // Readers ask for the key, also of a tokenizer whose every token is a byte.
    if (spec_.model == "gpt2") pairs_.set_strings("tokenizer.ggml.merges", spec_.merges);
  }

  TokenType type(size_t i) const {
    return spec_.types.empty() ? TokenType::normal : spec_.types[i];
  }

  void write_ids() {
    write_id("bos", spec_.bos);
    write_id("eos", spec_.eos);
    write_id("unknown", spec_.unknown);
    write_id("padding", spec_.padding);
    std::vector<TokenId> ends = spec_.extra_eog;
    if (spec_.eot) ends.insert(ends.begin(), *spec_.eot);
    if (!ends.empty()) write_id("eot", ends[0]);
    if (ends.size() > 1) write_id("eom", ends[1]);
    if (ends.size() > kMaxEnds)
      notes_.push_back(fmt::format(
          "of the {} tokens that end an answer, a GGUF file names 3; the others end none",
          ends.size() + 1));
  }

  void write_id(std::string_view which, const std::optional<TokenId>& id) {
    if (id)
      pairs_.set_u32(fmt::format("tokenizer.ggml.{}_token_id", which),
                     static_cast<uint32_t>(raw(*id)));
  }

  void note_templates() {
    for (const std::string& name : spec_.template_names)
      if (name != "default" && name != "tool_use")
        notes_.push_back(
            fmt::format("the chat template {} is not taken into the file; give it "
                        "with --chat-template where it is wanted",
                        quote(name)));
  }

  void note_losses() {
    note_templates();
    const bool prefix = spec_.add_space_prefix.value_or(spec_.model == "llama");
    if (prefix && (spec_.space_prefix_at_start_only || spec_.space_prefix_unless_space))
      notes_.emplace_back(
          "a GGUF file cannot say that this tokenizer puts no space after control tokens, or "
          "before "
          "a text that begins with one: such texts get other tokens");
    if (!spec_.strip_left.empty() || !spec_.strip_right.empty())
      notes_.emplace_back(
          "a GGUF file cannot say that tokens take the white space beside them (lstrip, rstrip): "
          "texts with it get other tokens");
  }

  const TokenizerSpec& spec_;
  size_t size_;
  const std::string& name_;
  GgufPairs& pairs_;
  std::vector<std::string> notes_;
};

}  // namespace

Result<std::vector<std::string>> add_tokenizer_pairs(const TokenizerSpec& spec, size_t num_rows,
                                                     const std::string& name, GgufPairs& pairs) {
  return PairWriter(spec, num_rows, name, pairs).write();
}

}  // namespace octavo
