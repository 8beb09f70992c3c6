// I1: a token's logits are the same bits for any chunk size, thread count, block size, neighbours
// in the batch, and with the cache off.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <random>

#include "support/paths.h"
#include "support/test_model.h"

namespace octavo {
namespace {

using namespace testing;

std::vector<TokenId> random_tokens(size_t count, int vocab_size, unsigned seed) {
  std::mt19937 rng(seed);
  std::vector<TokenId> tokens;
  for (size_t i = 0; i < count; ++i)
    tokens.push_back(TokenId{static_cast<int>(rng() % static_cast<unsigned>(vocab_size))});
  return tokens;
}

struct Setting {
  const char* what;
  TestModelOptions options;
};

std::vector<Setting> settings(TestModelOptions base) {
  std::vector<Setting> out;
  const auto add = [&](const char* what, auto change) {
    out.push_back({what, base});
    change(out.back().options);
  };
  add("chunk 1", [](auto& o) { o.chunk = 1; });
  add("chunk 7", [](auto& o) { o.chunk = 7; });
  add("chunk 64", [](auto& o) { o.chunk = 64; });
  add("1 thread", [](auto& o) { o.threads = 1; });
  add("3 threads", [](auto& o) { o.threads = 3; });
  add("block 16", [](auto& o) { o.block_size = 16; });
  add("block 256", [](auto& o) { o.block_size = 256; });
  add("no cache", [](auto& o) {
    o.kv_cache = false;
    o.chunk = 64;
  });
  add("chunk 7, block 16, 3 threads", [](auto& o) {
    o.chunk = 7;
    o.block_size = 16;
    o.threads = 3;
  });
  return out;
}

void expect_same_bits(const std::string& path, TestModelOptions base, size_t count) {
  TestModel model(path, base);
  const auto tokens = random_tokens(count, model.transformer().limits().vocab_size, 5);
  const auto expected = model.logits(tokens, positions_of(tokens));
  for (const Setting& setting : settings(base)) {
    TestModel other(path, setting.options);
    const auto actual = other.logits(tokens, positions_of(tokens));
    ASSERT_EQ(actual.size(), expected.size());
    for (size_t i = 0; i < count; ++i)
      ASSERT_EQ(
          std::memcmp(actual[i].data(), expected[i].data(), expected[i].size() * sizeof(float)), 0)
          << path << ", " << setting.what << ", position " << i;
  }
}

TEST(Invariance, TinyModels) {
  for (const char* name : {"llama-rope3", "qwen2"})
    for (const char* type : {"F32", "F16", "Q8_0", "Q4_0"})
      for (ComputeType dtype : {ComputeType::automatic, ComputeType::float32})
        expect_same_bits(test_data("tiny/" + std::string(name) + "/" + name + "-" + type + ".gguf"),
                         {.dtype = dtype}, 150);
}

TEST(Invariance, CacheTypesAndWindows) {
  const std::string path = test_data("tiny/llama-rope3/llama-rope3-Q8_0.gguf");
  const int layers = read_model_config(*GgufFile::open(path))->num_layers;
  std::vector<int> windows(static_cast<size_t>(layers), 0);
  windows[0] = 20;
  for (KvType type : {KvType::bf16, KvType::int8})
    expect_same_bits(path, {.kv_cache_dtype = type, .windows = windows}, 150);
  expect_same_bits(path, {.windows = windows}, 150);
}

// Across the border of attention's parts, 256 positions. The reference kernels would take minutes.
TEST(Invariance, SmolLM2) {
  const char* isa = std::getenv("OCTAVO_ISA");
  const size_t count = isa && std::string(isa) == "ref" ? 4 : 290;
  for (KvType type : {KvType::f16, KvType::int8})
    expect_same_bits(smollm2_path(), {.kv_cache_dtype = type}, count);
}

// Three sequences of different lengths in one batch, at different depths, against each alone.
TEST(Invariance, CompanyInTheBatch) {
  const std::string path = test_data("tiny/llama-tied/llama-tied-Q4_0.gguf");
  const size_t lengths[] = {40, 7, 75};
  TestModel alone(path, {});
  TestModel together(path, {});
  Transformer& model = together.transformer();
  const ModelLimits& limits = model.limits();
  std::vector<TokenId> flat;
  std::vector<std::vector<BlockId>> tables;
  std::vector<BatchSequence> sequences;
  std::vector<std::vector<float>> expected;
  int next_block = 0;
  for (unsigned i = 0; i < 3; ++i) {
    const auto tokens = random_tokens(lengths[i], limits.vocab_size, i);
    expected.push_back(alone.logits(tokens, {static_cast<int>(tokens.size()) - 1})[0]);
    tables.emplace_back();
    for (int64_t b = 0; b < blocks_for(static_cast<int64_t>(lengths[i]), limits.block_size); ++b)
      tables.back().push_back(BlockId{next_block++});
    sequences.push_back({static_cast<int>(flat.size()), static_cast<int>(tokens.size()), 0, {}});
    flat.insert(flat.end(), tokens.begin(), tokens.end());
  }
  for (size_t i = 0; i < 3; ++i) sequences[i].block_table = tables[i];
  model.forward({flat, sequences});
  std::vector<int> rows;
  for (const BatchSequence& s : sequences) rows.push_back(s.first_row + s.num_tokens - 1);
  std::vector<float> out(3 * static_cast<size_t>(limits.logits_stride));
  model.logits(rows, out.data());
  for (size_t i = 0; i < 3; ++i)
    EXPECT_EQ(std::memcmp(out.data() + i * static_cast<size_t>(limits.logits_stride),
                          expected[i].data(), expected[i].size() * sizeof(float)),
              0)
        << "sequence " << i;
}

}  // namespace
}  // namespace octavo
