#include "text/pretokenizer_rules.h"

#include <algorithm>
#include <vector>

namespace octavo {
namespace {

constexpr std::string_view kDigit = R"(\p{N})";
constexpr std::string_view kUpTo3Digits = R"(\p{N}{1,3})";

constexpr std::string_view kGpt2 =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

constexpr std::string_view kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";

constexpr std::string_view kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";

constexpr std::string_view kQwen35 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";

constexpr std::string_view kSeedCoder =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}\r\n]+)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";

constexpr std::string_view kBailing =
    R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*)"
    R"(|\s*[\r\n]|\s+(?!\S)|\s+)";

constexpr std::string_view kTekken =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
    R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

constexpr std::string_view kGpt4o =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

constexpr std::string_view kNewline = R"([\r\n])";

// The cased letters as DeepSeek's first tokenizers list them; not all of today's Unicode.
constexpr std::string_view kDeepSeekLetters =
    R"(\s?[A-Za-z\x{B5}\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{1BA}\x{1BC}-\x{1BF}\x{1C4}-\x{293})"
    R"(\x{295}-\x{2AF}\x{370}-\x{373}\x{376}\x{377}\x{37B}-\x{37D}\x{37F}\x{386}\x{388}-\x{38A}\x{38C})"
    R"(\x{38E}-\x{3A1}\x{3A3}-\x{3F5}\x{3F7}-\x{481}\x{48A}-\x{52F}\x{531}-\x{556}\x{10A0}-\x{10C5})"
    R"(\x{13A0}-\x{13F5}\x{13F8}-\x{13FD}\x{1C90}-\x{1CBA}\x{1CBD}-\x{1CBF}\x{1D00}-\x{1D2B})"
    R"(\x{1D6B}-\x{1D77}\x{1D79}-\x{1D9A}\x{1E00}-\x{1F15}\x{1F18}-\x{1F1D}\x{1F20}-\x{1F45})"
    R"(\x{1F48}-\x{1F4D}\x{1F50}-\x{1F57}\x{1F59}\x{1F5B}\x{1F5D}\x{1F5F}-\x{1F7D}\x{1F80}-\x{1FB4})"
    R"(\x{1FB6}-\x{1FBC}\x{1FBE}\x{1FC2}-\x{1FC4}\x{1FC6}-\x{1FCC}\x{1FD0}-\x{1FD3}\x{1FD6}-\x{1FDB})"
    R"(\x{1FE0}-\x{1FEC}\x{1FF2}-\x{1FF4}\x{1FF6}-\x{1FFC}\x{2102}\x{2107}\x{210A}-\x{2113}\x{2115})"
    R"(\x{2119}-\x{211D}\x{2124}\x{2126}\x{2128}\x{212A}-\x{212D}\x{212F}-\x{2134}\x{2139})"
    R"(\x{213C}-\x{213F}\x{2145}-\x{2149}\x{214E}\x{2183}\x{2184}\x{2C00}-\x{2C7B}\x{2C7E}-\x{2CE4})"
    R"(\x{2CEB}-\x{2CEE}\x{2CF2}\x{2CF3}\x{A640}-\x{A66D}\x{A680}-\x{A69B}\x{A722}-\x{A76F})"
    R"(\x{A771}-\x{A787}\x{A78B}-\x{A78E}\x{AB70}-\x{ABBF}\x{FB00}-\x{FB06}\x{FB13}-\x{FB17})"
    R"(\x{FF21}-\x{FF3A}\x{FF41}-\x{FF5A}\x{10400}-\x{1044F}\x{104B0}-\x{104D3}\x{104D8}-\x{104FB})"
    R"(\x{10C80}-\x{10CB2}\x{10CC0}-\x{10CF2}\x{118A0}-\x{118DF}\x{1E900}-\x{1E943}]+)";
constexpr std::string_view kDeepSeekPunctuation =
    R"(\s?[!-/:-~\x{FF01}-\x{FF0F}\x{FF1A}-\x{FF5E}\x{2018}-\x{201F}\x{3000}-\x{3002}]+)";
// The look-behind keeps it linear: inside a run of spaces no second search starts.
constexpr std::string_view kTrailingSpace = R"((?<!\s)\s++$)";
constexpr std::string_view kDeepSeekEastAsian =
    R"([\x{4E00}-\x{9FA5}\x{0800}-\x{4E00}\x{AC00}-\x{D7FF}]+)";

