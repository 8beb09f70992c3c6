#include "model/model_config.h"

#include <gtest/gtest.h>

#include <cmath>

#include "formats/gguf.h"
#include "model/weights.h"
#include "support/gguf_writer.h"
#include "support/paths.h"

namespace octavo {
namespace {

// A tiny model file with one piece of its header replaced by another of the same length.
struct PatchedFile {
  std::string bytes = testing::read_file(testing::test_data("tiny/llama-tied/llama-tied-F32.gguf"));

  PatchedFile& replace(const std::string& from, const std::string& to) {
    EXPECT_EQ(from.size(), to.size());
    size_t at = bytes.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    for (; at != std::string::npos; at = bytes.find(from, at + to.size()))
      bytes.replace(at, to.size(), to);
    return *this;
  }
  Result<GgufFile> parse() const {
    return GgufFile::parse(std::as_bytes(std::span(bytes)), "patched.gguf");
  }
  Result<ModelConfig> config() const {
    const auto file = parse();
    if (!file) return tl::make_unexpected(file.error());
    return read_model_config(*file);
  }
};

void expect_refused(const Result<ModelConfig>& config, ErrorCode code, const std::string& names) {
  ASSERT_FALSE(config);
  EXPECT_EQ(config.error().code, code);
  EXPECT_NE(config.error().message.find(names), std::string::npos) << config.error().message;
}

TEST(ModelConfig, ReadsTheTinyModels) {
  const auto llama = PatchedFile().config();
  ASSERT_TRUE(llama) << llama.error().message;
  EXPECT_EQ(llama->architecture->name, "llama");
  EXPECT_EQ(llama->num_layers, 2);
  EXPECT_EQ(llama->num_heads, 4);
  EXPECT_EQ(llama->num_kv_heads, 2);
  EXPECT_EQ(llama->head_dim, 16);
  EXPECT_EQ(llama->vocab_size, 512);
  EXPECT_TRUE(llama->tied_head);
  const auto file = GgufFile::open(testing::test_data("tiny/qwen2/qwen2-F32.gguf"));
  const auto qwen2 = read_model_config(*file);
  ASSERT_TRUE(qwen2) << qwen2.error().message;
  EXPECT_TRUE(qwen2->architecture->qkv_bias);
  EXPECT_FALSE(qwen2->architecture->rope_interleaved);
}

ModelConfig config_of(const std::string& tiny) {
  const auto file = GgufFile::open(testing::tiny_data(tiny + "/" + tiny + "-Q8_0.gguf"));
  EXPECT_TRUE(file) << tiny;
  const auto config = read_model_config(*file);
  EXPECT_TRUE(config) << config.error().message;
  return *config;
}

TEST(ModelConfig, WindowsOfAllLayersAndOfSome) {
  EXPECT_EQ(config_of("mistral").windows, (std::vector<int>{16, 16, 16}));
  EXPECT_EQ(config_of("gemma3").windows, (std::vector<int>{8, 0, 8, 0}));
  EXPECT_TRUE(config_of("qwen3").windows.empty());
  EXPECT_EQ(layer_windows(7, 5, 3), (std::vector<int>{5, 5, 0, 5, 5, 0, 5}));
}

// The keys of a model without weights but its embedding.
testing::GgufWriter keys_of_a_model() {
  testing::GgufWriter w;
  w.string("general.architecture", "llama")
      .u32("llama.block_count", 2)
      .u32("llama.context_length", 64)
      .u32("llama.embedding_length", 32)
      .f32("llama.attention.layer_norm_rms_epsilon", 1e-5f);
  return w;
}

Result<ModelConfig> config_with(testing::GgufWriter w) {
  const std::string bytes =
      w.tensor("token_embd.weight", {32, 4}, 0, std::string(512, '\0')).build();
  const auto file = GgufFile::parse(testing::as_bytes(bytes), "keys.gguf");
  EXPECT_TRUE(file) << file.error().message;
  return read_model_config(*file);
}

TEST(ModelConfig, NumbersThatAreTheSameInEachLayerAreOne) {
  const auto with = [](const std::vector<uint32_t>& heads, const std::vector<uint32_t>& kv_heads,
                       const std::vector<int32_t>& ffn) {
    return config_with(keys_of_a_model()
                           .array("llama.attention.head_count", GgufType::u32, heads)
                           .array("llama.attention.head_count_kv", GgufType::u32, kv_heads)
                           .array("llama.feed_forward_length", GgufType::i32, ffn));
  };
  const auto config = with({2, 2}, {1, 1}, {48, 48});
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->num_heads, 2);
  EXPECT_EQ(config->num_kv_heads, 1);
  EXPECT_EQ(config->intermediate_size, 48);
  expect_refused(with({2, 1}, {1, 1}, {48, 48}), ErrorCode::unsupported,
                 "'llama.attention.head_count' at byte");
  expect_refused(with({2, 2}, {2, 1}, {48, 48}), ErrorCode::unsupported, "head_count_kv");
  expect_refused(with({2, 2}, {1, 1}, {48, 64}), ErrorCode::unsupported, "feed_forward_length");
  expect_refused(with({2, 2, 2}, {1, 1}, {48, 48}), ErrorCode::corrupt_file, "each of 2 layers");
  expect_refused(with({0, 0}, {1, 1}, {48, 48}), ErrorCode::corrupt_file, "head_count is 0");
  expect_refused(with({}, {1, 1}, {48, 48}), ErrorCode::corrupt_file, "has 0 elements");
  expect_refused(with({2, 2}, {1, 1}, {-1, -1}), ErrorCode::corrupt_file, "feed_forward_length");
}

TEST(ModelConfig, KeysThatAskForNothingAreTaken) {
  const auto plain = [] {
    return keys_of_a_model()
        .u32("llama.attention.head_count", 2)
        .u32("llama.feed_forward_length", 48);
  };
  const auto config = config_with(plain()
                                      .u32("llama.leading_dense_block_count", 0)
                                      .u32("llama.expert_shared_count", 0)
                                      .f32("llama.final_logit_softcapping", 0)
                                      .f32("llama.residual_scale", 1)
                                      .boolean("llama.use_parallel_residual", false)
                                      .u32("llama.attention.sliding_window", 0));
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_TRUE(config->windows.empty());
  expect_refused(config_with(plain().u32("llama.leading_dense_block_count", 1)),
                 ErrorCode::unsupported, "'llama.leading_dense_block_count'");
  expect_refused(config_with(plain().f32("llama.residual_scale", 0.5f)), ErrorCode::unsupported,
                 "'llama.residual_scale'");
  expect_refused(config_with(plain().boolean("llama.use_parallel_residual", true)),
                 ErrorCode::unsupported, "'llama.use_parallel_residual'");
}

TEST(ModelConfig, Gemma3HasTwoRopeBasesAndAScaledEmbedding) {
  const ModelConfig c = config_of("gemma3");
  EXPECT_EQ(c.rope.base, 1e6f);
  ASSERT_TRUE(c.local_rope);
  EXPECT_EQ(c.local_rope->base, 1e4f);
  EXPECT_EQ(c.local_rope->dims, c.rope.dims);
  EXPECT_EQ(c.embedding_scale, 8);
  EXPECT_FALSE(config_of("qwen3").local_rope);
}

TEST(ModelConfig, Gemma2HasCapsAndTheScaleThatItsFileGives) {
  const ModelConfig c = config_of("gemma2");
  EXPECT_EQ(c.windows, (std::vector<int>{8, 0, 8}));
  EXPECT_EQ(c.score_cap, 1.5f);
  EXPECT_EQ(c.logit_cap, 4.0f);
  EXPECT_NEAR(c.score_scale, 1 / std::sqrt(20.0), 1e-7);  // heads of 32
  EXPECT_EQ(c.embedding_scale, 8);
  EXPECT_FALSE(c.local_rope);
  EXPECT_EQ(config_of("gemma3").score_cap, 0);
  EXPECT_EQ(find_architecture("gemma2")->score_cap, 50);
  EXPECT_EQ(find_architecture("gemma2")->logit_cap, 30);
}

TEST(ModelConfig, GraniteHasFactors) {
  const ModelConfig c = config_of("granite");
  EXPECT_EQ(c.embedding_scale, 1.5f);
  EXPECT_EQ(c.score_scale, 0.4f);
  EXPECT_EQ(c.residual_scale, 0.35f);
  EXPECT_EQ(c.logit_scale, 1.0f / 3);
  const ModelConfig plain = config_of("llama-tied");
  EXPECT_EQ(plain.embedding_scale * plain.residual_scale * plain.logit_scale, 1);
}

// A file of a family with a pattern of windows that does not say the window is not all of a model.
TEST(ModelConfig, AMissingWindowIsRefused) {
  PatchedFile file{testing::read_file(testing::tiny_data("gemma2/gemma2-Q8_0.gguf"))};
  file.replace("gemma2.attention.sliding_window", "xxxxxx.attention.sliding_window");
  expect_refused(file.config(), ErrorCode::corrupt_file, "gemma2.attention.sliding_window");
}

TEST(ModelConfig, PositionsThatAreNotRotatedAreRefused) {
  testing::GgufWriter file;
  file.string("general.architecture", "granite").boolean("granite.rope.scaling.finetuned", false);
  for (const char* key : {"block_count", "embedding_length", "feed_forward_length",
                          "context_length", "attention.head_count", "attention.key_length"})
    file.u32(std::string("granite.") + key, 64);
  const std::string bytes = file.build();
  const auto parsed = GgufFile::parse(std::as_bytes(std::span(bytes)), "granite.gguf");
  ASSERT_TRUE(parsed) << parsed.error().message;
  expect_refused(read_model_config(*parsed), ErrorCode::unsupported, "rope.scaling.finetuned");
}

TEST(ModelConfig, ExpertsMayHaveASizeOfTheirOwn) {
  const ModelConfig mixtral = config_of("mixtral"), qwen = config_of("qwen3moe");
  EXPECT_EQ(mixtral.experts.count, 4);
  EXPECT_EQ(mixtral.experts.used, 2);
  EXPECT_EQ(mixtral.intermediate_size, 64);
  EXPECT_EQ(qwen.experts.count, 4);
  EXPECT_EQ(qwen.intermediate_size, 64);  // feed_forward_length is 128
  EXPECT_EQ(config_of("phi3").experts.count, 0);
}

TEST(ModelConfig, UnknownMeansRefused) {
  PatchedFile architecture;
  const size_t value = architecture.bytes.find("general.architecture") + 20 + 4 + 8;
  architecture.bytes.replace(value, 5, "lxama");
  expect_refused(architecture.config(), ErrorCode::unsupported, "lxama");
  expect_refused(PatchedFile().replace("llama.rope.freq_base", "llama.rope.freq_basX").config(),
                 ErrorCode::unsupported, "llama.rope.freq_basX");
}

TEST(ModelConfig, MissingKeysAreNamed) {
  // The key's own name becomes one that is known and has no effect.
  expect_refused(PatchedFile().replace("llama.block_count", "xxxxx.block_count").config(),
                 ErrorCode::corrupt_file, "llama.block_count");
}

std::string load_error(const PatchedFile& patched) {
  const auto file = patched.parse();
  if (!file) return file.error().message;
  const auto config = read_model_config(*file);
  if (!config) return config.error().message;
  const auto pool = *ThreadPool::create(1);
  const auto weights = load_weights(*file, *config, *pool, {});
  return weights ? "" : weights.error().message;
}

TEST(LoadWeights, NamesWhatIsMissingAndWhatIsTooMuch) {
  EXPECT_EQ(load_error(PatchedFile()), "");
  EXPECT_NE(load_error(PatchedFile().replace("blk.1.ffn_up.weight", "blk.1.ffn_uX.weight"))
                .find("'blk.1.ffn_up.weight' is missing"),
            std::string::npos);
  EXPECT_NE(load_error(PatchedFile().replace("token_embd.weight", "token_embX.weight"))
                .find("token_embd.weight"),
            std::string::npos);
}

TEST(LoadWeights, AnExtraTensorIsRefused) {
  // One layer less in the metadata: the second layer's tensors have no use.
  PatchedFile patched;
  const size_t at = patched.bytes.find("llama.block_count") + 17 + 4;
  ASSERT_EQ(patched.bytes[at], 2);
  patched.bytes[at] = 1;
  EXPECT_NE(load_error(patched).find("blk.1."), std::string::npos);
}

TEST(LoadWeights, AWrongShapeNamesBothShapes) {
  PatchedFile patched;
  const size_t at = patched.bytes.find("llama.feed_forward_length") + 25 + 4;
  patched.bytes[at] = 64;  // 128 in the file
  const std::string error = load_error(patched);
  EXPECT_NE(error.find("ffn_gate.weight"), std::string::npos) << error;
  EXPECT_NE(error.find("64, 64"), std::string::npos) << error;
}

// Llama 3's bands, from the published formula: long waves are divided by 8, short ones kept, a ramp
// between.
TEST(Rope, Llama3DivisorsOfTheTinyModel) {
  const auto file = GgufFile::open(testing::test_data("tiny/llama-rope3/llama-rope3-F32.gguf"));
  const auto config = read_model_config(*file);
  ASSERT_TRUE(config) << config.error().message;
  const auto f = RopeTable(config->rope, config->context_length).frequencies();
  const double factor = 8, low = 1, high = 4, original = 32, base = 10000;
  for (size_t i = 0; i < f.size(); ++i) {
    const double plain = std::pow(base, -2.0 * static_cast<double>(i) / config->rope.dims);
    const double wavelength = 2 * M_PI / plain;
    const double smooth = (original / wavelength - low) / (high - low);
    const double expected = wavelength > original / low ? plain / factor
                            : wavelength < original / high
                                ? plain
                                : (1 - smooth) * plain / factor + smooth * plain;
    EXPECT_NEAR(f[i] / expected, 1, 1e-6) << i;
  }
}

TEST(ModelConfig, RopeScalingThatIsNotKnownIsRefused) {
  // "llama.rope.dimension_count" is optional, so its entry can be turned into another key of the
  // same length.
  const std::string from = "llama.rope.dimension_count", to = "llama.rope.scaling.fact__r";
  ASSERT_EQ(from.size(), to.size());
  expect_refused(PatchedFile().replace(from, to).config(), ErrorCode::unsupported, "fact__r");
}

}  // namespace
}  // namespace octavo
