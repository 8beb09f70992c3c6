#include "formats/weight_source.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "formats/gguf.h"
#include "formats/gguf_tokenizer.h"
#include "formats/quantize_file.h"
#include "support/paths.h"
#include "support/safetensors_writer.h"
#include "support/temp_folder.h"

namespace octavo {
namespace {

using namespace testing;
using nlohmann::json;
namespace fs = std::filesystem;

constexpr const char* kModels[] = {
    "llama-tied", "llama-untied", "llama-rope3", "qwen2", "mistral", "qwen3", "phi3",
    "gemma3",     "mixtral",      "qwen3moe",    "olmo2", "granite", "gemma2"};

Result<QuantizeReport> quantize(const std::string& in, const std::string& out, DType type) {
  const auto pool = ThreadPool::create(2).value();
  OCTAVO_TRY(const OpenWeightSource opened, open_weight_source(in));
  const WeightSource& source = opened.weights;
  return quantize_to_file(
      source, out, {.rules = make_rules(type, true, source.tensors, source.num_experts)}, *pool);
}

bool same_bytes(std::span<const std::byte> a, std::span<const std::byte> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

void expect_same_tensors(const GgufFile& out, const GgufFile& expected) {
  ASSERT_EQ(out.tensors().size(), expected.tensors().size());
  for (const TensorView& tensor : out.tensors()) {
    const TensorView* other = expected.find_tensor(tensor.name);
    ASSERT_TRUE(other) << tensor.name;
    EXPECT_EQ(tensor.type, other->type) << tensor.name;
    EXPECT_EQ(tensor.shape, other->shape) << tensor.name;
    EXPECT_EQ(tensor.rank, other->rank) << tensor.name;
    EXPECT_TRUE(same_bytes(tensor.data, other->data)) << tensor.name;
  }
}

// All that the other file says, the new one says too, in the same type.
void expect_same_pairs(const GgufFile& out, const GgufFile& expected) {
  for (const GgufEntry& entry : expected.metadata()) {
    if (entry.key == "general.name") continue;
    // Without a scaling it has no effect.
    if (entry.key.ends_with("rope.scaling.original_context_length")) continue;
    const GgufEntry* made = out.find(entry.key);
    ASSERT_TRUE(made) << entry.key;
    EXPECT_EQ(made->type, entry.type) << entry.key;
    EXPECT_EQ(made->element, entry.element) << entry.key;
    EXPECT_TRUE(same_bytes(made->value, entry.value)) << entry.key;
  }
}

TEST(WeightSource, AFolderBecomesAnotherProgramsFile) {
  for (const std::string name : kModels)
    for (const DType type : {DType::q8_0, DType::q4_0}) {
      SCOPED_TRACE(name);
      const TempFolder folder;
      const auto report = quantize(tiny_data(name), folder.file("out.gguf"), type);
      ASSERT_TRUE(report) << report.error().message;
      const auto out = GgufFile::open(folder.file("out.gguf"));
      ASSERT_TRUE(out) << out.error().message;
      const std::string suffix = type == DType::q8_0 ? "-Q8_0.gguf" : "-Q4_0.gguf";
      const auto expected = GgufFile::open(tiny_data(name) + "/" + name + suffix).value();
      expect_same_tensors(*out, expected);
      expect_same_pairs(*out, expected);
    }
}

// --- A folder of one layer, which a test may spoil.

struct Made {
  std::string name;
  std::vector<int> shape;  // rows first
  std::string dtype = "F32";
  std::string bytes = {};  // empty: zeros of F32
};

const std::vector<Made> kTensors = {
    {"model.embed_tokens.weight", {8, 32}},
    {"model.norm.weight", {32}},
    {"model.layers.0.input_layernorm.weight", {32}},
    {"model.layers.0.self_attn.q_proj.weight", {32, 32}},
    {"model.layers.0.self_attn.k_proj.weight", {32, 32}},
    {"model.layers.0.self_attn.v_proj.weight", {32, 32}},
    {"model.layers.0.self_attn.o_proj.weight", {32, 32}},
    {"model.layers.0.post_attention_layernorm.weight", {32}},
    {"model.layers.0.mlp.gate_proj.weight", {64, 32}},
    {"model.layers.0.mlp.up_proj.weight", {64, 32}},
    {"model.layers.0.mlp.down_proj.weight", {32, 64}},
};

std::vector<Made> of_layers(int count) {
  std::vector<Made> made = {kTensors[0], kTensors[1]};
  for (int layer = 0; layer < count; ++layer)
    for (size_t i = 2; i < kTensors.size(); ++i) {
      made.push_back(kTensors[i]);
      made.back().name.replace(std::string("model.layers.").size(), 1, std::to_string(layer));
    }
  return made;
}

std::string tensors_of(const std::vector<Made>& made) {
  json header = json::object();
  std::string data;
  for (const Made& tensor : made) {
    size_t zeros = sizeof(float);
    for (const int n : tensor.shape) zeros *= static_cast<size_t>(n);
    const size_t at = data.size();
    data += tensor.bytes.empty() ? std::string(zeros, '\0') : tensor.bytes;
    header[tensor.name] = {
        {"dtype", tensor.dtype}, {"shape", tensor.shape}, {"data_offsets", {at, data.size()}}};
  }
  return safetensors(header.dump(), data);
}

json config_of(int layers) {
  return {{"model_type", "llama"},         {"num_hidden_layers", layers}, {"hidden_size", 32},
          {"num_attention_heads", 2},      {"intermediate_size", 64},     {"rms_norm_eps", 1e-5},
          {"max_position_embeddings", 64}, {"tie_word_embeddings", true}};
}

// Tokens 0 to 4, an added one with the id 6.
json tokenizer_of() {
  return {{"model",
           {{"type", "BPE"},
            {"vocab", {{"a", 0}, {"b", 1}, {"c", 2}, {"ab", 3}, {"abc", 4}}},
            {"merges", {"a b", "ab c"}}}},
          {"added_tokens", {{{"id", 6}, {"content", "<end>"}, {"special", true}}}},
          {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}}},
          {"decoder", {{"type", "ByteLevel"}}}};
}

class SmallFolder : public ::testing::Test {
 protected:
  void write(const std::vector<Made>& made, const json& config, const json& tokenizer) {
    folder_.write("model.safetensors", tensors_of(made));
    folder_.write("config.json", config.dump());
    folder_.write("tokenizer.json", tokenizer.dump());
  }
  std::string path() const { return fs::path(folder_.file("x")).parent_path().string(); }
  GgufFile written() {
    const auto report = quantize(path(), out_.file("out.gguf"), DType::q8_0);
    EXPECT_TRUE(report) << report.error().message;
    return GgufFile::open(out_.file("out.gguf")).value();
  }
  Error refused() {
    const auto opened = open_weight_source(path());
    EXPECT_FALSE(opened);
    return opened ? Error{} : opened.error();
  }

