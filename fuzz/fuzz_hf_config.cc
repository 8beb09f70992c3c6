// libFuzzer target: the small files of a Hugging Face folder. Up to two NUL bytes divide the input
// into config.json, generation_config.json and tokenizer_config.json.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "formats/hf_metadata.h"
#include "formats/hf_tokenizer.h"

namespace {

constexpr std::string_view kTokenizer = R"({"added_tokens":[
    {"id":3,"content":"<s>","special":true},{"id":4,"content":"</s>","special":true}],
  "pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false},"decoder":{"type":"ByteLevel"},
  "model":{"type":"BPE","vocab":{"a":0,"b":1,"ab":2},"merges":["a b"]}})";

void write(const std::string& path, std::string_view text) {
  std::ofstream(path, std::ios::binary) << text;
}

std::string make_folder() {
  const auto base = std::filesystem::exists("/dev/shm") ? "/dev/shm/" : "/tmp/";
  std::string folder = base + std::string("octavo-fuzz-") + std::to_string(getpid());
  std::filesystem::create_directories(folder);
  write(folder + "/tokenizer.json", kTokenizer);
  return folder;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::string folder = make_folder();
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  std::array<std::string_view, 3> texts;
  for (std::string_view& text : texts) {
    const size_t end = std::min(rest.find('\0'), rest.size());
    text = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  const auto metadata = octavo::read_hf_metadata(texts[0], "fuzz", "fuzz");
  if (!metadata && metadata.error().message.empty()) std::abort();
  if (texts[1].empty() && texts[2].empty()) return 0;
  write(folder + "/config.json", texts[0]);
  write(folder + "/generation_config.json", texts[1]);
  write(folder + "/tokenizer_config.json", texts[2]);
  const auto tokenizer = octavo::read_hf_tokenizer(folder);
  if (!tokenizer && tokenizer.error().message.empty()) std::abort();
  return 0;
}
