#include "text/pretokenizer.h"

#include <fmt/format.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <string>

#include "text/utf8.h"

namespace octavo {
namespace {

template <auto free_function>
struct Free {
  template <class T>
  void operator()(T* object) const {
    free_function(object);
  }
};
using Code = std::unique_ptr<pcre2_code, Free<pcre2_code_free>>;
using MatchData = std::unique_ptr<pcre2_match_data, Free<pcre2_match_data_free>>;
using MatchContext = std::unique_ptr<pcre2_match_context, Free<pcre2_match_context_free>>;
using JitStack = std::unique_ptr<pcre2_jit_stack, Free<pcre2_jit_stack_free>>;

constexpr size_t kJitStackBytes = 32 * 1024;
constexpr size_t kJitStackLimit = 1024 * 1024;
constexpr uint32_t kHeapLimitKib = 64 * 1024;
constexpr size_t kMaxPattern = 4096;  // published ones have up to 1,000

// PCRE2's \s also takes U+180E, which has not been a space since Unicode 6.3.
constexpr std::string_view kSpaceClass = R"(\t-\r\x{85}\p{Z})";

std::string expand_spaces(std::string_view pattern) {
  std::string out;
  bool in_class = false;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] == '\\') {
      if (i + 1 == pattern.size()) break;
      const char escaped = pattern[++i];
      if (escaped == 's' && in_class) {
        out.append(kSpaceClass);
      } else if (escaped == 's' || escaped == 'S') {
        out.append(escaped == 's' ? "[" : "[^").append(kSpaceClass).append("]");
      } else {
        out.append({'\\', escaped});
      }
      continue;
    }
    if (pattern[i] == '[') in_class = true;
    if (pattern[i] == ']') in_class = false;
    out.push_back(pattern[i]);
  }
  return out;
}

std::string pcre2_message(int code) {
  PCRE2_UCHAR buffer[256] = {};
  pcre2_get_error_message(code, buffer, sizeof(buffer));
  return reinterpret_cast<const char*>(buffer);
}

}  // namespace

// One compiled pattern. Matching changes nothing in it.
class PreTokenizer::Pattern {
 public:
  static Result<Pattern> compile(std::string_view source) {
    const std::string pattern = expand_spaces(source);
    int code = 0;
    PCRE2_SIZE offset = 0;
    Pattern compiled;
    compiled.code_.reset(
        pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                      PCRE2_UTF | PCRE2_UCP | PCRE2_DOLLAR_ENDONLY | PCRE2_NEVER_BACKSLASH_C, &code,
                      &offset, nullptr));
    if (!compiled.code_) {
      return fail(ErrorCode::unsupported,
                  fmt::format("pre-tokenizer pattern {}: {} at offset {}; link a newer PCRE2",
                              source, pcre2_message(code), offset));
    }
    // Where code cannot be generated at run time the interpreter does the same, only slower.
    (void)pcre2_jit_compile(compiled.code_.get(), PCRE2_JIT_COMPLETE);
    return compiled;
  }

  const pcre2_code* code() const { return code_.get(); }

 private:
  Code code_;
};

namespace {

// What one call of split() needs of its own: match results, limits and the generated code's stack.
class Matcher {
 public:
  Matcher()
      : data_(pcre2_match_data_create(1, nullptr)),
        context_(pcre2_match_context_create(nullptr)),
        stack_(pcre2_jit_stack_create(kJitStackBytes, kJitStackLimit, nullptr)) {
    if (!context_) return;
    pcre2_set_heap_limit(context_.get(), kHeapLimitKib);
    if (stack_) pcre2_jit_stack_assign(context_.get(), nullptr, stack_.get());
  }

