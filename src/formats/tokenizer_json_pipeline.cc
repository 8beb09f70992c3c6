#include "formats/tokenizer_json_pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "formats/quote.h"
#include "formats/tokenizer_json_steps.h"

namespace octavo {
namespace {

using nlohmann::json;
using namespace tokenizer_json;

constexpr std::string_view kSpaceMark = "\xE2\x96\x81";  // U+2581

size_t count_characters(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char byte) {
    return (static_cast<unsigned char>(byte) & 0xC0) != 0x80;
  }));
}

Result<std::string> character(const JsonSection& section, const char* field,
                              std::string_view otherwise) {
  OCTAVO_TRY(const auto value, section.find_string(field));
  std::string given = value.value_or(std::string(otherwise));
  if (count_characters(given) != 1) return section.error(field, "is not one character");
  return given;
}

// The choice whose name the field has.
template <class T, size_t count>
Result<T> choice(const JsonSection& section, const char* field, std::string_view otherwise,
                 const std::array<std::pair<std::string_view, T>, count>& choices) {
  OCTAVO_TRY(const auto value, section.find_string(field));
  const std::string given = value.value_or(std::string(otherwise));
  for (const auto& [name, meaning] : choices)
    if (name == given) return meaning;
  return section.error(field, fmt::format("is {}, which is not supported", quote(given)),
                       ErrorCode::unsupported);
}

// --- Normalizers.

using Normalizers = std::vector<normalizer::Step>;

std::optional<std::string> decode_base64(std::string_view text) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  uint32_t bits = 0;
  int count = 0;
  while (!text.empty() && text.back() == '=') text.remove_suffix(1);
  for (const char c : text) {
    const size_t digit = kDigits.find(c);
    if (digit == std::string_view::npos) return std::nullopt;
    bits = bits << 6 | static_cast<uint32_t>(digit);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    out.push_back(static_cast<char>(bits >> count & 0xFF));
  }
  return out;
}

Result<void> add_bert(const JsonSection& section, Normalizers& out) {
  normalizer::Bert step;
  OCTAVO_TRY(step.clean_text, flag(section, "clean_text", true));
  OCTAVO_TRY(step.space_han, flag(section, "handle_chinese_chars", true));
  OCTAVO_TRY(step.lowercase, flag(section, "lowercase", true));
  OCTAVO_TRY(step.strip_accents, flag(section, "strip_accents", step.lowercase));
  out.emplace_back(step);
  return {};
}

Result<void> add_replacement(const JsonSection& section, Normalizers& out) {
  normalizer::Replace step;
  OCTAVO_TRY(step.pattern, pattern_of(section));
  OCTAVO_TRY(step.content, text(section, "content"));
  out.emplace_back(std::move(step));
  return {};
}

Result<void> add_charsmap(const JsonSection& section, Normalizers& out) {
  OCTAVO_TRY(const std::string base64, text(section, "precompiled_charsmap"));
  auto bytes = decode_base64(base64);
  if (!bytes) return section.error("precompiled_charsmap", "is not base64");
  out.emplace_back(normalizer::Charsmap{std::move(*bytes)});
  return {};
}

Result<void> add_strip(const JsonSection& section, Normalizers& out) {
  normalizer::Strip strip;
  OCTAVO_TRY(strip.left, flag(section, "strip_left", true));
  OCTAVO_TRY(strip.right, flag(section, "strip_right", true));
  out.emplace_back(strip);
  return {};
}

Result<void> add_prepend(const JsonSection& section, Normalizers& out) {
  OCTAVO_TRY(std::string prefix, text(section, "prepend"));
  out.emplace_back(normalizer::Prepend{std::move(prefix)});
  return {};
}

// Those without parameters.
std::optional<normalizer::Step> plain_normalizer(std::string_view type) {
  using normalizer::Unicode;
  if (type == "NFC") return Unicode{NormalForm::nfc};
  if (type == "NFD") return Unicode{NormalForm::nfd};
  if (type == "NFKC") return Unicode{NormalForm::nfkc};
  if (type == "NFKD") return Unicode{NormalForm::nfkd};
  if (type == "Lowercase") return normalizer::Lowercase{};
  if (type == "StripAccents") return normalizer::StripAccents{};
  if (type == "ByteLevel") return normalizer::ByteLevel{};
  return std::nullopt;
}

