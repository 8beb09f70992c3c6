// What a tokenizer.json says, as plain data: the steps that make text tokens and tokens text. In
// the order in which they are applied. Nothing here is checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/ids.h"
#include "core/string_table.h"

namespace octavo {

// Text that a step looks for: a regular expression, or as it is written.
struct TextPattern {
  std::string text;
  bool is_regex = false;
};

enum class NormalForm { nfc, nfd, nfkc, nfkd };

// Changes of the text before it is cut into words.
namespace normalizer {
struct Unicode {
  NormalForm form;
};
struct Lowercase {};
struct StripAccents {};
struct Strip {
  bool left = true, right = true;
};
struct Replace {
  TextPattern pattern;
  std::string content;
};
struct Prepend {
  std::string text;
};
struct Bert {
  bool clean_text = true, space_han = true, strip_accents = true, lowercase = true;
};
struct ByteLevel {};  // every byte becomes its character of GPT-2's alphabet
struct Charsmap {
  std::string bytes;  // SentencePiece's: length of the trie, the trie, the replacements
};
using Step = std::variant<Unicode, Lowercase, StripAccents, Strip, Replace, Prepend, Bert,
                          ByteLevel, Charsmap>;
}  // namespace normalizer

// Cuts into words.
namespace splitter {
enum class Behavior { removed, isolated, contiguous, merged_with_previous, merged_with_next };
enum class Characters { white_space, punctuation, numeric };
struct Pattern {
  TextPattern pattern;
  Behavior behavior = Behavior::isolated;
  bool invert = false;
};
struct Class {
  Characters characters;
  Behavior behavior;
};
enum class Prefix { never, first, always };
struct Metaspace {
  std::string mark;  // one character
  Prefix prefix = Prefix::always;
  bool split = true;
};
struct ByteLevel {
  bool add_space = false;
  bool split = true;  // by GPT-2's pattern
};
using Step = std::variant<Pattern, Class, Metaspace, ByteLevel>;
}  // namespace splitter

// From a word to tokens.
struct PieceModelSpec {
  enum class Kind { bpe, unigram, wordpiece, wordlevel };
  Kind kind = Kind::bpe;
  std::vector<bool> in_vocabulary;  // one per token; the others are added tokens only
  std::optional<TokenId> unknown;   // for what the vocabulary lacks
  bool byte_fallback = false;       // <0x41> and so on come before `unknown`
  StringTable merges;               // bpe: left, right, left, right, ...; best first
  std::string prefix, suffix;       // bpe: of inner, of last characters; wordpiece: prefix
  bool fuse_unknown = false;        // bpe
  bool whole_words = false;         // bpe: a word of the vocabulary is one token
  std::vector<double> scores;       // unigram: one per token
  size_t longest_word = 100;        // wordpiece: characters; a longer one is unknown
};

struct AddedToken {
  TokenId id;
  std::string content;
  bool special = false, single_word = false, strip_left = false, strip_right = false;
  bool normalized = false;  // found in normalised text, as its own normalised spelling
};

// From tokens to text; `first` is the first token of a text.
namespace decoder {
struct Replace {
  std::string from, to;
};
struct ByteFallback {};
struct ByteLevel {};
struct Metaspace {
  std::string mark;
  bool strips_first = true;
};
struct WordPiece {
  std::string prefix;
  bool cleanup = true;
};
struct Strip {
  std::string character;
  size_t start = 0, stop = 0;
  bool whole_text = false;  // after the tokens have been joined
};
using Step = std::variant<Replace, ByteFallback, ByteLevel, Metaspace, WordPiece, Strip>;
}  // namespace decoder

struct TokenPipelineSpec {
  std::vector<normalizer::Step> normalizers;
  std::vector<splitter::Step> splitters;
  PieceModelSpec model;
  std::vector<AddedToken> added;
  std::vector<decoder::Step> decoders;
  bool spaces_between = false;  // there is no decoder: tokens are joined by spaces
};

}  // namespace octavo
