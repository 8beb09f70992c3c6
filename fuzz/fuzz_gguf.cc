// Arbitrary bytes as a GGUF file: every file is refused, or all of it can be read.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "formats/gguf.h"
#include "formats/gguf_tokenizer.h"

namespace {

// Reads what a loader would; what lies outside the input is the sanitizer's to find.
size_t read_everything(const octavo::GgufFile& file) {
  size_t sum = 0;
  for (const octavo::GgufEntry& entry : file.metadata()) {
    sum += octavo::type_text(entry).size() + octavo::value_text(entry).size();
    sum += file.get_strings(entry.key).has_value();
    sum += file.get_i32s(entry.key).has_value();
    sum += file.get_f32s(entry.key).has_value();
    sum += file.get_u64(entry.key).has_value();
  }
  for (const octavo::TensorView& tensor : file.tensors()) {
    for (const std::byte b : tensor.data) sum += std::to_integer<size_t>(b);
    if (file.find_tensor(tensor.name) != &tensor) std::abort();
  }
  return sum;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span bytes(reinterpret_cast<const std::byte*>(data), size);
  const auto file = octavo::GgufFile::parse(bytes, "input.gguf");
  if (!file) {
    if (file.error().message.empty()) std::abort();
    return 0;
  }
  [[maybe_unused]] volatile size_t sink = read_everything(*file);
  const auto spec = octavo::read_tokenizer_spec(*file);
  if (!spec && spec.error().message.empty()) std::abort();
  return 0;
}
