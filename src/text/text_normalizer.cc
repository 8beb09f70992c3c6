#include "text/text_normalizer.h"

#include <fmt/format.h>

#include "text/byte_alphabet.h"
#include "text/characters.h"
#include "text/normal_form.h"

namespace octavo {
namespace {

constexpr size_t kMaxNormalized = size_t{64} << 20;  // bytes

template <class Keep>
std::string filtered(std::string_view text, Keep keep) {
  std::string out;
  out.reserve(text.size());
  for_each_char(text, [&](char32_t c, std::string_view bytes) {
    if (keep(c)) out.append(bytes);
  });
  return out;
}

std::string lowercase(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for_each_char(text, [&](char32_t c, std::string_view) { append_lowercase(out, c); });
  return out;
}

std::string strip(std::string_view text, bool left, bool right) {
  while (left && !text.empty() && is_white_space(utf8_char(text, 0)))
    text.remove_prefix(utf8_char_size(text, 0));
  while (right && !text.empty()) {
    const size_t last = previous_utf8_char(text, text.size());
    if (!is_white_space(utf8_char(text, last))) break;
    text = text.substr(0, last);
  }
  return std::string(text);
}

bool is_bert_space(char32_t c) { return c == '\t' || c == '\n' || c == '\r' || is_white_space(c); }

bool is_bert_noise(char32_t c) {
  if (c == '\t' || c == '\n' || c == '\r') return false;
  return c == 0 || c == 0xFFFD || is_other(c);
}

std::string clean(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for_each_char(text, [&](char32_t c, std::string_view bytes) {
    if (!is_bert_noise(c)) out.append(is_bert_space(c) ? " " : bytes);
  });
  return out;
}

std::string space_han(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for_each_char(text, [&](char32_t c, std::string_view bytes) {
    if (is_han(c))
      out.append(" ").append(bytes).append(" ");
    else
      out.append(bytes);
  });
  return out;
}

std::string bert(const normalizer::Bert& step, std::string text) {
  if (step.clean_text) text = clean(text);
  if (step.space_han) text = space_han(text);
  if (step.strip_accents)
    text = filtered(normalize(text, NormalForm::nfd), [](char32_t c) { return !is_nonspacing(c); });
  return step.lowercase ? lowercase(text) : text;
}

}  // namespace

struct TextNormalizer::Compile {
  template <class T>
  Result<Step> operator()(const T& step) const {
    return Step(step);
  }

  Result<Step> operator()(const normalizer::Replace& step) const {
    Replace replace{std::nullopt, step.pattern.text, step.content};
    if (step.pattern.is_regex) {
      OCTAVO_TRY(replace.regex, Regex::compile(step.pattern.text));
      if (replace.regex->matches_nothing())
        return fail(ErrorCode::unsupported,
                    fmt::format("the normalizer Replace looks for {}, which may match nothing at "
                                "all; that is not supported",
                                step.pattern.text));
    } else if (step.pattern.text.empty()) {
      return fail(ErrorCode::corrupt_file, "the normalizer Replace looks for an empty text");
    }
    return Step(std::move(replace));
  }

  Result<Step> operator()(const normalizer::Charsmap& step) const {
    OCTAVO_TRY(Charsmap map, Charsmap::create(step.bytes));
    return Step(std::move(map));
  }
};

struct TextNormalizer::Apply {
  std::string text;

  Result<std::string> operator()(const normalizer::Unicode& step) {
    return normalize(text, step.form);
  }
  Result<std::string> operator()(const normalizer::Lowercase&) { return lowercase(text); }
  Result<std::string> operator()(const normalizer::StripAccents&) {
    return filtered(text, [](char32_t c) { return !is_mark(c); });
  }
  Result<std::string> operator()(const normalizer::Strip& step) {
    return strip(text, step.left, step.right);
  }
  Result<std::string> operator()(const normalizer::Prepend& step) {
    return text.empty() ? text : step.text + text;
  }
  Result<std::string> operator()(const normalizer::Bert& step) {
    return bert(step, std::move(text));
  }
  Result<std::string> operator()(const normalizer::ByteLevel&) { return spell_bytes(text); }
  Result<std::string> operator()(const Charsmap& map) { return map.apply(text); }

  Result<std::string> operator()(const Replace& step) {
    std::vector<TextRange> matches;
    if (step.regex) {
      RegexSearch search;
      OCTAVO_CHECK_OK(search.find_all(*step.regex, text, 0, matches));
    } else {
      const auto size = static_cast<uint32_t>(step.text.size());
      for (size_t at = text.find(step.text); at != std::string::npos;
           at = text.find(step.text, at + size))
        matches.push_back({static_cast<uint32_t>(at), static_cast<uint32_t>(at) + size});
    }
    if (matches.size() * step.content.size() > kMaxNormalized) return too_long();
    std::string out;
    size_t done = 0;
    for (const TextRange& match : matches) {
      out.append(text, done, match.begin - done).append(step.content);
      done = match.end;
    }
    return out.append(text, done);
  }

  static tl::unexpected<Error> too_long() {
    return fail(ErrorCode::resource_exhausted,
                fmt::format("the tokenizer's normalizer makes more than {} bytes of the text; "
                            "shorten it",
                            kMaxNormalized));
  }
};

Result<TextNormalizer> TextNormalizer::create(const std::vector<normalizer::Step>& steps) {
  TextNormalizer normalizer;
  for (const normalizer::Step& step : steps) {
    OCTAVO_TRY(Step compiled, std::visit(Compile{}, step));
    normalizer.steps_.push_back(std::move(compiled));
  }
  return normalizer;
}

Result<std::string> TextNormalizer::apply(std::string text) const {
  for (const Step& step : steps_) {
    OCTAVO_TRY(text, std::visit(Apply{std::move(text)}, step));
    if (text.size() > kMaxNormalized) return Apply::too_long();
  }
  return text;
}

}  // namespace octavo
