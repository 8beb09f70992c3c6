// How each model family cuts text into words before merging: the table of names that GGUF files use
// for it.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "core/tokenizer_spec.h"

namespace octavo {

struct PreTokenizerRule {
  std::string_view names;  // values of tokenizer.ggml.pre, separated by spaces

  // Applied in turn, each to the pieces that the one before left; empty ones end the list. A piece
  // is a match or the text between two matches. Syntax of PCRE2, but \s and \S mean Unicode's
  // White_Space.
  std::array<std::string_view, 6> patterns;

  // A word that is itself in the vocabulary is one token, whatever the merges say.
  bool whole_words = false;
  bool adds_bos = false;  // when the file does not say
  bool nfc = false;       // the family's tokenizer normalises to NFC first; GGUF files do not tell
};

// Null if the name is unknown.
const PreTokenizerRule* find_pretokenizer_rule(std::string_view name);

// The first name of the rule that cuts in this way; nothing if none does.
std::optional<std::string_view> pretokenizer_name(const PreTokenizerSpec& spec);

// All names, in alphabetical order, separated by ", ": for messages.
std::string pretokenizer_names();

}  // namespace octavo