  TempFolder folder_, out_;
};

TEST_F(SmallFolder, HasANameForEveryRowOfTheEmbedding) {
  write(of_layers(1), config_of(1), tokenizer_of());
  const TokenizerSpec spec = read_tokenizer_spec(written()).value();
  ASSERT_EQ(spec.tokens.size(), 8u);
  EXPECT_EQ(spec.tokens[5], "[PAD5]");
  EXPECT_EQ(spec.tokens[6], "<end>");
  EXPECT_EQ(spec.tokens[7], "[PAD7]");
  EXPECT_EQ(spec.types[5], TokenType::unused);
  EXPECT_EQ(spec.types[6], TokenType::control);
  EXPECT_EQ(spec.pre, "gpt-2");
}

TEST_F(SmallFolder, EndsOfAnswersAreKept) {
  write(of_layers(1), config_of(1), tokenizer_of());
  folder_.write("generation_config.json", R"({"eos_token_id": [6, 2, 1, 0]})");
  const auto source = open_weight_source(path());
  ASSERT_TRUE(source) << source.error().message;
  ASSERT_EQ(source->weights.notes.size(), 1u);
  EXPECT_NE(source->weights.notes[0].find("of the 4 tokens"), std::string::npos);
  const TokenizerSpec spec = read_tokenizer_spec(written()).value();
  EXPECT_EQ(spec.eos, TokenId{6});
  EXPECT_EQ(spec.eot, TokenId{2});
  EXPECT_EQ(spec.extra_eog, std::vector<TokenId>{TokenId{1}});
}

TEST_F(SmallFolder, MissingTensorsAreNamed) {
  for (const size_t gone : {size_t{0}, size_t{1}, size_t{14}}) {
    std::vector<Made> made = of_layers(2);
    const std::string name = made[gone].name;
    made.erase(made.begin() + static_cast<std::ptrdiff_t>(gone));
    write(made, config_of(2), tokenizer_of());
    const Error error = refused();
    EXPECT_EQ(error.code, ErrorCode::corrupt_file);
    EXPECT_NE(error.message.find("'" + name + "' is missing"), std::string::npos) << error.message;
  }
}

TEST_F(SmallFolder, LayersAreAsManyAndAsLargeAsTheyShouldBe) {
  write(of_layers(3), config_of(2), tokenizer_of());
  EXPECT_NE(refused().message.find("beyond the 2 of config.json"), std::string::npos);
  write(of_layers(2), config_of(3), tokenizer_of());
  EXPECT_NE(refused().message.find("model.layers.2."), std::string::npos);
  std::vector<Made> made = of_layers(2);
  made[14].shape = {64, 32};
  write(made, config_of(2), tokenizer_of());
  EXPECT_NE(refused().message.find("has another shape than"), std::string::npos);
}

TEST_F(SmallFolder, WordsThatAreCutInAnUnknownWayAreRefused) {
  json tokenizer = tokenizer_of();
  tokenizer["pre_tokenizer"] = {
      {"type", "Sequence"},
      {"pretokenizers",
       {{{"type", "Split"}, {"pattern", {{"Regex", "x+y"}}}, {"behavior", "Isolated"}},
        {{"type", "ByteLevel"}, {"add_prefix_space", false}}}}};
  write(of_layers(1), config_of(1), tokenizer);
  const Error error = refused();
  EXPECT_EQ(error.code, ErrorCode::unsupported);
  EXPECT_NE(error.message.find("no name in GGUF"), std::string::npos);
}

TEST_F(SmallFolder, WhatGgufCannotSayIsNoted) {
  json tokenizer = tokenizer_of();
  tokenizer["added_tokens"][0]["rstrip"] = true;
  write(of_layers(1), config_of(1), tokenizer);
  const auto source = open_weight_source(path());
  ASSERT_TRUE(source) << source.error().message;
  ASSERT_EQ(source->weights.notes.size(), 1u);
  EXPECT_NE(source->weights.notes[0].find("rstrip"), std::string::npos);
}

TEST_F(SmallFolder, RopeThatOthersDoNotReadIsNoted) {
  json config = config_of(1);
  config["rope_scaling"] = {{"rope_type", "dynamic"}, {"factor", 2.0}};
  write(of_layers(1), config, tokenizer_of());
  const auto source = open_weight_source(path());
  ASSERT_TRUE(source) << source.error().message;
  ASSERT_EQ(source->weights.notes.size(), 1u);
  EXPECT_NE(source->weights.notes[0].find("'dynamic'"), std::string::npos);
}

template <class T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

int code_of(int input, int output) { return (input * 7 + output) % 16; }

// GPTQ's tensors of a matrix of 64 inputs and 32 outputs; inputs are in two groups by turns, whose
// scales are 0.5 and 2, and zero is 8.
std::vector<Made> packed_down() {
  const std::string module = "model.layers.0.mlp.down_proj.";
  std::vector<int32_t> codes(8 * 32), groups(64);
  for (int input = 0; input < 64; ++input) {
    groups[static_cast<size_t>(input)] = input % 2;
    for (int output = 0; output < 32; ++output)
      codes[static_cast<size_t>(input / 8 * 32 + output)] |=
          static_cast<int32_t>(static_cast<uint32_t>(code_of(input, output)) << input % 8 * 4);
  }
  std::vector<uint16_t> scales(32, 0x3800);
  scales.resize(64, 0x4000);
  return {{module + "qweight", {8, 32}, "I32", bytes_of(codes)},
          {module + "qzeros", {2, 4}, "I32", bytes_of(std::vector<int32_t>(8, 0x77777777))},
          {module + "scales", {2, 32}, "F16", bytes_of(scales)},
          {module + "g_idx", {64}, "I32", bytes_of(groups)}};
}

TEST_F(SmallFolder, ColumnsOfPackedWeightsAreInTheOrderOfTheInputs) {
  std::vector<Made> made = of_layers(1);
  made.pop_back();
  for (Made& part : packed_down()) made.push_back(std::move(part));
  json config = config_of(1);
  config["quantization_config"] = {
      {"quant_method", "gptq"}, {"bits", 4}, {"group_size", 32}, {"desc_act", true}, {"sym", true}};
  write(made, config, tokenizer_of());
  const auto report = quantize(path(), out_.file("out.gguf"), DType::f32);
  ASSERT_TRUE(report) << report.error().message;
  const GgufFile out = GgufFile::open(out_.file("out.gguf")).value();
  const TensorView& down = *out.find_tensor("blk.0.ffn_down.weight");
  ASSERT_EQ(down.type, DType::f32);
  const auto* values = reinterpret_cast<const float*>(down.data.data());
  for (int output = 0; output < 32; ++output)
    for (int input = 0; input < 64; ++input)
      ASSERT_EQ(values[output * 64 + input],
                (input % 2 == 0 ? 0.5f : 2.0f) * static_cast<float>(code_of(input, output) - 8));
}

// BPE with byte fallback has scores in GGUF, and its kind of spaces.
TEST_F(SmallFolder, PiecesHaveScores) {
  json tokenizer = tokenizer_of();
  tokenizer["model"]["byte_fallback"] = true;
  tokenizer["pre_tokenizer"] = {
      {"type", "Metaspace"}, {"split", false}, {"prepend_scheme", "first"}};
  tokenizer["decoder"] = {{"type", "Metaspace"}};
  write(of_layers(1), config_of(1), tokenizer);
  const auto source = open_weight_source(path());
  ASSERT_TRUE(source) << source.error().message;
  EXPECT_EQ(source->weights.notes.size(), 1u);
  const TokenizerSpec spec = read_tokenizer_spec(written()).value();
  EXPECT_EQ(spec.model, "llama");
  EXPECT_EQ(spec.add_space_prefix, true);
  ASSERT_EQ(spec.scores.size(), 8u);
  EXPECT_GT(spec.scores[3], spec.scores[4]);
  EXPECT_GT(spec.scores[4], spec.scores[7]);
  EXPECT_TRUE(spec.merges.empty());
}

}  // namespace
}  // namespace octavo
