// A folder of a tiny model whose files a test changes.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "formats/hf_model.h"
#include "support/paths.h"
#include "support/safetensors_writer.h"
#include "support/temp_folder.h"
#include "tensor/dequant.h"

namespace octavo::testing {

inline std::vector<float> values_of(const ModelSource& source, const TensorView& tensor) {
  std::vector<std::byte> room;
  const TensorView stored = *source.read(tensor, room);
  std::vector<float> values(static_cast<size_t>(tensor.cols() * tensor.rows()));
  const size_t row = row_bytes(tensor.type, static_cast<size_t>(tensor.cols()));
  EXPECT_EQ(stored.data.size(), row * static_cast<size_t>(tensor.rows()));
  for (int64_t r = 0; r < tensor.rows(); ++r)
    dequantize_row(tensor.type, stored.data.data() + static_cast<size_t>(r) * row,
                   values.data() + r * tensor.cols(), tensor.cols());
  return values;
}

// Names, shapes and values are those that another program's conversion to GGUF has.
inline void expect_same_tensors(const ModelSource& folder, const ModelSource& gguf) {
  EXPECT_EQ(folder.tensors().size(), gguf.tensors().size());
  for (const TensorView& expected : gguf.tensors()) {
    const TensorView* tensor = folder.find_tensor(expected.name);
    ASSERT_NE(tensor, nullptr) << expected.name;
    EXPECT_EQ(tensor->shape, expected.shape) << expected.name;
    if (expected.name != "rope_freqs.weight") {
      EXPECT_EQ(values_of(folder, *tensor), values_of(gguf, expected)) << expected.name;
      continue;
    }
    const auto made = values_of(folder, *tensor), given = values_of(gguf, expected);
    for (size_t i = 0; i < given.size(); ++i) EXPECT_NEAR(made[i], given[i], 1e-5 * given[i]);
  }
}

inline constexpr const char* kFirstQ = "model.layers.0.self_attn.q_proj.weight";

class HfModelFolder : public ::testing::Test {
 protected:
  HfModelFolder() {
    for (const auto& entry : std::filesystem::directory_iterator(tiny_data("llama-tied")))
      if (entry.path().extension() != ".gguf")
        std::filesystem::copy(entry.path(), folder_.file(""));
  }

  std::string path() const { return folder_.file("."); }
  nlohmann::json config() const {
    return nlohmann::json::parse(read_file(path() + "/config.json"));
  }
  void set_config(const nlohmann::json& value) { write("config.json", value.dump()); }
  void write(const std::string& name, const std::string& text) {
    std::ofstream(path() + "/" + name, std::ios::binary) << text;
  }

  Error open_error() const {
    const auto model = HfModel::open(path());
    return model ? Error{ErrorCode::cancelled, "no error"} : model.error();
  }
  void expect_error(std::string_view what) const {
    const Error error = open_error();
    EXPECT_NE(error.message.find(what), std::string::npos) << error.message;
  }

  // model.safetensors with its header changed, and data for what was added.
  template <class Change>
  void change_header(Change change) {
    const std::string text = read_file(path() + "/model.safetensors");
    uint64_t length = 0;
    std::memcpy(&length, text.data(), 8);
    nlohmann::json header = nlohmann::json::parse(text.substr(8, length));
    std::string data = text.substr(8 + length);
    change(header, data);
    write("model.safetensors", safetensors(header.dump(), data));
  }

  TempFolder folder_;
};

}  // namespace octavo::testing
