// libFuzzer target: an adapter of arbitrary bytes. The first byte chooses the form, the second how
// many of the next 256-byte steps are the configuration of a PEFT folder.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string_view>

#include "formats/lora_file.h"

namespace {

using octavo::LoraFile;
using octavo::Result;

constexpr std::string_view kConfig =
    R"({"peft_type": "LORA", "r": 2, "lora_alpha": 8, "rank_pattern": {"q_proj": 1}})";

Result<LoraFile> parse(std::span<const std::byte> bytes, uint8_t form, uint8_t steps) {
  if (form % 3 == 0) return LoraFile::parse_gguf(bytes, "fuzz", "llama");
  if (form % 3 == 1) return LoraFile::parse_peft(kConfig, bytes, "fuzz", "llama");
  const size_t size = std::min<size_t>(size_t{steps} * 256, bytes.size());
  const std::string_view config(reinterpret_cast<const char*>(bytes.data()), size);
  return LoraFile::parse_peft(config, bytes.subspan(size), "fuzz", "phi3");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const auto file = parse(std::as_bytes(std::span(data + 2, size - 2)), data[0], data[1]);
  if (!file) {
    if (file.error().message.empty()) std::abort();
    return 0;
  }
  size_t sum = 0;
  for (const octavo::LoraPair& pair : file->pairs()) {
    if (pair.a->rows() != pair.b->cols()) std::abort();
    for (const octavo::TensorView* tensor : {pair.a, pair.b})
      for (const std::byte b : tensor->data.first(tensor->bytes()))
        sum += std::to_integer<size_t>(b);
  }
  [[maybe_unused]] volatile size_t sink = sum;
  return 0;
}
