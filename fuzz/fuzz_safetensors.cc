// libFuzzer target: arbitrary bytes as a safetensors file. Every tensor of what is accepted lies
// inside the file.
#include <cstddef>
#include <cstdint>
#include <span>

#include "formats/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto file = octavo::SafetensorsFile::parse(bytes, "fuzz");
  if (!file) return 0;
  for (const octavo::TensorView& tensor : file->tensors()) {
    const volatile auto last = tensor.data.back();
    static_cast<void>(last);
  }
  return 0;
}
