// libFuzzer target: arbitrary bytes as model.safetensors.index.json.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "formats/shards.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto index = octavo::ShardIndex::parse({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!index && index.error().message.empty()) std::abort();
  return 0;
}