  // Appends the ends of the pieces of `piece`, which begins at `base`.
  Result<void> split(const pcre2_code* code, std::string_view piece, uint32_t base,
                     std::vector<uint32_t>& ends) {
    if (!data_ || !context_)
      return fail(ErrorCode::resource_exhausted, "pre-tokenizer: out of memory");
    set_limit(piece.size());
    size_t done = 0, from = 0;
    while (from < piece.size()) {
      const int status = match(code, piece, from);
      if (status == PCRE2_ERROR_NOMATCH) break;
      if (status < 0) {
        return fail(
            ErrorCode::resource_exhausted,
            fmt::format(
                "pre-tokenizer: {} at byte {} of the text; shorten or break up the text there",
                pcre2_message(status), base + from));
      }
      const PCRE2_SIZE* bounds = pcre2_get_ovector_pointer(data_.get());
      const size_t begin = bounds[0], end = bounds[1];
      if (end <=
          begin) {  // no pattern of the table matches nothing; this only keeps the loop finite
        if (end >= piece.size()) break;
        from = end + utf8_char_size(piece, end);
        continue;
      }
      if (begin > done) ends.push_back(base + static_cast<uint32_t>(begin));
      ends.push_back(base + static_cast<uint32_t>(end));
      done = from = end;
    }
    if (done < piece.size()) ends.push_back(base + static_cast<uint32_t>(piece.size()));
    return {};
  }

 private:
  // The patterns backtrack at most over the text once for each alternative.
  void set_limit(size_t bytes) {
    const uint64_t limit = std::min<uint64_t>(10000 + uint64_t{64} * bytes, UINT32_MAX);
    pcre2_set_match_limit(context_.get(), static_cast<uint32_t>(limit));
  }

  int match(const pcre2_code* code, std::string_view piece, size_t from) {
    const auto run = [&](uint32_t options) {
      return pcre2_match(code, reinterpret_cast<PCRE2_SPTR>(piece.data()), piece.size(), from,
                         PCRE2_NO_UTF_CHECK | options, data_.get(), context_.get());
    };
    const int status = run(0);
    return status == PCRE2_ERROR_JIT_STACKLIMIT ? run(PCRE2_NO_JIT) : status;
  }

  MatchData data_;
  MatchContext context_;
  JitStack stack_;
};

}  // namespace

PreTokenizer::PreTokenizer() = default;
PreTokenizer::PreTokenizer(PreTokenizer&&) noexcept = default;
PreTokenizer& PreTokenizer::operator=(PreTokenizer&&) noexcept = default;
PreTokenizer::~PreTokenizer() = default;

Result<PreTokenizer> PreTokenizer::create(std::string_view name) {
  PreTokenizer pre;
  const PreTokenizerRule* rule = find_pretokenizer_rule(name);
  if (!rule) {
    return fail(
        ErrorCode::unsupported,
        fmt::format(
            "tokenizer.ggml.pre is {}: without the right pre-tokenizer the model would read other "
            "tokens than it was trained on. Set it in the file to one of: {}",
            name.empty() ? "missing" : fmt::format("'{}', which is unknown", name),
            pretokenizer_names()));
  }
  pre.rule_ = *rule;
  for (const std::string_view source : rule->patterns) {
    if (source.empty()) break;
    OCTAVO_CHECK_OK(pre.add_pattern(source));
  }
  return pre;
}

Result<PreTokenizer> PreTokenizer::create(const PreTokenizerSpec& spec) {
  PreTokenizer pre;
  pre.rule_ = {.names = {}, .patterns = {}, .whole_words = spec.whole_words, .nfc = spec.nfc};
  for (const std::string& source : spec.patterns) OCTAVO_CHECK_OK(pre.add_pattern(source));
  return pre;
}

Result<void> PreTokenizer::add_pattern(std::string_view source) {
  if (source.size() > kMaxPattern)
    return fail(ErrorCode::unsupported,
                fmt::format("a pre-tokenizer pattern has {} bytes; at most {} are supported",
                            source.size(), kMaxPattern));
  OCTAVO_TRY(Pattern pattern, Pattern::compile(source));
  patterns_.push_back(std::move(pattern));
  return {};
}

Result<std::vector<uint32_t>> PreTokenizer::split(std::string_view text) const {
  std::vector<uint32_t> ends, next;
  if (text.empty()) return ends;
  ends.push_back(static_cast<uint32_t>(text.size()));
  Matcher matcher;
  for (const Pattern& pattern : patterns_) {
    next.clear();
    uint32_t begin = 0;
    for (const uint32_t end : ends) {
      OCTAVO_CHECK_OK(matcher.split(pattern.code(), text.substr(begin, end - begin), begin, next));
      begin = end;
    }
    ends.swap(next);
  }
  return ends;
}

}  // namespace octavo
