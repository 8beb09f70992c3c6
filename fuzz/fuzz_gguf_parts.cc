// libFuzzer target: the first byte chooses the part of a small GGUF model in three files that the
// rest takes the place of. The model is refused, or all of it can be read, from any part.
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "formats/gguf_part_name.h"
#include "formats/gguf_parts.h"
#include "formats/gguf_writer.h"

namespace {

using namespace octavo;

constexpr uint32_t kCount = 3;

void write(const std::string& path, std::string_view content) {
  std::ofstream(path, std::ios::binary)
      .write(content.data(), static_cast<std::streamsize>(content.size()));
}

std::string read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// On a disk of memory, if there is one: of this process alone, gone with it.
class Parts {
 public:
  Parts() {
    std::error_code error;
    const char* root = std::filesystem::is_directory("/dev/shm", error) ? "/dev/shm" : "/tmp";
    folder_ = std::string(root) + "/octavo-fuzz-" + std::to_string(::getpid());
    std::filesystem::create_directories(folder_);
    for (uint32_t number = 1; number <= kCount; ++number) originals_[number - 1] = make(number);
  }
  ~Parts() { std::filesystem::remove_all(folder_); }

  std::string path(uint32_t number) const {
    return GgufPartName{folder_ + "/m", 1, kCount}.of(number);
  }
  void restore(uint32_t number) const { write(path(number), originals_[number - 1]); }

 private:
  std::string make(uint32_t number) const {
    GgufPairs pairs;
    if (number == 1) pairs.set_string("general.name", "parts");
    pairs.set_u16("split.no", static_cast<uint16_t>(number - 1));
    pairs.set_u16("split.count", kCount);
    pairs.set_i32("split.tensors.count", kCount);
    auto writer = GgufFileWriter::create(path(number), true, pairs,
                                         {{.name = std::string(1, static_cast<char>('a' + number)),
                                           .type = DType::f32,
                                           .shape = {8, 1, 1, 1}}});
    const std::array<std::byte, 32> data{};
    if (!writer || !writer->append(data) || !writer->finish()) std::abort();
    return read(path(number));
  }

  std::string folder_;
  std::array<std::string, kCount> originals_;
};

size_t read_everything(const ModelSource& model) {
  size_t sum = model.size() + model.parts().size();
  for (const TensorView& tensor : model.tensors()) {
    for (const std::byte b : tensor.data) sum += std::to_integer<size_t>(b);
    if (model.find_tensor(tensor.name) != &tensor) std::abort();
    model.drop(tensor);
  }
  const auto spec = model.tokenizer();
  if (!spec && spec.error().message.empty()) std::abort();
  return sum;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Parts parts;
  if (size == 0) return 0;
  const uint32_t number = data[0] % kCount + 1;
  write(parts.path(number), {reinterpret_cast<const char*>(data + 1), size - 1});
  for (uint32_t from = 1; from <= kCount; ++from) {
    const auto model = open_gguf(parts.path(from));
    if (!model && model.error().message.empty()) std::abort();
    if (model) [[maybe_unused]]
      volatile size_t sink = read_everything(**model);
  }
  parts.restore(number);
  return 0;
}
