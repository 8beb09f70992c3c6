// What a model file says about its tokenizer, as plain data. formats/ fills it, text/ builds a
// Tokenizer from it. Nothing here is checked: text/ checks when it builds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/ids.h"
#include "core/string_table.h"
#include "core/token_pipeline_spec.h"

namespace octavo {

// Values as in GGUF's tokenizer.ggml.token_type.
enum class TokenType : uint8_t {
  normal = 1,
  unknown = 2,
  control = 3,
  user_defined = 4,
  unused = 5,
  byte = 6,
};

// How a tokenizer.json says what `pre` names in a GGUF file.
struct PreTokenizerSpec {
  // As PreTokenizerRule has them (text/pretokenizer_rules.h).
  std::vector<std::string> patterns;
  bool whole_words = false;
  bool nfc = false;
};

struct TokenizerSpec {
  std::string model;  // "gpt2": byte-level BPE; "llama": SentencePiece-style BPE with byte fallback
  std::string
      pre;  // name of the pre-tokenizer ("smollm", "qwen2", ...); empty if the file gives none
  std::optional<PreTokenizerSpec> pre_rule = {};  // instead of a name
  StringTable
      tokens;  // as spelled in the file: gpt2 in its byte alphabet, llama with U+2581 for spaces
  std::vector<float> scores;     // empty, or one per token
  std::vector<TokenType> types;  // empty, or one per token
  StringTable merges;            // "left right", best first; empty for llama
  std::optional<TokenId> bos, eos, eot, unknown, padding;
  std::vector<TokenId> extra_eog;  // further ids that end an answer
  std::optional<bool> add_bos,
      add_eos;  // unset: the rule of the tokenizer model (llama adds BOS, gpt2 does not)
  std::optional<bool> add_space_prefix;                    // unset: llama true, gpt2 false
  bool space_prefix_at_start_only = false;                 // not after control tokens
  bool space_prefix_unless_space = false;                  // not where a space begins the text
  std::vector<TokenId> strip_left = {}, strip_right = {};  // control tokens that take the white
                                                           // space before, after them
  std::string chat_template;  // Jinja source; empty if the file has none
  // Of a list of named templates: the one called "tool_use", and the names of all of them.
  std::string tool_template = {};
  std::vector<std::string> template_names = {};

  // What the user should know of the files, though it is no error.
  std::vector<std::string> notes = {};

  // A tokenizer.json in full. Where there is one, it alone makes text tokens and tokens text: what
  // is said above (model, pre, scores, merges, spaces) is then the nearest that a GGUF file could
  // say, or `model` is a name that no GGUF file has.
  std::optional<TokenPipelineSpec> pipeline = {};
};

}  // namespace octavo
