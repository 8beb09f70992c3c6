#include "formats/tokenizer_json_text.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "formats/quote.h"
#include "formats/tokenizer_json_steps.h"

namespace octavo {
namespace {

using nlohmann::json;
using namespace tokenizer_json;

constexpr std::string_view kSpaceMark = "\xE2\x96\x81";  // U+2581
constexpr std::string_view kGpt2 =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

std::string escaped(std::string_view plain) {
  std::string out;
  for (const char c : plain) {
    const bool is_word = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
                         (c >= 'A' && c <= 'Z') || static_cast<unsigned char>(c) >= 0x80;
    if (!is_word) out.push_back('\\');
    out.push_back(c);
  }
  return out;
}

std::string as_regex(const TextPattern& pattern) {
  return pattern.is_regex ? pattern.text : escaped(pattern.text);
}

bool replaces_spaces(const json& section) {
  const auto pattern = section.find("pattern");
  return pattern != section.end() && *pattern == json{{"String", " "}} &&
         section.value("content", json()) == json(kSpaceMark);
}

// --- Byte-level BPE: words by regular expressions.

Result<void> add_split(const Step& step, PreTokenizerSpec& pre) {
  OCTAVO_TRY(const std::string behavior, text(step.section, "behavior"));
  if (behavior != "Isolated")
    return step.section.error("behavior",
                              fmt::format("is {}; only Isolated is supported", quote(behavior)),
                              ErrorCode::unsupported);
  // What matches and what does not are words both, so that it does not matter which is asked for.
  OCTAVO_TRY(const TextPattern pattern, pattern_of(step.section));
  pre.patterns.push_back(as_regex(pattern));
  return {};
}

Result<void> add_byte_level(const Step& step, PreTokenizerSpec& pre) {
  OCTAVO_TRY(const bool prefix, flag(step.section, "add_prefix_space", true));
  if (prefix)
    return step.section.error("add_prefix_space", "is true, which is not supported",
                              ErrorCode::unsupported);
  OCTAVO_TRY(const bool use_regex, flag(step.section, "use_regex", true));
  if (use_regex) pre.patterns.emplace_back(kGpt2);
  return {};
}

Result<void> add_punctuation(const Step& step, PreTokenizerSpec& pre) {
  constexpr std::string_view kPunctuation = R"([\p{P}$+<=>^`|~])";
  OCTAVO_TRY(const auto behavior, step.section.find_string("behavior"));
  const std::string how = behavior.value_or("Isolated");
  if (how != "Isolated" && how != "Contiguous")
    return step.section.error("behavior", fmt::format("is {}, which is not supported", quote(how)),
                              ErrorCode::unsupported);
  pre.patterns.push_back(fmt::format("{}{}", kPunctuation, how == "Contiguous" ? "+" : ""));
  return {};
}

Result<void> read_byte_level(const JsonSection& root, TokenizerSpec& spec) {
  PreTokenizerSpec pre;
  OCTAVO_TRY(const auto normalizers, steps_of(root, "normalizer", "normalizers"));
  for (const Step& step : normalizers) {
    if (step.type != "NFC") return unknown_step(step);
    pre.nfc = true;
  }
  OCTAVO_TRY(const auto steps, steps_of(root, "pre_tokenizer", "pretokenizers"));
  bool bytes = false;
  for (const Step& step : steps) {
    // After the bytes are spelled out, nothing else can be matched.
    if (bytes) return unknown_step(step);
    if (step.type == "Split") {
      OCTAVO_CHECK_OK(add_split(step, pre));
    } else if (step.type == "Digits") {
      OCTAVO_TRY(const bool each, flag(step.section, "individual_digits", false));
      pre.patterns.emplace_back(each ? R"(\p{N})" : R"(\p{N}+)");
    } else if (step.type == "Punctuation") {
      OCTAVO_CHECK_OK(add_punctuation(step, pre));
    } else if (step.type == "ByteLevel") {
      OCTAVO_CHECK_OK(add_byte_level(step, pre));
      bytes = true;
    } else {
      return unknown_step(step);
    }
  }
  if (!bytes)
    return root.error("pre_tokenizer",
                      "has no ByteLevel at its end, and the model has no byte_fallback: such "
                      "tokenizers are not supported",
                      ErrorCode::unsupported);
  spec.pre_rule = std::move(pre);
  return {};
}

// --- BPE with byte fallback: SentencePiece's treatment of spaces.

Result<void> read_metaspace(const JsonSection& section, TokenizerSpec& spec) {
  OCTAVO_TRY(const auto replacement, section.find_string("replacement"));
  if (replacement.value_or(std::string(kSpaceMark)) != kSpaceMark)
    return section.error("replacement", "is not U+2581", ErrorCode::unsupported);
  OCTAVO_TRY(const bool split, flag(section, "split", true));
  if (split)
    return section.error("split", "is true, which is not supported", ErrorCode::unsupported);
  OCTAVO_TRY(const auto scheme, section.find_string("prepend_scheme"));
  OCTAVO_TRY(const bool legacy, flag(section, "add_prefix_space", true));
  const std::string how = scheme.value_or(legacy ? "always" : "never");
  if (how != "always" && how != "first" && how != "never")
    return section.error("prepend_scheme", fmt::format("is {}", quote(how)),
                         ErrorCode::unsupported);
  spec.add_space_prefix = how != "never";
  spec.space_prefix_at_start_only = how == "first";
  spec.space_prefix_unless_space = true;
  return {};
}

Result<void> read_spaces(const JsonSection& root, TokenizerSpec& spec) {
  spec.add_space_prefix = false;
  bool marked = false;
  OCTAVO_TRY(const auto normalizers, steps_of(root, "normalizer", "normalizers"));
  for (const Step& step : normalizers) {
    const json& object = step.section.object();
    if (step.type == "Prepend" && !marked && object.value("prepend", json()) == json(kSpaceMark))
      spec.add_space_prefix = true;
    else if (step.type == "Replace" && replaces_spaces(object))
      marked = true;
    else
      return unknown_step(step);
  }
  OCTAVO_TRY(const auto steps, steps_of(root, "pre_tokenizer", "pretokenizers"));
  for (const Step& step : steps) {
    // Once spaces are marked, a split at spaces finds none.
    const bool idle = marked && step.type == "Split" &&
                      step.section.object().value("pattern", json()) == json{{"String", " "}};
    if (idle) continue;
    if (step.type != "Metaspace" || marked) return unknown_step(step);
    OCTAVO_CHECK_OK(read_metaspace(step.section, spec));
    marked = true;
  }
  if (marked) return {};
  return root.error("pre_tokenizer",
                    "and normalizer do not make spaces U+2581, which alone is supported with "
                    "byte_fallback",
                    ErrorCode::unsupported);
}

// That decoding is the reverse of encoding is taken for granted for these.
Result<void> check_decoder(const JsonSection& root, bool byte_fallback) {
  OCTAVO_TRY(const auto steps, steps_of(root, "decoder", "decoders"));
  for (const Step& step : steps) {
    const bool known = byte_fallback ? step.type == "Replace" || step.type == "ByteFallback" ||
                                           step.type == "Fuse" || step.type == "Strip" ||
                                           step.type == "Metaspace"
                                     : step.type == "ByteLevel";
    if (!known) return unknown_step(step);
  }
  return {};
}

}  // namespace

Result<void> read_tokenizer_text(const JsonSection& root, bool byte_fallback, TokenizerSpec& spec) {
  OCTAVO_CHECK_OK(byte_fallback ? read_spaces(root, spec) : read_byte_level(root, spec));
  return check_decoder(root, byte_fallback);
}

}  // namespace octavo
