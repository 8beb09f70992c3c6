// Arbitrary bytes as compressed bodies: what comes of them keeps within the limits, and what was
// asked for beforehand covers it.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "http/content_coding.h"

using namespace octavo::http;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kMaxBytes = size_t{4} << 20;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  for (const ContentCoding coding : {ContentCoding::gzip, ContentCoding::zstd}) {
    size_t asked = 0;
    const auto may_take = [&](size_t wanted) { return (asked = wanted) <= 2 * kMaxBytes; };
    const auto text = decode(coding, bytes, {.max_bytes = kMaxBytes, .may_take = may_take});
    if (!text) continue;
    if (text->size() > kMaxBytes || text->capacity() > asked + 64) std::abort();
    if (text->size() > kFreeDecodedBytes && text->size() / kMaxCodingRatio > size) std::abort();
  }
  return 0;
}
