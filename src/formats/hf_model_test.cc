#include "formats/hf_model.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "formats/gguf.h"
#include "formats/open_model.h"
#include "support/hf_folder.h"

namespace octavo {
namespace {

using namespace testing;
using nlohmann::json;
namespace fs = std::filesystem;

constexpr const char* kModels[] = {"llama-tied", "llama-untied", "llama-rope3", "qwen2",  "mistral",
                                   "qwen3",      "phi3",         "gemma2",      "gemma3", "mixtral",
                                   "qwen3moe",   "olmo2",        "granite"};

std::string tiny(const std::string& name) { return tiny_data(name); }

// Every key that decides what is computed has the same value.
void expect_same_keys(const ModelSource& folder, const ModelSource& gguf) {
  for (const GgufEntry& expected : gguf.metadata()) {
    if (expected.key.starts_with("tokenizer.") || expected.key.starts_with("general.")) continue;
    // Without a scaling it has no effect.
    if (expected.key.ends_with("rope.scaling.original_context_length")) continue;
    const GgufEntry* entry = folder.find(expected.key);
    ASSERT_NE(entry, nullptr) << expected.key;
    EXPECT_EQ(value_text(*entry), value_text(expected)) << expected.key;
  }
  EXPECT_EQ(*folder.get_string("general.architecture"), *gguf.get_string("general.architecture"));
}

TEST(HfModel, IsWhatItsGgufFileIs) {
  for (const char* name : kModels) {
    SCOPED_TRACE(name);
    const auto folder = HfModel::open(tiny(name));
    const auto gguf = GgufFile::open(tiny(name) + "/" + name + "-F32.gguf");
    ASSERT_TRUE(folder) << folder.error().message;
    ASSERT_TRUE(gguf) << gguf.error().message;
    expect_same_tensors(**folder, *gguf);
    expect_same_keys(**folder, *gguf);
  }
}

TEST(HfModel, HasTheTokenizerOfItsGgufFile) {
  for (const char* name : kModels) {
    const auto folder = HfModel::open(tiny(name));
    const auto gguf = GgufFile::open(tiny(name) + "/" + name + "-F32.gguf");
    const auto spec = (*folder)->tokenizer();
    const auto expected = gguf->tokenizer();
    ASSERT_TRUE(spec) << spec.error().message;
    ASSERT_EQ(spec->tokens.size(), expected->tokens.size());
    for (size_t i = 0; i < spec->tokens.size(); ++i)
      EXPECT_EQ(spec->tokens[i], expected->tokens[i]);
    EXPECT_EQ(spec->types, expected->types);
    ASSERT_EQ(spec->merges.size(), expected->merges.size());
    for (size_t i = 0; i < spec->merges.size(); ++i)
      EXPECT_EQ(spec->merges[i], expected->merges[i]);
    EXPECT_EQ(spec->bos, expected->bos);
    EXPECT_EQ(spec->eos, expected->eos);
    EXPECT_EQ(spec->padding, expected->padding);
    EXPECT_EQ(spec->add_bos, expected->add_bos);
    EXPECT_EQ(spec->chat_template, expected->chat_template);
  }
}

TEST_F(HfModelFolder, ReadsBothSpellingsOfRope) {
  json c = config();
  c.erase("rope_parameters");
  c["rope_theta"] = 5000.0;
  set_config(c);
  EXPECT_EQ(*(*HfModel::open(path()))->get_f32("llama.rope.freq_base"), 5000.0f);
  c.erase("rope_theta");
  c["rope_parameters"] = {{"rope_type", "linear"}, {"factor", 4.0}, {"rope_theta", 7000.0}};
  set_config(c);
  const auto model = HfModel::open(path());
  EXPECT_EQ(*(*model)->get_f32("llama.rope.freq_base"), 7000.0f);
  EXPECT_EQ(*(*model)->get_f32("llama.rope.scaling.factor"), 4.0f);
}

TEST_F(HfModelFolder, RefusesConfigurationsByField) {
  const json original = config();
  const std::pair<json, const char*> cases[] = {
      {{{"model_type", "gpt_neox"}}, "model_type 'gpt_neox' is not supported; supported are llama"},
      {{{"attention_bias", true}}, "q_proj.bias' is missing"},
      {{{"hidden_act", "relu"}}, "only \"silu\" is supported"},
      {{{"logit_scale", 0.5}}, "field 'logit_scale' is not supported"},
      {{{"quantization_config", {{"quant_method", "fp8"}}}}, "quantised by 'fp8'"},
      {{{"rope_parameters", {{"rope_type", "mrope"}}}}, "'mrope'"},
      {{{"rope_parameters", {{"rope_type", "linear"}}}}, "'rope_parameters.factor' is missing"},
      {{{"rope_parameters", {{"rope_type", "linear"}, {"factor", 2}, {"mscale", 1}}}},
       "'rope_parameters.mscale' is not known"},
      {{{"rms_norm_eps", nullptr}}, "'rms_norm_eps' is missing"},
      {{{"rms_norm_eps", "x"}}, "'rms_norm_eps' is not a number"},
      {{{"intermediate_size", -1}}, "'intermediate_size'"},
      {{{"tie_word_embeddings", false}}, "tensor 'lm_head.weight' is missing"},
      {{{"num_local_experts", 4}}, "'num_experts_per_tok' is missing"},
  };
  for (const auto& [change, message] : cases) {
    json c = original;
    c.update(change);
    set_config(c);
    expect_error(message);
  }
  write("config.json", "{");
  expect_error("config.json: is not a JSON object");
}

// Factors of the score that the family's width gives are left to it.
TEST_F(HfModelFolder, ReadsTheScaleOfScores) {
  json c = config();
  c["model_type"] = "gemma3_text";
  c["hidden_act"] = "gelu_pytorch_tanh";
  const auto scale = [&](const json& width) {
    c["query_pre_attn_scalar"] = width;
    const auto read = read_hf_metadata(c.dump(), "config.json", "");
    EXPECT_TRUE(read) << read.error().message;
    const auto metadata = GgufMetadata::create("config.json", read->keys.entries());
    return *metadata->find_f32("gemma3.attention.scale");
  };
  EXPECT_EQ(scale(16), std::nullopt);  // the size of a head
  EXPECT_EQ(scale(64), 0.125f);
  EXPECT_EQ(scale(nullptr), 0.0625f);  // the class takes 256
}

TEST_F(HfModelFolder, FamiliesNeedTheirFactors) {
  const std::pair<const char*, const char*> cases[] = {
      {"granite", "embedding_multiplier"},  {"granite", "attention_multiplier"},
      {"granite", "residual_multiplier"},   {"granite", "logits_scaling"},
      {"gemma2", "attn_logit_softcapping"}, {"gemma2", "final_logit_softcapping"}};
  for (const auto& [family, field] : cases) {
    const json original = json::parse(read_file(tiny(family) + "/config.json"));
    for (const json& value : {json(nullptr), json(0), json(-1.5), json(1e300), json("1")}) {
      json c = original;
      c[field] = value;
      const auto read = read_hf_metadata(c.dump(), "config.json", "");
      ASSERT_FALSE(read) << c.dump();
      EXPECT_NE(read.error().message.find(field), std::string::npos) << read.error().message;
    }
  }
}

TEST_F(HfModelFolder, NamesTensorsThatDoNotBelong) {
  change_header([](json& header, std::string& data) {
    header["model.layers.0.self_attn.sink"] = {
        {"dtype", "F32"}, {"shape", {1}}, {"data_offsets", {data.size(), data.size() + 4}}};
    data.append(4, '\0');
  });
  expect_error("tensor 'model.layers.0.self_attn.sink' is not part of the family llama");
}

TEST_F(HfModelFolder, IgnoresWhatFollowsFromTheConfiguration) {
  change_header([](json& header, std::string& data) {
    header["model.layers.0.self_attn.rotary_emb.inv_freq"] = {
        {"dtype", "F32"}, {"shape", {8}}, {"data_offsets", {data.size(), data.size() + 32}}};
    data.append(32, '\0');
  });
  EXPECT_EQ(open_error().message, "no error");
}

// The configuration decides: a head in the file is not that of a tied model, equal or not.
TEST_F(HfModelFolder, ATiedModelHasNoHeadOfItsOwn) {
  change_header([](json& header, std::string&) {
    header["lm_head.weight"] = header["model.embed_tokens.weight"];
    header["lm_head.weight"]["data_offsets"] = header[kFirstQ]["data_offsets"];
    header["lm_head.weight"]["shape"] = header[kFirstQ]["shape"];
    header.erase(kFirstQ);
  });
  const auto model = HfModel::open(path());
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ((*model)->find_tensor("output.weight"), nullptr);
}

TEST_F(HfModelFolder, OneSpellingOfANumber) {
  change_header([](json& header, std::string&) {
    header["model.layers.00.self_attn.q_proj.weight"] = header[kFirstQ];
    header.erase(kFirstQ);
  });
  expect_error("tensor 'model.layers.00.self_attn.q_proj.weight' is not part");
}

void add_vector(json& header, std::string& data, const std::string& name,
                const std::vector<float>& values) {
  const size_t begin = data.size();
  data.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  header[name] = {
      {"dtype", "F32"}, {"shape", {values.size()}}, {"data_offsets", {begin, data.size()}}};
}

constexpr const char* kFirstBias = "model.layers.0.self_attn.q_proj.bias";

TEST_F(HfModelFolder, BiasesOfZerosHaveNoEffect) {
  change_header([](json& header, std::string& data) {
    add_vector(header, data, kFirstBias, std::vector<float>(64, 0));
    add_vector(header, data, "model.layers.0.mlp.down_proj.bias", std::vector<float>(64, 0));
  });
  EXPECT_EQ(open_error().message, "no error");
  EXPECT_EQ((*HfModel::open(path()))->find_tensor("blk.0.attn_q.bias"), nullptr);
}

TEST_F(HfModelFolder, RefusesBiasesThatTheConfigurationDoesNotPromise) {
  change_header([](json& header, std::string& data) {
    add_vector(header, data, kFirstBias, std::vector<float>(64, 0.5f));
  });
  expect_error("tensor 'model.layers.0.self_attn.q_proj.bias' is a bias, which the model has not");
}

TEST_F(HfModelFolder, BiasesFollowTheirRowsIntoGgufsOrder) {
  std::vector<float> bias(64);
  for (size_t i = 0; i < bias.size(); ++i) bias[i] = static_cast<float>(i);
  json c = config();
  c["attention_bias"] = true;
  set_config(c);
  change_header([&](json& header, std::string& data) {
    for (const char* layer : {"0", "1"})
      for (const auto& [part, size] : {std::pair{"q", 64u}, {"k", 32u}, {"v", 32u}, {"o", 64u}})
        add_vector(header, data,
                   std::string("model.layers.") + layer + ".self_attn." + part + "_proj.bias",
                   std::vector<float>(bias.begin(), bias.begin() + size));
  });
  const auto model = HfModel::open(path());
  ASSERT_TRUE(model) << model.error().message;
  // Heads of 16: the halves are interleaved.
  const auto q = values_of(**model, *(*model)->find_tensor("blk.1.attn_q.bias"));
  EXPECT_EQ(std::vector<float>(q.begin(), q.begin() + 4), (std::vector<float>{0, 8, 1, 9}));
  EXPECT_EQ(q[16], 16.0f);
  EXPECT_EQ(q[17], 24.0f);
  EXPECT_EQ(values_of(**model, *(*model)->find_tensor("blk.0.attn_output.bias")), bias);
}

// Rounding NaN or infinity would hide them in a scale.
TEST_F(HfModelFolder, ValuesThatAreNoNumbersAreNotRounded) {
  const uint32_t patterns[] = {0x7fc00000, 0x7f800000, 0xff800000};
  for (const uint32_t pattern : patterns) {
    change_header([&](json& header, std::string& data) {
      std::memcpy(data.data() + header[kFirstQ]["data_offsets"][0].get<size_t>() + 40, &pattern, 4);
    });
    for (const DType type : {DType::q8_0, DType::q4_0, DType::f16, DType::bf16}) {
      const auto model = HfModel::open(path(), {type});
      std::vector<std::byte> room;
      const auto read = (*model)->read(*(*model)->find_tensor("blk.0.attn_q.weight"), room);
      ASSERT_FALSE(read) << name(type);
      EXPECT_EQ(read.error().code, ErrorCode::numeric_error);
      EXPECT_NE(read.error().message.find(std::string("tensor '") + kFirstQ + "' holds NaN"),
                std::string::npos)
          << read.error().message;
    }
  }
}

TEST_F(HfModelFolder, ValuesTooLargeForTheTypeAreRefused) {
  change_header([&](json& header, std::string& data) {
    const float large = 1e7f;
    std::memcpy(data.data() + header[kFirstQ]["data_offsets"][0].get<size_t>() + 40, &large, 4);
  });
  const auto read_as = [&](DType type) {
    const auto model = HfModel::open(path(), {type});
    std::vector<std::byte> room;
    const auto read = (*model)->read(*(*model)->find_tensor("blk.0.attn_q.weight"), room);
    return read ? "" : read.error().message;
  };
  EXPECT_NE(read_as(DType::f16).find("holds values too large for f16"), std::string::npos);
  EXPECT_NE(read_as(DType::q4_0).find("holds values too large for q4_0"), std::string::npos);
  EXPECT_EQ(read_as(DType::bf16), "");
}

// The text part of a model of images, by both spellings; the rest is left out, and that is said.
TEST_F(HfModelFolder, MultimodalFoldersGiveTheirText) {
  for (const auto& entry : fs::directory_iterator(tiny("llama-tied")))
    fs::remove(path() + "/" + entry.path().filename().string());
  for (const auto& entry : fs::directory_iterator(tiny("gemma3")))
    if (entry.path().extension() != ".gguf") fs::copy(entry.path(), path());
  EXPECT_TRUE((*HfModel::open(path()))->notes().empty());
  const json text = config();
  set_config({{"model_type", "gemma3"},
              {"text_config", text},
              {"vision_config", {{"hidden_size", 32}}},
              {"image_token_index", 9}});
  const std::string original = read_file(path() + "/model.safetensors");
  for (const auto& [prefix, image] : {std::pair{"language_model.model.", "vision_tower.x.weight"},
                                      {"model.language_model.", "model.multi_modal_projector.x"}}) {
    write("model.safetensors", original);
    change_header([&](json& header, std::string& data) {
      json renamed = json::object();
      for (const auto& [name, value] : header.items())
        renamed[name.starts_with("model.") ? prefix + name.substr(6) : name] = value;
      header = renamed;
      add_vector(header, data, image, {1, 2});
    });
    const auto model = HfModel::open(path());
    ASSERT_TRUE(model) << model.error().message;
    expect_same_tensors(**model, *GgufFile::open(tiny("gemma3") + "/gemma3-F32.gguf"));
    ASSERT_EQ((*model)->notes().size(), 1u);
    EXPECT_NE((*model)->notes()[0].find("1 tensors of the part for images are not used"),
              std::string::npos);
  }
  set_config({{"model_type", "llava"}, {"text_config", text}});
  expect_error("model_type 'llava' is not supported (a model of text and images)");
}

// The embedding is the head then, whatever else is there; null is the same as nothing.
TEST_F(HfModelFolder, WhatPublishedConfigurationsHave) {
  json c = config();
  c["head_dim"] = nullptr;
  c["rope_scaling"] = nullptr;
  c.erase("dtype");
  c["torch_dtype"] = "bfloat16";
  set_config(c);
  change_header([](json& header, std::string&) {
    header["lm_head.weight"] = header["model.layers.0.self_attn.o_proj.weight"];
    header.erase("model.layers.0.self_attn.o_proj.weight");
  });
  const auto model = HfModel::open(path());
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ((*model)->find_tensor("output.weight"), nullptr);
  c["num_key_value_heads"] = nullptr;
  set_config(c);
  EXPECT_EQ(*(*HfModel::open(path()))->get_u32("llama.attention.head_count_kv"), 4u);
}

TEST(HfModelOfPackedWeights, KeepsFourBits) {
  const auto model = HfModel::open(test_data("packed/llama-gptq"));
  ASSERT_TRUE(model) << model.error().message;
  const TensorView& q = *(*model)->find_tensor("blk.0.attn_q.weight");
  EXPECT_EQ(q.type, DType::q4_z);
  EXPECT_EQ((*model)->input_order(q).size(), 64u);
  EXPECT_EQ((*model)->find_tensor("token_embd.weight")->type, DType::f16);
  EXPECT_TRUE((*model)->input_order(*(*model)->find_tensor("token_embd.weight")).empty());
  EXPECT_TRUE(HfModel::open(test_data("packed/llama-gptq"), {DType::bf16}));
  const auto again = HfModel::open(test_data("packed/llama-gptq"), {DType::q8_0});
  ASSERT_FALSE(again);
  EXPECT_NE(again.error().message.find("quantised by gptq already"), std::string::npos);
}

TEST_F(HfModelFolder, MessagesHaveTheNamesOfTheFiles) {
  const auto model = HfModel::open(path());
  EXPECT_EQ((*model)->spelling("blk.1.attn_q.weight"), "model.layers.1.self_attn.q_proj.weight");
  EXPECT_EQ((*model)->spelling("blk.7.ffn_down.weight"), "model.layers.7.mlp.down_proj.weight");
}

TEST_F(HfModelFolder, RefusesRowsThatAreNoHeads) {
  change_header([](json& header, std::string&) {
    header[kFirstQ]["shape"] = {1024, 4};
    header["model.layers.0.self_attn.k_proj.weight"]["shape"] = {8, 256};
  });
  expect_error("which is no number of heads of 16");
}

TEST_F(HfModelFolder, SaysWhatIsNotThere) {
  fs::remove(path() + "/model.safetensors");
  expect_error("neither model.safetensors nor model.safetensors.index.json is there");
  write("pytorch_model.bin", "x");
  expect_error("pytorch_model.bin can run programs and is not read");
}

TEST_F(HfModelFolder, RoundsMatricesOnly) {
  const auto model = HfModel::open(path(), {DType::q8_0});
  ASSERT_TRUE(model) << model.error().message;
  const auto exact = HfModel::open(path());
  const auto gguf = GgufFile::open(tiny("llama-tied") + "/llama-tied-Q8_0.gguf");
  for (const TensorView& expected : gguf->tensors()) {
    const TensorView* tensor = (*model)->find_tensor(expected.name);
    ASSERT_EQ(tensor->type, expected.type) << expected.name;
    EXPECT_EQ(values_of(**model, *tensor), values_of(*gguf, expected)) << expected.name;
  }
  EXPECT_NE((*model)->conversion(), (*exact)->conversion());
}

TEST_F(HfModelFolder, RoundsToFourBitsAsGgufFilesAre) {
  const auto model = HfModel::open(path(), {DType::q4_0});
  const auto gguf = GgufFile::open(tiny("llama-tied") + "/llama-tied-Q4_0.gguf");
  for (const TensorView& expected : gguf->tensors())
    EXPECT_EQ(values_of(**model, *(*model)->find_tensor(expected.name)), values_of(*gguf, expected))
        << expected.name;
}

TEST(OpenModel, GgufWeightsStayAsTheyAre) {
  const auto model = open_model(tiny("qwen2") + "/qwen2-F32.gguf", {DType::q8_0});
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().code, ErrorCode::invalid_argument);
  EXPECT_TRUE(open_model(tiny("qwen2") + "/qwen2-F32.gguf", {DType::bf16}));
}

TEST(WeightTypes, AreNamed) {
  EXPECT_EQ(weight_types("auto", "none")->matrices, std::nullopt);
  EXPECT_EQ(weight_types("float32", "")->matrices, std::nullopt);
  EXPECT_EQ(weight_types("bfloat16", "none")->matrices, DType::bf16);
  EXPECT_EQ(weight_types("bfloat16", "int4")->matrices, DType::q4_0);
  EXPECT_FALSE(weight_types("int4", "none"));
  EXPECT_FALSE(weight_types("auto", "gptq"));
}

}  // namespace
}  // namespace octavo
