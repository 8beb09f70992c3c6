#include "formats/hf_config.h"

#include <gtest/gtest.h>

#include "support/paths.h"

namespace octavo {
namespace {

constexpr const char* kQwen25 = R"({
  "architectures": ["Qwen2ForCausalLM"], "attention_dropout": 0.0, "bos_token_id": 151643,
  "hidden_act": "silu", "hidden_size": 3584, "intermediate_size": 18944,
  "max_position_embeddings": 32768, "max_window_layers": 28, "model_type": "qwen2",
  "num_attention_heads": 28, "num_hidden_layers": 28, "num_key_value_heads": 4,
  "rms_norm_eps": 1e-06, "rope_theta": 1000000.0, "sliding_window": 131072,
  "tie_word_embeddings": false, "torch_dtype": "bfloat16", "use_cache": true,
  "use_sliding_window": false, "vocab_size": 152064})";

HfConfig parsed(const std::string& json) {
  const auto config = parse_hf_config(json, "config.json");
  EXPECT_TRUE(config) << config.error().message << "\n" << json;
  return config.value_or(HfConfig{});
}

// Four layers and whatever else is given.
std::string four_layers(const std::string& more) {
  return R"({"num_hidden_layers": 4, "hidden_size": 64, "num_attention_heads": 4, )" + more + "}";
}

using Windows = std::vector<int64_t>;

TEST(HfConfig, Qwen25) {
  const HfConfig c = parsed(kQwen25);
  EXPECT_EQ(c.model_type, "qwen2");
  EXPECT_EQ(c.num_hidden_layers, 28);
  EXPECT_EQ(c.hidden_size, 3584);
  EXPECT_EQ(c.num_attention_heads, 28);
  EXPECT_EQ(c.num_key_value_heads, 4);
  EXPECT_EQ(c.head_dim, 128);
  EXPECT_EQ(c.max_position_embeddings, 32768);
  EXPECT_EQ(c.vocab_size, 152064);
  EXPECT_EQ(c.dtype, DType::bf16);
  EXPECT_EQ(c.windows, Windows(28, 0)) << "use_sliding_window is false";
}

TEST(HfConfig, TinyModels) {
  for (const char* model : {"llama-tied", "llama-untied", "llama-rope3", "qwen2"}) {
    const auto c =
        read_hf_config(testing::test_data("tiny/" + std::string(model) + "/config.json"));
    ASSERT_TRUE(c) << c.error().message;
    EXPECT_EQ(c->num_attention_heads, 4) << model;
    EXPECT_EQ(c->num_key_value_heads, 2) << model;
    EXPECT_EQ(c->head_dim, 16) << model;
    EXPECT_EQ(c->vocab_size, 512) << model;
    EXPECT_EQ(c->dtype, DType::f32) << model;
    EXPECT_EQ(c->windows, Windows(static_cast<size_t>(c->num_hidden_layers), 0)) << model;
  }
}

TEST(HfConfig, Defaults) {
  const HfConfig c = parsed(four_layers(R"("head_dim": null, "sliding_window": null)"));
  EXPECT_EQ(c.model_type, "");
  EXPECT_EQ(c.num_key_value_heads, 4);
  EXPECT_EQ(c.head_dim, 16);
  EXPECT_EQ(c.max_position_embeddings, std::nullopt);
  EXPECT_EQ(c.dtype, std::nullopt);
  EXPECT_EQ(c.windows, Windows(4, 0));
  EXPECT_EQ(parsed(four_layers(R"("head_dim": 256)")).head_dim, 256);
  EXPECT_EQ(parsed(four_layers(R"("torch_dtype": "float32")")).dtype, DType::f32);
  EXPECT_EQ(parsed(four_layers(R"("dtype": "float16", "torch_dtype": "float16")")).dtype,
            DType::f16);
  EXPECT_EQ(parsed(four_layers(R"("dtype": "float16", "torch_dtype": null)")).dtype, DType::f16);
}

TEST(HfConfig, Windows) {
  const struct {
    const char* json;
    Windows windows;
  } cases[] = {
      {R"("model_type": "mistral", "sliding_window": 8)", {8, 8, 8, 8}},
      {R"("model_type": "qwen2", "sliding_window": 8)", {0, 0, 0, 0}},
      {R"("model_type": "qwen2", "sliding_window": 8, "use_sliding_window": true,
          "max_window_layers": 3)",
       {0, 0, 0, 8}},
      {R"("sliding_window": 8, "use_sliding_window": true, "max_window_layers": 0)", {8, 8, 8, 8}},
      {R"("sliding_window": 8, "use_sliding_window": true, "max_window_layers": 40)", {0, 0, 0, 0}},
      {R"("sliding_window": 8, "use_sliding_window": false)", {0, 0, 0, 0}},
      {R"("sliding_window": 8, "sliding_window_pattern": 2)", {8, 0, 8, 0}},
      {R"("model_type": "gemma3_text", "sliding_window": 8, "_sliding_window_pattern": 3)",
       {8, 8, 0, 8}},
      {R"("model_type": "gemma3_text", "sliding_window": 8)", {8, 8, 8, 8}},
      {R"("model_type": "gemma2", "sliding_window": 8)", {8, 0, 8, 0}},
      {R"("sliding_window": 8, "sliding_window_pattern": 2, "layer_types": ["full_attention",
          "full_attention", "sliding_attention", "full_attention"])",
       {0, 0, 8, 0}},
      {R"("layer_types": ["full_attention", "full_attention", "full_attention",
          "full_attention"])",
       {0, 0, 0, 0}},
  };
  for (const auto& c : cases) EXPECT_EQ(parsed(four_layers(c.json)).windows, c.windows) << c.json;
}

