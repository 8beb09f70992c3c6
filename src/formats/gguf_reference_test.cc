// The tables of real files against what an independent reader found in them (tests/data/meta).
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "formats/gguf.h"
#include "support/paths.h"

namespace octavo {
namespace {

using nlohmann::json;

json load_meta(const std::string& name) {
  return json::parse(testing::read_file(testing::test_data("meta/" + name)), nullptr, false);
}

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

// "str" and "arr[i32]" in the reference; "string" and "i32[5]" here.
std::string type_in_reference(const GgufEntry& entry) {
  const auto base = [](GgufType t) { return std::string(t == GgufType::string ? "str" : name(t)); };
  return entry.type == GgufType::array ? "arr[" + base(entry.element) + "]" : base(entry.type);
}

void expect_value(const GgufFile& file, const GgufEntry& entry, const json& value) {
  const std::string key(entry.key);
  if (value.is_string()) {
    EXPECT_EQ(file.get_string(key).value(), value.get<std::string>()) << key;
  } else if (value.is_boolean()) {
    EXPECT_EQ(file.get_bool(key).value(), value.get<bool>()) << key;
  } else if (value.is_number_float()) {
    EXPECT_EQ(file.get_f32(key).value(), value.get<float>()) << key;
  } else {
    EXPECT_EQ(file.get_u64(key).value(), value.get<uint64_t>()) << key;
  }
}

void expect_strings(const GgufFile& file, const std::string& key, const json& values) {
  const auto strings = file.get_strings(key);
  ASSERT_TRUE(strings) << strings.error().message;
  for (size_t i = 0; i < values.size(); ++i)
    EXPECT_EQ((*strings)[i], values[i].get<std::string>()) << key;
}

void expect_metadata(const GgufFile& file, const json& metadata) {
  ASSERT_GT(metadata.size(), 20u);
  for (const auto& [key, expected] : metadata.items()) {
    const GgufEntry* entry = file.find(key);
    ASSERT_NE(entry, nullptr) << key;
    EXPECT_EQ(type_in_reference(*entry), expected.at("type").get<std::string>()) << key;
    if (entry->type != GgufType::array) {
      expect_value(file, *entry, expected.at("value"));
      continue;
    }
    EXPECT_EQ(entry->count, expected.at("n").get<uint64_t>()) << key;
    if (expected.contains("value")) expect_strings(file, key, expected.at("value"));
  }
}

void expect_tensor(const GgufFile& file, const TensorView& tensor, const json& expected,
                   const std::byte* start) {
  EXPECT_EQ(tensor.name, expected.at("name").get<std::string>());
  EXPECT_EQ(name(tensor.type), lower(expected.at("type").get<std::string>())) << tensor.name;
  const auto shape = expected.at("shape").get<std::vector<int64_t>>();
  ASSERT_EQ(static_cast<size_t>(tensor.rank), shape.size()) << tensor.name;
  for (size_t i = 0; i < 4; ++i)
    EXPECT_EQ(tensor.shape[i], i < shape.size() ? shape[i] : 1) << tensor.name;
  const auto at = static_cast<uint64_t>(tensor.data.data() - start);
  EXPECT_EQ(at, file.data_offset() + expected.at("offset").get<uint64_t>()) << tensor.name;
  EXPECT_EQ(file.find_tensor(tensor.name), &tensor);
}

TEST(GgufReference, SmolLm2) {
  const json meta = load_meta("smollm2-135m-q4_1.json");
  const auto file = GgufFile::open(testing::smollm2_path());
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->version(), meta.at("gguf_version").get<uint32_t>());
  EXPECT_EQ(file->alignment(), meta.at("alignment").get<uint64_t>());
  EXPECT_EQ(file->data_offset(), meta.at("data_offset").get<uint64_t>());
  EXPECT_EQ(file->size(), meta.at("expected_file_bytes").get<uint64_t>());
  EXPECT_EQ(file->metadata().size(), meta.at("n_kv").get<size_t>());
  expect_metadata(*file, meta.at("metadata"));

  const json& tensors = meta.at("tensors");
  ASSERT_EQ(file->tensors().size(), tensors.size());
  const std::byte* start = file->tensors()[0].data.data() - file->data_offset();  // offset 0
  for (size_t i = 0; i < tensors.size(); ++i)
    expect_tensor(*file, file->tensors()[i], tensors[i], start);
}

TEST(GgufReference, SmolLm2CanBeReadAfterDropping) {
  const auto file = GgufFile::open(testing::smollm2_path());
  ASSERT_TRUE(file) << file.error().message;
  const TensorView& tensor = *file->find_tensor("blk.0.ffn_down.weight");
  const std::vector<std::byte> before(tensor.data.begin(), tensor.data.end());
  file->drop(tensor);
  EXPECT_TRUE(std::equal(before.begin(), before.end(), tensor.data.begin(), tensor.data.end()));
}

TEST(GgufReference, Qwen2Vocabulary) {
  const json meta = load_meta("deepseek-r1-distill-qwen-7b-q4_k_m.json");
  const auto file = GgufFile::open(testing::unpacked("qwen2-vocab.gguf"));
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_TRUE(file->tensors().empty());
  expect_metadata(*file, meta.at("metadata"));
}

TEST(GgufReference, TinyModels) {
  for (const char* model : {"llama-tied", "llama-rope3", "qwen2"})
    for (const char* type : {"F32", "F16", "Q8_0", "Q4_0"}) {
      const std::string path =
          testing::test_data(fmt::format("tiny/{0}/{0}-{1}.gguf", model, type));
      const auto file = GgufFile::open(path);
      ASSERT_TRUE(file) << file.error().message;
      const TensorView* embedding = file->find_tensor("token_embd.weight");
      ASSERT_NE(embedding, nullptr) << path;
      EXPECT_EQ(name(embedding->type), lower(type)) << path;
      EXPECT_EQ(embedding->rows(), 512) << path;
    }
}

}  // namespace
}  // namespace octavo
