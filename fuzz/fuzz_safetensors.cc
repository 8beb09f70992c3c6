// libFuzzer target: the first byte chooses which of the formats of a Hugging Face folder the rest
// is read as.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "formats/hf_metadata.h"
#include "formats/safetensors.h"
#include "formats/shards.h"
#include "formats/tokenizer_json.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace octavo;
  if (size == 0) return 0;
  const auto bytes = std::as_bytes(std::span(data + 1, size - 1));
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  switch (data[0] % 4) {
    case 0:
      if (const auto file = SafetensorsFile::parse(bytes, "fuzz"))
        for (const TensorView& tensor : file->tensors()) {
          const volatile auto last = tensor.data.back();
          static_cast<void>(last);
        }
      break;
    case 1:
      static_cast<void>(ShardIndex::parse(text, "fuzz"));
      break;
    case 2:
      static_cast<void>(read_hf_metadata(text, "fuzz", "fuzz"));
      break;
    default:
      static_cast<void>(parse_tokenizer_json(text, "fuzz"));
  }
  return 0;
}
