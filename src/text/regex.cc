#include "text/regex.h"

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
// PCRE2's \w is letters, numbers and the low line.
constexpr std::string_view kWordClass = R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc})";

std::string expand_classes(std::string_view pattern) {
  std::string out;
  bool in_class = false;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] == '\\') {
      if (i + 1 == pattern.size()) break;
      const char escaped = pattern[++i];
      const std::string_view expansion = escaped == 's' || escaped == 'S'   ? kSpaceClass
                                         : escaped == 'w' || escaped == 'W' ? kWordClass
                                                                            : "";
      const bool positive = escaped == 's' || escaped == 'w';
      if (!expansion.empty() && in_class && positive) {
        out.append(expansion);
      } else if (!expansion.empty() && !(in_class && escaped == 'W')) {
        out.append(positive ? "[" : "[^").append(expansion).append("]");
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

struct Regex::Compiled {
  Code code;
};

Regex::Regex(std::unique_ptr<Compiled> compiled) : compiled_(std::move(compiled)) {}
Regex::Regex(Regex&&) noexcept = default;
Regex& Regex::operator=(Regex&&) noexcept = default;
Regex::~Regex() = default;

Result<Regex> Regex::compile(std::string_view source) {
  if (source.size() > kMaxPattern)
    return fail(ErrorCode::unsupported,
                fmt::format("a pre-tokenizer pattern has {} bytes; at most {} are supported",
                            source.size(), kMaxPattern));
  const std::string pattern = expand_classes(source);
  int code = 0;
  PCRE2_SIZE offset = 0;
  auto compiled = std::make_unique<Compiled>();
  compiled->code.reset(
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                    PCRE2_UTF | PCRE2_UCP | PCRE2_DOLLAR_ENDONLY | PCRE2_NEVER_BACKSLASH_C, &code,
                    &offset, nullptr));
  if (!compiled->code) {
    return fail(ErrorCode::unsupported,
                fmt::format("pre-tokenizer pattern {}: {} at offset {}; link a newer PCRE2", source,
                            pcre2_message(code), offset));
  }
  // Where code cannot be generated at run time the interpreter does the same, only slower.
  (void)pcre2_jit_compile(compiled->code.get(), PCRE2_JIT_COMPLETE);
  return Regex(std::move(compiled));
}

bool Regex::matches_nothing() const {
  uint32_t empty = 0;
  pcre2_pattern_info(compiled_->code.get(), PCRE2_INFO_MATCHEMPTY, &empty);
  return empty != 0;
}

struct RegexSearch::State {
  State()
      : data(pcre2_match_data_create(1, nullptr)),
        context(pcre2_match_context_create(nullptr)),
        stack(pcre2_jit_stack_create(kJitStackBytes, kJitStackLimit, nullptr)) {
    if (!context) return;
    pcre2_set_heap_limit(context.get(), kHeapLimitKib);
    if (stack) pcre2_jit_stack_assign(context.get(), nullptr, stack.get());
  }

  // The patterns backtrack at most over the text once for each alternative.
  void set_limit(size_t bytes) {
    const uint64_t limit = std::min<uint64_t>(10000 + uint64_t{64} * bytes, UINT32_MAX);
    pcre2_set_match_limit(context.get(), static_cast<uint32_t>(limit));
  }

  int match(const pcre2_code* code, std::string_view piece, size_t from) {
    const auto run = [&](uint32_t options) {
      return pcre2_match(code, reinterpret_cast<PCRE2_SPTR>(piece.data()), piece.size(), from,
                         PCRE2_NO_UTF_CHECK | options, data.get(), context.get());
    };
    const int status = run(0);
    return status == PCRE2_ERROR_JIT_STACKLIMIT ? run(PCRE2_NO_JIT) : status;
  }

  MatchData data;
  MatchContext context;
  JitStack stack;
};

RegexSearch::RegexSearch() : state_(std::make_unique<State>()) {}
RegexSearch::~RegexSearch() = default;

Result<void> RegexSearch::find_all(const Regex& regex, std::string_view piece, uint32_t base,
                                   std::vector<TextRange>& matches) {
  if (!state_->data || !state_->context)
    return fail(ErrorCode::resource_exhausted, "pre-tokenizer: out of memory");
  state_->set_limit(piece.size());
  for (size_t from = 0; from < piece.size();) {
    const int status = state_->match(regex.compiled_->code.get(), piece, from);
    if (status == PCRE2_ERROR_NOMATCH) break;
    if (status < 0) {
      return fail(ErrorCode::resource_exhausted,
                  fmt::format("pre-tokenizer: {} at byte {} of the text; shorten or break up the "
                              "text there",
                              pcre2_message(status), base + from));
    }
    const PCRE2_SIZE* bounds = pcre2_get_ovector_pointer(state_->data.get());
    const size_t begin = bounds[0], end = bounds[1];
    if (end <= begin) {
      if (end >= piece.size()) break;
      from = end + utf8_char_size(piece, end);
      continue;
    }
    matches.push_back({base + static_cast<uint32_t>(begin), base + static_cast<uint32_t>(end)});
    from = end;
  }
  return {};
}

}  // namespace octavo