Result<void> add_normalizer(const Step& step, Normalizers& out) {
  if (step.type == "BertNormalizer") return add_bert(step.section, out);
  if (step.type == "Replace") return add_replacement(step.section, out);
  if (step.type == "Precompiled") return add_charsmap(step.section, out);
  if (step.type == "Strip") return add_strip(step.section, out);
  if (step.type == "Prepend") return add_prepend(step.section, out);
  const auto plain = plain_normalizer(step.type);
  if (!plain) return unknown_step(step);
  out.push_back(*plain);
  return {};
}

// --- Pre-tokenizers.

using splitter::Behavior;
using splitter::Characters;
using Splitters = std::vector<splitter::Step>;

Result<Behavior> behavior_of(const JsonSection& section) {
  constexpr std::array<std::pair<std::string_view, Behavior>, 5> kBehaviors = {
      {{"Removed", Behavior::removed},
       {"Isolated", Behavior::isolated},
       {"Contiguous", Behavior::contiguous},
       {"MergedWithPrevious", Behavior::merged_with_previous},
       {"MergedWithNext", Behavior::merged_with_next}}};
  return choice(section, "behavior", "Isolated", kBehaviors);
}

// A search from every space of a run to its end takes the square of its length.
void make_linear(TextPattern& pattern) {
  if (pattern.text == R"(\s+$)") pattern.text = R"((?<!\s)\s++$)";
}

Result<void> add_split(const JsonSection& section, Splitters& out) {
  splitter::Pattern step;
  OCTAVO_TRY(step.pattern, pattern_of(section));
  OCTAVO_TRY(step.behavior, behavior_of(section));
  OCTAVO_TRY(step.invert, flag(section, "invert", false));
  make_linear(step.pattern);
  out.emplace_back(std::move(step));
  return {};
}

Result<splitter::Metaspace> metaspace_of(const JsonSection& section) {
  using splitter::Prefix;
  constexpr std::array<std::pair<std::string_view, Prefix>, 3> kSchemes = {
      {{"always", Prefix::always}, {"first", Prefix::first}, {"never", Prefix::never}}};
  splitter::Metaspace step;
  OCTAVO_TRY(step.mark, character(section, "replacement", kSpaceMark));
  OCTAVO_TRY(step.split, flag(section, "split", true));
  OCTAVO_TRY(const bool legacy, flag(section, "add_prefix_space", true));
  OCTAVO_TRY(step.prefix, choice(section, "prepend_scheme", legacy ? "always" : "never", kSchemes));
  return step;
}

Result<void> add_byte_level(const JsonSection& section, Splitters& out) {
  splitter::ByteLevel step;
  OCTAVO_TRY(step.add_space, flag(section, "add_prefix_space", true));
  OCTAVO_TRY(step.split, flag(section, "use_regex", true));
  out.emplace_back(step);
  return {};
}

Result<void> add_characters(const Step& step, Splitters& out) {
  const auto add = [&](Characters characters, Behavior behavior) {
    out.emplace_back(splitter::Class{characters, behavior});
    return Result<void>();
  };
  if (step.type == "Digits") {
    OCTAVO_TRY(const bool each, flag(step.section, "individual_digits", false));
    return add(Characters::numeric, each ? Behavior::isolated : Behavior::contiguous);
  }
  if (step.type == "Punctuation") {
    OCTAVO_TRY(const Behavior behavior, behavior_of(step.section));
    return add(Characters::punctuation, behavior);
  }
  if (step.type == "WhitespaceSplit") return add(Characters::white_space, Behavior::removed);
  if (step.type != "BertPreTokenizer") return unknown_step(step);
  OCTAVO_CHECK_OK(add(Characters::white_space, Behavior::removed));
  return add(Characters::punctuation, Behavior::isolated);
}

