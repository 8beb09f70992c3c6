// libFuzzer target: arbitrary bytes as a tokenizer.json. What is accepted must make valid tokens of
// a hard text and valid UTF-8 of any tokens.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "formats/tokenizer_json.h"
#include "text/tokenizer.h"
#include "text/utf8.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace octavo;
  auto spec = parse_tokenizer_json({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!spec) return spec.error().message.empty() ? std::abort(), 0 : 0;
  const auto tokenizer = Tokenizer::create(std::move(*spec));
  if (!tokenizer) return tokenizer.error().message.empty() ? std::abort(), 0 : 0;
  constexpr std::string_view kText =
      " ab  Aab<s> e\u0301 \u00C5\u212B \uFB01 12.5\n\t\u65E5\u672C \U0001F642\u200D\u2581x "
      "</s><b>";
  for (const bool special : {false, true}) {
    const auto ids = tokenizer->encode(kText, {.parse_special = special, .add_special = special});
    if (!ids) continue;
    for (const TokenId id : *ids)
      if (!tokenizer->contains(id)) std::abort();
    for (const SpacePrefix prefix : {SpacePrefix::keep, SpacePrefix::strip})
      if (find_invalid_utf8(tokenizer->decode(*ids, !special, prefix))) std::abort();
  }
  return 0;
}
