#include "text/piece_decoder.h"

#include <charconv>

#include "text/byte_alphabet.h"
#include "text/byte_spelling.h"

namespace octavo {
namespace {

std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t found = std::min(text.find(from, at), text.size());
    out.append(text.substr(at, found - at));
    if (found < text.size()) out.append(to);
    at = found + from.size();
  }
  return out;
}

// English as it was before words were set apart.
std::string cleaned(std::string text) {
  struct Change {
    std::string_view from, to;
  };
  constexpr Change kChanges[] = {{" .", "."},     {" ?", "?"},           {" !", "!"},
                                 {" ,", ","},     {" ' ", "'"},          {" n't", "n't"},
                                 {" 'm", "'m"},   {" do not", " don't"}, {" 's", "'s"},
                                 {" 've", "'ve"}, {" 're", "'re"}};
  for (const Change& change : kChanges) text = replaced(text, change.from, change.to);
  return text;
}

// How many of `limit` leading `character`s the text has, in bytes.
size_t leading(std::string_view text, std::string_view character, size_t limit) {
  size_t bytes = 0;
  while (limit-- > 0 && text.substr(bytes).starts_with(character)) bytes += character.size();
  return bytes;
}

}  // namespace

Result<PieceDecoder> PieceDecoder::create(std::vector<decoder::Step> steps, bool spaces_between) {
  bool joined = false;
  for (const decoder::Step& step : steps) {
    const auto* strip = std::get_if<decoder::Strip>(&step);
    if (joined || (strip && strip->whole_text && strip->stop > 0))
      return fail(ErrorCode::unsupported,
                  "the tokenizer's decoder changes the text as a whole, which is not supported: "
                  "after Fuse only one Strip of its beginning is");
    joined = strip && strip->whole_text;
  }
  PieceDecoder decoder;
  decoder.steps_ = std::move(steps);
  decoder.spaces_between_ = spaces_between;
  return decoder;
}

struct PieceDecoder::Apply {
  std::string text;
  State& state;

  void operator()(const decoder::Replace& step) { text = replaced(text, step.from, step.to); }

  void operator()(const decoder::ByteFallback&) {
    if (const auto byte = parse_byte_spelling(text)) text.assign(1, static_cast<char>(*byte));
  }

  void operator()(const decoder::ByteLevel&) {
    std::string bytes;
    append_spelled_bytes(bytes, text);
    text = std::move(bytes);
  }

  void operator()(const decoder::Metaspace& step) {
    text = replaced(text, step.mark, state.first && step.strips_first ? "" : " ");
  }

  void operator()(const decoder::WordPiece& step) {
    if (!state.first)
      text = text.starts_with(step.prefix) ? text.substr(step.prefix.size()) : " " + text;
    if (step.cleanup) text = cleaned(std::move(text));
  }

  void operator()(const decoder::Strip& step) {
    if (step.whole_text) return strip_beginning(step);
    text.erase(0, leading(text, step.character, step.start));
    for (size_t i = 0; i < step.stop && text.ends_with(step.character); ++i)
      text.resize(text.size() - step.character.size());
  }

  void strip_beginning(const decoder::Strip& step) {
    if (!state.stripping || text.empty()) return;
    const size_t gone = leading(text, step.character, step.start - state.stripped);
    state.stripped += gone / step.character.size();
    text.erase(0, gone);
    state.stripping = text.empty() && state.stripped < step.start;
  }
};

std::string PieceDecoder::decode(std::string_view spelling, State& state) const {
  Apply apply{std::string(spelling), state};
  for (const decoder::Step& step : steps_) std::visit(apply, step);
  if (spaces_between_ && !state.first) apply.text.insert(0, 1, ' ');
  state.first = false;
  return std::move(apply.text);
}

}  // namespace octavo
