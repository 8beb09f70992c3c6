#include "text/text_splitter.h"

#include <algorithm>

#include "text/byte_alphabet.h"
#include "text/characters.h"
#include "text/pretokenizer_rules.h"

namespace octavo {
namespace {

using splitter::Behavior;

constexpr uint32_t size32(std::string_view text) { return static_cast<uint32_t>(text.size()); }

bool is_of(splitter::Characters characters, char32_t c) {
  switch (characters) {
    case splitter::Characters::white_space:
      return is_white_space(c);
    case splitter::Characters::punctuation:
      return is_punctuation(c);
    case splitter::Characters::numeric:
      return is_numeric(c);
  }
  return false;
}

void find_characters(splitter::Characters characters, std::string_view word, uint32_t base,
                     std::vector<TextRange>& matches) {
  uint32_t at = base;
  for_each_char(word, [&](char32_t c, std::string_view bytes) {
    const uint32_t end = at + size32(bytes);
    if (is_of(characters, c)) matches.push_back({at, end});
    at = end;
  });
}

void find_text(std::string_view wanted, std::string_view word, uint32_t base,
               std::vector<TextRange>& matches) {
  if (wanted.empty()) return;
  for (size_t at = word.find(wanted); at != std::string_view::npos;
       at = word.find(wanted, at + wanted.size())) {
    const uint32_t begin = base + static_cast<uint32_t>(at);
    matches.push_back({begin, begin + size32(wanted)});
  }
}

// A piece of a word: a match, or what lies between two.
struct Piece {
  TextRange range;
  bool is_match;
};

std::vector<Piece> pieces_of(TextRange word, const std::vector<TextRange>& matches, bool invert) {
  std::vector<Piece> pieces;
  uint32_t done = word.begin;
  for (const TextRange& match : matches) {
    if (match.begin > done) pieces.push_back({{done, match.begin}, invert});
    pieces.push_back({match, !invert});
    done = match.end;
  }
  if (done < word.end) pieces.push_back({{done, word.end}, invert});
  return pieces;
}

// Two matches in a row stay apart here: only the first goes to its neighbour.
void merge_with_previous(const std::vector<Piece>& pieces, std::vector<TextRange>& out) {
  const size_t first = out.size();
  bool after_match = false;
  for (const Piece& piece : pieces) {
    if (piece.is_match && !after_match && out.size() > first)
      out.back().end = piece.range.end;
    else
      out.push_back(piece.range);
    after_match = piece.is_match;
  }
}

void merge_with_next(const std::vector<Piece>& pieces, std::vector<TextRange>& out) {
  const size_t first = out.size();
  bool before_match = false;
  for (auto piece = pieces.rbegin(); piece != pieces.rend(); ++piece) {
    if (piece->is_match && !before_match && out.size() > first)
      out.back().begin = piece->range.begin;
    else
      out.push_back(piece->range);
    before_match = piece->is_match;
  }
  std::reverse(out.begin() + static_cast<std::ptrdiff_t>(first), out.end());
}

void merge_runs(const std::vector<Piece>& pieces, std::vector<TextRange>& out) {
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (i > 0 && pieces[i].is_match == pieces[i - 1].is_match)
      out.back().end = pieces[i].range.end;
    else
      out.push_back(pieces[i].range);
  }
}

void cut(const std::vector<Piece>& pieces, Behavior behavior, std::vector<TextRange>& out) {
  switch (behavior) {
    case Behavior::removed:
      for (const Piece& piece : pieces)
        if (!piece.is_match) out.push_back(piece.range);
      return;
    case Behavior::isolated:
      for (const Piece& piece : pieces) out.push_back(piece.range);
      return;
    case Behavior::contiguous:
      return merge_runs(pieces, out);
    case Behavior::merged_with_previous:
      return merge_with_previous(pieces, out);
    case Behavior::merged_with_next:
      return merge_with_next(pieces, out);
  }
}

std::string replaced(std::string_view text, char from, std::string_view to) {
  std::string out;
  out.reserve(text.size() + text.size() / 2);
  for (const char c : text) c == from ? out.append(to) : out.append(1, c);
  return out;
}

}  // namespace

struct TextSplitter::Compile {
  TextSplitter& splitter;

