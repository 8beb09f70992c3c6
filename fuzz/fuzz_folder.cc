// libFuzzer target: the first byte chooses the file of a small Hugging Face folder that the rest
// takes the place of. What can be read as a model must give a GGUF file that can be read too.
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "base/thread_pool.h"
#include "formats/gguf.h"
#include "formats/gguf_tokenizer.h"
#include "formats/quantize_file.h"

namespace {

using namespace octavo;

struct FolderFile {
  const char* name;
  std::string content;
};

struct Tensor {
  const char* name;
  const char* shape;
  size_t values;
};
constexpr std::array<Tensor, 11> kTensors = {{
    {"model.embed_tokens.weight", "[8,32]", 256},
    {"model.norm.weight", "[32]", 32},
    {"model.layers.0.input_layernorm.weight", "[32]", 32},
    {"model.layers.0.self_attn.q_proj.weight", "[32,32]", 1024},
    {"model.layers.0.self_attn.k_proj.weight", "[32,32]", 1024},
    {"model.layers.0.self_attn.v_proj.weight", "[32,32]", 1024},
    {"model.layers.0.self_attn.o_proj.weight", "[32,32]", 1024},
    {"model.layers.0.post_attention_layernorm.weight", "[32]", 32},
    {"model.layers.0.mlp.gate_proj.weight", "[32,32]", 1024},
    {"model.layers.0.mlp.up_proj.weight", "[32,32]", 1024},
    {"model.layers.0.mlp.down_proj.weight", "[32,32]", 1024},
}};

// Two files have all tensors, and the index takes some of each.
std::string small_index() {
  std::string map;
  for (size_t i = 0; i < kTensors.size(); ++i)
    map += std::string(i == 0 ? "" : ",") + '"' + kTensors[i].name + R"(":")" +
           (i % 2 == 0 ? "model.safetensors" : "b.safetensors") + '"';
  return R"({"weight_map":{)" + map + "}}";
}

std::string small_weights() {
  std::string header = "{";
  size_t at = 0;
  for (const Tensor& tensor : kTensors) {
    const size_t end = at + 2 * tensor.values;
    header += std::string(at == 0 ? "" : ",") + '"' + tensor.name +
              R"(":{"dtype":"BF16","shape":)" + tensor.shape + R"(,"data_offsets":[)" +
              std::to_string(at) + "," + std::to_string(end) + "]}";
    at = end;
  }
  header += "}";
  std::string out(8, '\0');
  const uint64_t length = header.size();
  std::memcpy(out.data(), &length, sizeof(length));
  return out + header + std::string(at, '\0');
}

const std::array<FolderFile, 8>& small_folder() {
  static const std::array<FolderFile, 8> files = {{
      {"config.json",
       R"({"model_type":"llama","num_hidden_layers":1,"hidden_size":32,"num_attention_heads":2,)"
       R"("intermediate_size":32,"rms_norm_eps":1e-5,"max_position_embeddings":64,)"
       R"("tie_word_embeddings":true})"},
      {"tokenizer.json",
       R"({"model":{"type":"BPE","vocab":{"a":0,"b":1,"c":2,"ab":3,"abc":4},)"
       R"("merges":["a b","ab c"]},"added_tokens":[{"id":6,"content":"<end>","special":true}],)"
       R"("pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false},)"
       R"("decoder":{"type":"ByteLevel"}})"},
      {"tokenizer_config.json", R"({"eos_token":"<end>","add_bos_token":false})"},
      {"generation_config.json", R"({"eos_token_id":[6,2]})"},
      {"chat_template.jinja", "{{ messages }}"},
      {"model.safetensors", small_weights()},
      {"b.safetensors", small_weights()},
      {"model.safetensors.index.json", small_index()},
  }};
  return files;
}

void write(const std::string& path, std::string_view content) {
  std::ofstream(path, std::ios::binary)
      .write(content.data(), static_cast<std::streamsize>(content.size()));
}

// On a disk of memory, if there is one: of this process alone, gone with it.
class Folder {
 public:
  Folder() {
    std::error_code error;
    const char* root = std::filesystem::is_directory("/dev/shm", error) ? "/dev/shm" : "/tmp";
    path_ = std::string(root) + "/octavo-fuzz-" + std::to_string(::getpid());
    std::filesystem::create_directories(path_);
    for (const FolderFile& file : small_folder()) write(path_ + "/" + file.name, file.content);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

void quantize(const std::string& folder) {
  static const auto pool = ThreadPool::create(1).value();
  const std::string out = folder + "/out.gguf";
  const auto opened = open_weight_source(folder);
  if (!opened) return;
  const WeightSource& source = opened->weights;
  const auto report =
      quantize_to_file(source, out,
                       {.rules = make_rules(DType::q8_0, false, source.tensors, source.num_experts),
                        .overwrite = true},
                       *pool);
  if (!report) return;
  const auto file = GgufFile::open(out);
  if (!file || !read_tokenizer_spec(*file)) std::abort();
  std::filesystem::remove(out);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Folder folder;
  if (size == 0) return 0;
  const FolderFile& file = small_folder()[data[0] % small_folder().size()];
  const std::string path = folder.path() + "/" + file.name;
  write(path, {reinterpret_cast<const char*>(data + 1), size - 1});
  quantize(folder.path());
  write(path, file.content);
  return 0;
}
