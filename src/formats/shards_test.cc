#include "formats/shards.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "formats/gguf.h"
#include "support/hf_folder.h"

namespace octavo {
namespace {

using namespace testing;
using nlohmann::json;
namespace fs = std::filesystem;

std::string tiny(const std::string& name) { return tiny_data(name); }

// The first `count` tensors go to one shard, the rest to another.
void split(const std::string& folder, size_t count) {
  const auto whole = SafetensorsFile::open(folder + "/model.safetensors");
  json map;
  size_t i = 0;
  for (const char* name : {"a.safetensors", "b.safetensors"}) {
    json header = json::object();
    std::string data;
    for (; i < whole->tensors().size() && (i < count || name[0] == 'b'); ++i) {
      const TensorView& t = whole->tensors()[i];
      std::vector<int64_t> shape;
      for (int d = t.rank; d-- > 0;) shape.push_back(t.shape[static_cast<size_t>(d)]);
      header[t.name] = {{"dtype", "F32"},
                        {"shape", shape},
                        {"data_offsets", {data.size(), data.size() + t.data.size()}}};
      data.append(reinterpret_cast<const char*>(t.data.data()), t.data.size());
      map[t.name] = name;
    }
    std::ofstream(folder + "/" + name, std::ios::binary) << safetensors(header.dump(), data);
  }
  fs::remove(folder + "/model.safetensors");
  std::ofstream(folder + "/model.safetensors.index.json") << json{{"weight_map", map}}.dump();
}

TEST_F(HfModelFolder, ReadsShards) {
  split(path(), 5);
  const auto model = HfModel::open(path());
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ((*model)->format(), "safetensors, 2 files");
  expect_same_tensors(**model, *GgufFile::open(tiny("llama-tied") + "/llama-tied-F32.gguf"));
}

TEST_F(HfModelFolder, RefusesIndexesThatContradictTheFiles) {
  split(path(), 5);
  const std::string index = "model.safetensors.index.json";
  const json original = json::parse(read_file(path() + "/" + index));
  const auto try_map = [&](const char* tensor, const json& file, const char* message) {
    json changed = original;
    if (file.is_null())
      changed["weight_map"].erase(tensor);
    else
      changed["weight_map"][tensor] = file;
    write(index, changed.dump());
    expect_error(message);
  };
  const bool in_a = original["weight_map"][kFirstQ] == "a.safetensors";
  try_map(kFirstQ, in_a ? "b.safetensors" : "a.safetensors", "is missing, though");
  try_map(kFirstQ, nullptr, "does not list it");
  try_map("model.layers.9.x", "a.safetensors", "tensor 'model.layers.9.x' is missing, though");
  try_map(kFirstQ, "c.safetensors", "c.safetensors");
  for (const char* name :
       {"../a.safetensors", "/etc/a.safetensors", "x/a.safetensors", "a.bin", ".safetensors", ""})
    try_map(kFirstQ, name, "is no name of a safetensors file of this folder");
  try_map(kFirstQ, 5, "is no name of a safetensors file of this folder");
  write(index, R"({"weight_map":[]})");
  expect_error("'weight_map' is missing or no object");
  write(index, R"({"weight_map":{}})");
  expect_error("'weight_map' lists no tensor");
  write(index, original.dump());
  fs::copy_file(path() + "/a.safetensors", path() + "/b.safetensors",
                fs::copy_options::overwrite_existing);
  expect_error("is missing, though");
}

// A copy of a tensor in another shard, with other values.
TEST_F(HfModelFolder, OfTensorsInTwoShardsTheIndexChooses) {
  const std::string whole = read_file(path() + "/model.safetensors");
  split(path(), 5);
  // All of the model in b as well, but zeros: only what the index says to be in b may be used.
  json index = json::parse(read_file(path() + "/model.safetensors.index.json"));
  const auto model_before = HfModel::open(path());
  ASSERT_TRUE(model_before) << model_before.error().message;
  EXPECT_TRUE((*model_before)->notes().empty());
  uint64_t length = 0;
  std::memcpy(&length, whole.data(), 8);
  write("c.safetensors", whole.substr(0, 8 + length) + std::string(whole.size() - 8 - length, 0));
  json one = json::parse(whole.substr(8, length));
  const std::string moved = one.items().begin().key() == "__metadata__"
                                ? std::next(one.items().begin()).key()
                                : one.items().begin().key();
  index["weight_map"][moved] = "c.safetensors";
  write("model.safetensors.index.json", index.dump());
  const auto model = HfModel::open(path());
  ASSERT_TRUE(model) << model.error().message;
  size_t zeros = 0;
  for (const TensorView& tensor : (*model)->tensors()) {
    const auto values = values_of(**model, tensor);
    zeros += std::ranges::all_of(values, [](float v) { return v == 0; });
  }
  EXPECT_EQ(zeros, 1u);
  const auto notes = (*model)->notes();
  ASSERT_EQ(notes.size(), 2u);
  EXPECT_NE((notes[0] + notes[1]).find("c.safetensors"), std::string::npos);
  EXPECT_NE((notes[0] + notes[1]).find("'" + moved + "'"), std::string::npos);
}

TEST_F(HfModelFolder, AnIndexCountsMoreThanAWholeFileBesideIt) {
  const std::string whole = read_file(path() + "/model.safetensors");
  split(path(), 5);
  write("model.safetensors", "not even safetensors");
  write("consolidated.safetensors", "nor this");
  const auto model = HfModel::open(path());
  ASSERT_TRUE(model) << model.error().message;
  expect_same_tensors(**model, *GgufFile::open(tiny("llama-tied") + "/llama-tied-F32.gguf"));
  ASSERT_EQ((*model)->notes().size(), 1u);
  EXPECT_NE(
      (*model)->notes()[0].find("'consolidated.safetensors', 'model.safetensors' are ignored"),
      std::string::npos)
      << (*model)->notes()[0];
  write("model.safetensors", whole);
  fs::remove(path() + "/b.safetensors");
  expect_error(
      "b.safetensors is not there, though model.safetensors.index.json lists it; if "
      "model.safetensors is the whole model, remove the index");
}

TEST_F(HfModelFolder, OtherWeightsBesideOneFileAreNoted) {
  EXPECT_TRUE((*HfModel::open(path()))->notes().empty());
  write("model-00001-of-00002.safetensors", "a leftover");
  const auto notes = (*HfModel::open(path()))->notes();
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_NE(notes[0].find("'model-00001-of-00002.safetensors' are ignored"), std::string::npos);
}

}  // namespace
}  // namespace octavo