constexpr std::string_view kDeepSeek3EastAsian = R"([\x{4E00}-\x{9FA5}\x{3040}-\x{30FF}]+)";
constexpr std::string_view kDeepSeek3 =
    R"RE([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+)RE"
    R"RE(| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)RE";

constexpr std::string_view kFalconPunctuation = R"([\p{P}$+<=>^~|`]+)";
constexpr std::string_view kBloom =
    R"( ?[^(\s|.,!?\x{2026}\x{3002}\x{FF0C}\x{3001}\x{0964}\x{06D4}\x{060C})]+)";

constexpr PreTokenizerRule kRules[] = {
    {.names = "gpt-2 gpt2 phi-2 gigachat a.x-4.0 mellum exaone4 jais trillion granite-docling",
     .patterns = {kGpt2}},
    {.names = "mpt olmo", .patterns = {kGpt2}, .nfc = true},
    {.names = "smollm starcoder refact codeshell exaone minerva-7b mellum2",
     .patterns = {kDigit, kGpt2}},
    {.names = "command-r", .patterns = {kDigit, kGpt2}, .nfc = true},
    {.names = "llama3 llama-v3 llama-bpe falcon3 falcon-h1 pixtral midm-2.0 lfm2",
     .patterns = {kLlama3},
     .whole_words = true,
     .adds_bos = true},
    {.names = "dbrx smaug-bpe chatglm-bpe glm4", .patterns = {kLlama3}},
    {.names = "qwen2", .patterns = {kQwen2}, .nfc = true},
    {.names = "deepseek-r1-qwen stablelm2 hunyuan megrez kormo solar-open grok-2",
     .patterns = {kQwen2}},
    {.names = "qwen35", .patterns = {kQwen35}, .nfc = true},
    {.names = "tekken", .patterns = {kTekken}, .whole_words = true, .adds_bos = true},
    {.names = "gpt-4o llama4 kanana2 minimax-m2", .patterns = {kGpt4o}},
    {.names = "deepseek-llm",
     .patterns = {kNewline, kDeepSeekLetters, kDeepSeekPunctuation, kTrailingSpace,
                  kDeepSeekEastAsian, R"(\p{N}+)"}},
    {.names = "deepseek-coder",
     .patterns = {kNewline, R"(\s?\p{L}+)", R"(\s?\p{P}+)", kDeepSeekEastAsian, kDigit}},
    {.names = "deepseek-v3 hunyuan-dense joyai-llm",
     .patterns = {kUpTo3Digits, kDeepSeek3EastAsian, kDeepSeek3}},
    {.names = "falcon", .patterns = {kFalconPunctuation, kGpt2, "[0-9][0-9][0-9]"}},
    {.names = "bloom poro-chat gpt3-finnish", .patterns = {kBloom}},
    {.names = "viking", .patterns = {kBloom, kDigit}},
    {.names = "seed-coder", .patterns = {kSeedCoder}},
    {.names = "bailingmoe bailingmoe2 llada-moe", .patterns = {kBailing}},
};

// Calls visit(name) for each name of a rule until it returns true; says whether one did.
template <class Visit>
bool any_name(std::string_view names, Visit visit) {
  while (!names.empty()) {
    const size_t end = std::min(names.find(' '), names.size());
    if (visit(names.substr(0, end))) return true;
    names.remove_prefix(std::min(end + 1, names.size()));
  }
  return false;
}

}  // namespace

const PreTokenizerRule* find_pretokenizer_rule(std::string_view name) {
  for (const PreTokenizerRule& rule : kRules) {
    if (any_name(rule.names, [&](std::string_view known) { return known == name; })) return &rule;
  }
  return nullptr;
}

std::optional<std::string_view> pretokenizer_name(const PreTokenizerSpec& spec) {
  for (const PreTokenizerRule& rule : kRules) {
    const auto end = std::find(rule.patterns.begin(), rule.patterns.end(), std::string_view());
    const bool same =
        std::equal(rule.patterns.begin(), end, spec.patterns.begin(), spec.patterns.end());
    if (same && rule.whole_words == spec.whole_words && rule.nfc == spec.nfc)
      return rule.names.substr(0, rule.names.find(' '));
  }
  return std::nullopt;
}

std::string pretokenizer_names() {
  std::vector<std::string_view> names;
  for (const PreTokenizerRule& rule : kRules) {
    any_name(rule.names, [&](std::string_view name) { return names.push_back(name), false; });
  }
  std::sort(names.begin(), names.end());
  std::string list;
  for (const std::string_view name : names) list.append(list.empty() ? "" : ", ").append(name);
  return list;
}

}  // namespace octavo