TEST(HfConfig, ReadsTheTextPartOfAMultimodalModel) {
  const HfConfig c = parsed(R"({"model_type": "gemma3", "torch_dtype": "bfloat16",
      "text_config": )" + four_layers(R"("model_type": "gemma3_text", "sliding_window": 8)") +
                            "}");
  EXPECT_EQ(c.model_type, "gemma3_text");
  EXPECT_EQ(c.num_hidden_layers, 4);
  EXPECT_EQ(c.dtype, DType::bf16);
}

TEST(HfConfig, RefusalsNameFileAndField) {
  const struct {
    std::string json;
    const char* says;
  } cases[] = {
      {"", "is not a JSON object"},
      {"[]", "is not a JSON object"},
      {R"({"a": )", "is not a JSON object"},
      {R"({"a": NaN})", "is not a JSON object"},
      {"{}", "field 'num_hidden_layers' is missing"},
      {R"({"num_hidden_layers": 4, "hidden_size": 64})", "'num_attention_heads' is missing"},
      {R"({"num_hidden_layers": "4"})", "'num_hidden_layers' is not an integer from 1 to 10000"},
      {R"({"num_hidden_layers": 4.0})", "'num_hidden_layers' is not an integer"},
      {R"({"num_hidden_layers": true})", "'num_hidden_layers' is not an integer"},
      {R"({"num_hidden_layers": 0})", "'num_hidden_layers' is not an integer"},
      {R"({"num_hidden_layers": -1})", "'num_hidden_layers' is not an integer"},
      {R"({"num_hidden_layers": 1e9})", "'num_hidden_layers' is not an integer"},
      {R"({"num_hidden_layers": 18446744073709551615})", "is not an integer from 1"},
      {R"({"num_hidden_layers": 99999999999999999999999})", "is not an integer from 1"},
      {four_layers(R"("num_key_value_heads": 3)"), "'num_key_value_heads' is 3, which does not"},
      {four_layers(R"("num_key_value_heads": 0)"), "'num_key_value_heads' is not an integer"},
      {R"({"num_hidden_layers": 1, "hidden_size": 65, "num_attention_heads": 4})",
       "'head_dim' is missing, and hidden_size 65"},
      {four_layers(R"("model_type": 1)"), "'model_type' is not a string"},
      {four_layers(R"("torch_dtype": "float8_e4m3fn")"), "'torch_dtype' is 'float8_e4m3fn'"},
      {four_layers(R"("layer_types": ["full_attention"])"), "'layer_types' is not a list of 4"},
      {four_layers(R"("layer_types": {})"), "'layer_types' is not a list of 4"},
      {four_layers(R"("layer_types": ["full_attention", "linear_attention", "", 1])"),
       "layer type 'linear_attention'"},
      {four_layers(R"("layer_types": ["full_attention", 1, "", 1])"), "layer type '?'"},
      {four_layers(R"("layer_types": ["sliding_attention", "", "", ""])"),
       "'sliding_window' is missing"},
      {four_layers(R"("sliding_window": 8, "use_sliding_window": 1)"),
       "'use_sliding_window' is not true or false"},
      {four_layers(R"("sliding_window": 8, "use_sliding_window": true)"),
       "'max_window_layers' is missing"},
      {four_layers(R"("sliding_window": 0)"), "'sliding_window' is not an integer from 1"},
      {R"({"text_config": []})", "'text_config' is not an object"},
      {R"({"text_config": {}})", "'text_config.num_hidden_layers' is missing"},
      {std::string(100000, '[') + std::string(100000, ']'), "nested deeper than 32 levels"},
      {R"({"a": )" + std::string(40, '[') + std::string(40, ']') + "}", "nested deeper than 32"},
      {std::string((1 << 20) + 1, ' '), "above the limit of 1048576"},
  };
  for (const auto& c : cases) {
    const auto config = parse_hf_config(c.json, "config.json");
    ASSERT_FALSE(config) << c.says;
    const std::string& message = config.error().message;
    EXPECT_NE(message.find(c.says), std::string::npos) << message;
    EXPECT_EQ(message.rfind("config.json: ", 0), 0u) << message;
  }
}

TEST(HfConfig, MissingFile) {
  const auto config = read_hf_config(testing::test_data("none/config.json"));
  ASSERT_FALSE(config);
  EXPECT_EQ(config.error().code, ErrorCode::not_found);
}

TEST(HfConfig, LatentAttentionIsRefused) {
  const auto config = parse_hf_config(
      R"({"model_type": "deepseek_v3", "num_hidden_layers": 61, "hidden_size": 7168,
          "num_attention_heads": 128, "kv_lora_rank": 512})",
      "config.json");
  ASSERT_FALSE(config);
  EXPECT_EQ(config.error().code, ErrorCode::unsupported);
  EXPECT_NE(config.error().message.find("kv_lora_rank"), std::string::npos);
}

}  // namespace
}  // namespace octavo