Result<void> add_splitter(const Step& step, Splitters& out) {
  if (step.type == "Split") return add_split(step.section, out);
  if (step.type == "ByteLevel") return add_byte_level(step.section, out);
  if (step.type == "Metaspace") {
    OCTAVO_TRY(splitter::Metaspace metaspace, metaspace_of(step.section));
    out.emplace_back(std::move(metaspace));
    return {};
  }
  const auto remove = [&](TextPattern pattern, bool invert) {
    out.emplace_back(splitter::Pattern{std::move(pattern), Behavior::removed, invert});
    return Result<void>();
  };
  // The words of Rust's regular expressions, which have the joiners too.
  if (step.type == "Whitespace")
    return remove({R"([\w\x{200C}\x{200D}]+|[^\w\s\x{200C}\x{200D}]+)", true}, true);
  if (step.type == "CharDelimiterSplit") {
    OCTAVO_TRY(std::string delimiter, character(step.section, "delimiter", ""));
    return remove({std::move(delimiter), false}, false);
  }
  return add_characters(step, out);
}

// --- Decoders.

using Decoders = std::vector<decoder::Step>;

Result<void> undo_replace(const JsonSection& section, Decoders& out) {
  OCTAVO_TRY(TextPattern pattern, pattern_of(section));
  if (pattern.is_regex)
    return section.error("pattern", "is a Regex, which is not supported in a decoder",
                         ErrorCode::unsupported);
  if (pattern.text.empty()) return section.error("pattern", "is empty");
  OCTAVO_TRY(std::string content, text(section, "content"));
  out.emplace_back(decoder::Replace{std::move(pattern.text), std::move(content)});
  return {};
}

Result<void> undo_metaspace(const JsonSection& section, Decoders& out) {
  OCTAVO_TRY(splitter::Metaspace metaspace, metaspace_of(section));
  out.emplace_back(
      decoder::Metaspace{std::move(metaspace.mark), metaspace.prefix != splitter::Prefix::never});
  return {};
}

Result<void> undo_wordpiece(const JsonSection& section, Decoders& out) {
  decoder::WordPiece step;
  OCTAVO_TRY(step.prefix, text(section, "prefix"));
  OCTAVO_TRY(step.cleanup, flag(section, "cleanup", true));
  out.emplace_back(std::move(step));
  return {};
}

Result<void> undo_strip(const JsonSection& section, bool fused, Decoders& out) {
  constexpr int64_t kMost = 1024;
  decoder::Strip step;
  OCTAVO_TRY(step.character, character(section, "content", ""));
  OCTAVO_TRY(const auto start, section.find_number("start", 0, kMost));
  OCTAVO_TRY(const auto stop, section.find_number("stop", 0, kMost));
  step.start = static_cast<size_t>(start.value_or(0));
  step.stop = static_cast<size_t>(stop.value_or(0));
  step.whole_text = fused;
  out.emplace_back(std::move(step));
  return {};
}

// `fused`: what comes now sees the text as a whole.
Result<void> add_decoder(const Step& step, bool& fused, Decoders& out) {
  if (step.type == "Strip") return undo_strip(step.section, fused, out);
  if (step.type != "Fuse" && fused) return unknown_step(step);
  if (step.type == "Replace") return undo_replace(step.section, out);
  if (step.type == "Metaspace") return undo_metaspace(step.section, out);
  if (step.type == "WordPiece") return undo_wordpiece(step.section, out);
  fused = step.type == "Fuse" || step.type == "ByteLevel";
  if (step.type == "Fuse") return {};
  if (step.type == "ByteLevel")
    out.emplace_back(decoder::ByteLevel{});
  else if (step.type == "ByteFallback")
    out.emplace_back(decoder::ByteFallback{});
  else
    return unknown_step(step);
  return {};
}

}  // namespace

Result<void> read_pipeline_steps(const JsonSection& root, TokenPipelineSpec& pipeline) {
  OCTAVO_TRY(const auto normalizers, steps_of(root, "normalizer", "normalizers"));
  for (const Step& step : normalizers) OCTAVO_CHECK_OK(add_normalizer(step, pipeline.normalizers));
  OCTAVO_TRY(const auto splitters, steps_of(root, "pre_tokenizer", "pretokenizers"));
  for (const Step& step : splitters) OCTAVO_CHECK_OK(add_splitter(step, pipeline.splitters));
  OCTAVO_TRY(const auto decoders, steps_of(root, "decoder", "decoders"));
  pipeline.spaces_between = decoders.empty();
  bool fused = false;
  for (const Step& step : decoders) OCTAVO_CHECK_OK(add_decoder(step, fused, pipeline.decoders));
  return {};
}

}  // namespace octavo
