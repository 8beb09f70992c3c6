#include "formats/lora_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "formats/peft_config.h"
#include "support/gguf_writer.h"
#include "support/safetensors_writer.h"
#include "support/temp_folder.h"

namespace octavo {
namespace {

using namespace testing;
using Json = nlohmann::ordered_json;

Json plain_config() {
  return {{"peft_type", "LORA"}, {"r", 2}, {"lora_alpha", 8}, {"bias", "none"}};
}

// Tensors of zeros: names and shapes.
std::string tensors_of(const std::vector<std::pair<std::string, std::vector<int64_t>>>& shapes) {
  Json header = Json::object();
  size_t end = 0;
  for (const auto& [name, shape] : shapes) {
    size_t bytes = 4;
    for (const int64_t size : shape) bytes *= static_cast<size_t>(size);
    header[name] = {{"dtype", "F32"}, {"shape", shape}, {"data_offsets", {end, end + bytes}}};
    end += bytes;
  }
  return safetensors(header.dump(), std::string(end, '\0'));
}

const std::string kModule = "base_model.model.model.layers.0.self_attn.q_proj";
std::string plain_tensors() {
  return tensors_of({{kModule + ".lora_A.weight", {2, 16}}, {kModule + ".lora_B.weight", {16, 2}}});
}

Result<LoraFile> peft(const Json& config, const std::string& tensors,
                      std::string_view architecture = "llama") {
  return LoraFile::parse_peft(config.dump(), as_bytes(tensors), "a", architecture);
}

template <class T>
void expect_error(const Result<T>& result, std::string_view part,
                  ErrorCode code = ErrorCode::unsupported) {
  ASSERT_FALSE(result) << part;
  EXPECT_NE(result.error().message.find(part), std::string::npos) << result.error().message;
  EXPECT_EQ(error_name(result.error().code), error_name(code)) << result.error().message;
}

TEST(LoraFile, ReadsPeft) {
  const std::string tensors = plain_tensors();
  const auto file = peft(plain_config(), tensors);
  ASSERT_TRUE(file) << file.error().message;
  ASSERT_EQ(file->pairs().size(), 1u);
  const LoraPair& pair = file->pairs()[0];
  EXPECT_EQ(pair.target, "blk.0.attn_q");
  EXPECT_EQ(pair.scale, 4);
  EXPECT_TRUE(pair.hf_rows);
  EXPECT_EQ(pair.a->rows(), 2);
  EXPECT_EQ(pair.b->rows(), 16);
  const auto qwen = peft(plain_config(), tensors, "qwen2");
  ASSERT_TRUE(qwen);
  EXPECT_FALSE(qwen->pairs()[0].hf_rows);
}

TEST(LoraFile, ScalesAsTheConfigurationSays) {
  const auto scale = [](const char* field, const Json& value) {
    Json config = plain_config();
    config[field] = value;
    const std::string tensors = plain_tensors();
    const auto file = peft(config, tensors);
    EXPECT_TRUE(file) << (file ? "" : file.error().message);
    return file ? file->pairs()[0].scale : 0;
  };
  EXPECT_FLOAT_EQ(scale("use_rslora", true), 8 / std::sqrt(2.0f));
  EXPECT_FLOAT_EQ(scale("alpha_pattern", {{"q_proj", 2}}), 1);
  EXPECT_FLOAT_EQ(scale("alpha_pattern", {{"proj", 2}, {"v_proj", 3}}), 4);
  EXPECT_FLOAT_EQ(scale("alpha_pattern", {{"model.layers.0.self_attn.q_proj", 6}}), 3);
  EXPECT_FLOAT_EQ(scale("alpha_pattern", {{"layers.1.self_attn.q_proj", 6}}), 4);
  EXPECT_FLOAT_EQ(scale("lora_alpha", 1.5), 0.75);
}

TEST(LoraFile, RanksMayDiffer) {
  Json config = plain_config();
  config["r"] = 7;
  const std::string tensors = plain_tensors();
  expect_error(peft(config, tensors), "has 2 rows, but its rank by adapter_config.json is 7",
               ErrorCode::corrupt_file);
  config["rank_pattern"] = {{"self_attn.q_proj", 2}};
  const auto file = peft(config, tensors);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->pairs()[0].scale, 4);
  config["rank_pattern"] = {{"self_attn.q_proj", 2}, {"q_proj", 3}};
  expect_error(peft(config, tensors), "say different things");
}

// Each changes what an adapter computes, or may.
TEST(LoraFile, RefusesOtherKindsByName) {
  const std::string tensors = plain_tensors();
  const std::vector<std::pair<const char*, Json>> settings = {
      {"peft_type", "IA3"},
      {"bias", "lora_only"},
      {"use_dora", true},
      {"modules_to_save", {"lm_head"}},
      {"fan_in_fan_out", true},
      {"lora_bias", true},
      {"layer_replication", Json::parse("[[0,4],[2,5]]")},
      {"trainable_token_indices", {1, 2}},
      {"target_parameters", {"mlp.experts.gate_up_proj"}},
      {"alora_invocation_tokens", {1}},
      {"use_qalora", true},
      {"something_new", 3},
      {"init_lora_weights", "pissa"},
      {"init_lora_weights", "loftq"},
      {"rank_pattern", {{".*q_proj$", 2}}},
      {"alpha_pattern", {{"^model", 2}}}};
  for (const auto& [field, value] : settings) {
    Json config = plain_config();
    config[field] = value;
    expect_error(peft(config, tensors), field);
  }
  for (const auto& [field, value] :
       std::vector<std::pair<const char*, Json>>{{"use_dora", false},
                                                 {"modules_to_save", nullptr},
                                                 {"something_new", nullptr},
                                                 {"layer_replication", Json::array()},
                                                 {"init_lora_weights", "gaussian"},
                                                 {"loftq_config", Json::object()},
                                                 {"target_modules", {"q_proj"}},
                                                 {"peft_version", "0.17.0"}}) {
    Json config = plain_config();
    config[field] = value;
    EXPECT_TRUE(peft(config, tensors)) << field;
  }
}

TEST(LoraFile, RefusesConfigurationsThatAreNone) {
  const std::string tensors = plain_tensors();
  for (const auto& [field, value] :
       std::vector<std::pair<const char*, Json>>{{"r", 0},
                                                 {"r", -1},
                                                 {"r", 2.5},
                                                 {"r", "2"},
                                                 {"r", 1e12},
                                                 {"lora_alpha", "x"},
                                                 {"lora_alpha", 1e300},
                                                 {"use_rslora", 1},
                                                 {"rank_pattern", 3}}) {
    Json config = plain_config();
    config[field] = value;
    expect_error(peft(config, tensors), field, ErrorCode::corrupt_file);
  }
  for (const char* field : {"peft_type", "r", "lora_alpha"}) {
    Json config = plain_config();
    config.erase(field);
    expect_error(peft(config, tensors), field, ErrorCode::corrupt_file);
  }
}

TEST(LoraFile, RefusesTensorsByName) {
  const auto refused = [](const std::string& name, std::string_view why,
                          ErrorCode code = ErrorCode::unsupported) {
    const std::string tensors = tensors_of({{kModule + ".lora_A.weight", {2, 16}},
                                            {kModule + ".lora_B.weight", {16, 2}},
                                            {name, {2, 16}}});
    const auto file = peft(plain_config(), tensors);
    expect_error(file, name, code);
    expect_error(file, why, code);
  };
  const std::string layer = "base_model.model.model.layers.0.";
  refused(layer + "self_attn.q_proj.lora_magnitude_vector", "DoRA");
  refused(layer + "self_attn.q_proj.lora_B.bias", "bias");
  refused("base_model.model.model.embed_tokens.lora_embedding_A", "embedding");
  refused("base_model.model.lm_head.weight", "modules_to_save");
  refused(layer + "self_attn.qq_proj.lora_A.weight", "do not have");
  refused(layer + "self_attn.q_proj.lora_A.default.weight", "not of a LoRA adapter");
  refused(layer + "block_sparse_moe.experts.3.w1.lora_A.weight", "expert");
  refused("model.layers.0.self_attn.v_proj.lora_A.weight", "not of a LoRA adapter");
  refused(layer + "self_attn.v_proj.lora_A.weight", "B is missing", ErrorCode::corrupt_file);
  refused("x.lora_A.weight", "not of a LoRA adapter");
}

TEST(LoraFile, RefusesShapes) {
  const auto refused = [](std::vector<int64_t> a, std::vector<int64_t> b, std::string_view why) {
    const std::string tensors = tensors_of(
        {{kModule + ".lora_A.weight", std::move(a)}, {kModule + ".lora_B.weight", std::move(b)}});
    expect_error(peft(plain_config(), tensors), why, ErrorCode::corrupt_file);
  };
  refused({2, 16}, {16, 3}, "has 3 columns");
  refused({3, 16}, {16, 3}, "has 3 rows");
  refused({16}, {16, 2}, "has 1 dimensions");
  refused({2, 16}, {16, 2, 1}, "has 3 dimensions");
  expect_error(peft(plain_config(), tensors_of({})), "no LoRA matrices", ErrorCode::corrupt_file);
  expect_error(peft(plain_config(), plain_tensors(), "unheard-of"), "unheard-of");
}

GgufWriter plain_gguf() {
  GgufWriter out;
  out.string("general.type", "adapter")
      .string("general.architecture", "llama")
      .string("adapter.type", "lora");
  return out;
}
GgufWriter& add_pair(GgufWriter& out, const std::string& matrix = "blk.0.attn_q") {
  const std::string zeros(2 * 16 * 4, '\0');
  return out.tensor(matrix + ".weight.lora_a", {16, 2}, 0, zeros)
      .tensor(matrix + ".weight.lora_b", {2, 16}, 0, zeros);
}
Result<LoraFile> gguf(const GgufWriter& writer, std::string_view architecture = "llama") {
  const std::string bytes = writer.build();
  return LoraFile::parse_gguf(as_bytes(bytes), "g", architecture);
}

TEST(LoraFile, ReadsGguf) {
  GgufWriter writer = plain_gguf();
  writer.f32("adapter.lora.alpha", 8);
  const std::string bytes = add_pair(writer).build();
  const auto file = LoraFile::parse_gguf(as_bytes(bytes), "g", "llama");
  ASSERT_TRUE(file) << file.error().message;
  const LoraPair& pair = file->pairs()[0];
  EXPECT_EQ(pair.target, "blk.0.attn_q");
  EXPECT_EQ(pair.scale, 4);
  EXPECT_FALSE(pair.hf_rows);
}

TEST(LoraFile, RefusesGguf) {
  const auto with_alpha = [](float alpha) {
    GgufWriter writer = plain_gguf();
    writer.f32("adapter.lora.alpha", alpha);
    return writer;
  };
  GgufWriter writer = with_alpha(8);
  expect_error(gguf(add_pair(writer), "qwen2"), "general.architecture");
  writer = with_alpha(0);
  expect_error(gguf(add_pair(writer)), "adapter.lora.alpha");
  writer = plain_gguf();
  expect_error(gguf(add_pair(writer)), "adapter.lora.alpha", ErrorCode::corrupt_file);
  writer = with_alpha(8);
  writer.u32("adapter.alora.invocation_tokens", 3);
  expect_error(gguf(add_pair(writer)), "adapter.alora.invocation_tokens");
  writer = with_alpha(8);
  expect_error(gguf(add_pair(writer, "blk.0.ffn_gate_exps")), "experts");
  writer = with_alpha(8);
  writer.tensor("blk.0.attn_norm.weight", {16}, 0, std::string(64, '\0'));
  expect_error(gguf(add_pair(writer)), "blk.0.attn_norm.weight");
  expect_error(gguf(with_alpha(8)), "no LoRA matrices", ErrorCode::corrupt_file);
  GgufWriter model;
  model.string("general.architecture", "llama");
  expect_error(gguf(add_pair(model)), "general.type", ErrorCode::corrupt_file);
  GgufWriter vector;
  vector.string("general.type", "adapter")
      .string("general.architecture", "llama")
      .string("adapter.type", "control_vector");
  expect_error(gguf(add_pair(vector)), "adapter.type");
}

TEST(LoraFile, SaysWhatIsMissingOnDisk) {
  const TempFolder folder;
  expect_error(LoraFile::open(folder.file("nothing"), "llama"), "nothing", ErrorCode::not_found);
  std::filesystem::create_directory(folder.file("a"));
  expect_error(LoraFile::open(folder.file("a"), "llama"), "adapter_config.json",
               ErrorCode::not_found);
  folder.write("a/adapter_config.json", plain_config().dump());
  expect_error(LoraFile::open(folder.file("a"), "llama"), "adapter_model.safetensors",
               ErrorCode::not_found);
  folder.write("a/adapter_model.bin", "x");
  expect_error(LoraFile::open(folder.file("a"), "llama"), "pickle");
  folder.write("a/adapter_model.safetensors", plain_tensors());
  EXPECT_TRUE(LoraFile::open(folder.file("a"), "llama"));
}

}  // namespace
}  // namespace octavo