  template <class T>
  Result<Step> operator()(const T& step) const {
    return Step(step);
  }
  Result<Step> operator()(const splitter::Pattern& step) const {
    Pattern pattern{std::nullopt, step.pattern.text, step.behavior, step.invert};
    if (step.pattern.is_regex) {
      OCTAVO_TRY(pattern.regex, Regex::compile(step.pattern.text));
    }
    return Step(std::move(pattern));
  }
  Result<Step> operator()(const splitter::ByteLevel& step) const {
    if (step.split && !splitter.gpt2_) {
      OCTAVO_TRY(splitter.gpt2_, Regex::compile(find_pretokenizer_rule("gpt2")->patterns[0]));
    }
    return Step(step);
  }
};

// One split: applies a step to all words.
class TextSplitter::Apply {
 public:
  Apply(const TextSplitter& splitter, std::string text, bool at_start)
      : splitter_(splitter), at_start_(at_start) {
    if (!text.empty()) words_.words.push_back({0, size32(text)});
    words_.text = std::move(text);
  }

  Result<void> operator()(const Pattern& step) {
    return split(step.behavior, step.invert, [&](std::string_view word, uint32_t base) {
      if (step.regex) return search_.find_all(*step.regex, word, base, matches_);
      find_text(step.text, word, base, matches_);
      return Result<void>();
    });
  }

  Result<void> operator()(const splitter::Class& step) {
    return split(step.behavior, false, [&](std::string_view word, uint32_t base) {
      find_characters(step.characters, word, base, matches_);
      return Result<void>();
    });
  }

  Result<void> operator()(const splitter::Metaspace& step) {
    rewrite([&](std::string_view word, bool first) {
      std::string marked = replaced(word, ' ', step.mark);
      const bool wanted = step.prefix == splitter::Prefix::always ||
                          (step.prefix == splitter::Prefix::first && first);
      return wanted && !marked.starts_with(step.mark) ? step.mark + marked : marked;
    });
    if (!step.split) return {};
    return split(Behavior::merged_with_next, false, [&](std::string_view word, uint32_t base) {
      find_text(step.mark, word, base, matches_);
      return Result<void>();
    });
  }

  Result<void> operator()(const splitter::ByteLevel& step) {
    if (step.add_space)
      rewrite([](std::string_view word, bool) {
        return word.starts_with(' ') ? std::string(word) : " " + std::string(word);
      });
    if (step.split) {
      OCTAVO_CHECK_OK(split(Behavior::isolated, false, [&](std::string_view word, uint32_t base) {
        return search_.find_all(*splitter_.gpt2_, word, base, matches_);
      }));
    }
    rewrite([](std::string_view word, bool) { return spell_bytes(word); });
    return {};
  }

  TextWords take() && { return std::move(words_); }

 private:
  std::string_view at(TextRange word) const {
    return std::string_view(words_.text).substr(word.begin, word.end - word.begin);
  }

  template <class Find>
  Result<void> split(Behavior behavior, bool invert, Find find) {
    std::vector<TextRange> out;
    for (const TextRange& word : words_.words) {
      matches_.clear();
      OCTAVO_CHECK_OK(find(at(word), word.begin));
      cut(pieces_of(word, matches_, invert), behavior, out);
    }
    words_.words = std::move(out);
    return {};
  }

  template <class Change>
  void rewrite(Change change) {
    TextWords next;
    for (const TextRange& word : words_.words) {
      const uint32_t begin = size32(next.text);
      next.text += change(at(word), at_start_ && word.begin == 0);
      next.words.push_back({begin, size32(next.text)});
    }
    // What came first must stay at 0, also where something before it was removed.
    at_start_ = at_start_ && !words_.words.empty() && words_.words[0].begin == 0;
    words_ = std::move(next);
  }

  const TextSplitter& splitter_;
  TextWords words_;
  bool at_start_;
  RegexSearch search_;
  std::vector<TextRange> matches_;
};

Result<TextSplitter> TextSplitter::create(const std::vector<splitter::Step>& steps) {
  TextSplitter splitter;
  for (const splitter::Step& step : steps) {
    OCTAVO_TRY(Step compiled, std::visit(Compile{splitter}, step));
    splitter.steps_.push_back(std::move(compiled));
  }
  return splitter;
}

Result<TextWords> TextSplitter::split(std::string text, bool at_start) const {
  Apply apply(*this, std::move(text), at_start);
  for (const Step& step : steps_) OCTAVO_CHECK_OK(std::visit(apply, step));
  return std::move(apply).take();
}

}  // namespace octavo
