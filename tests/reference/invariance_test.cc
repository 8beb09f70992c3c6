// I1: a token's logits are the same bits for any chunk size, thread count, block size, neighbours
// in the batch, with the cache off, and whether steps are recorded or not.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <random>

#include "formats/gguf.h"
#include "support/bf16_copy.h"
#include "support/paths.h"
#include "support/temp_folder.h"
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
  add("7 threads", [](auto& o) { o.threads = 7; });
  add("chunk 1, steps recorded anew, 1 thread", [](auto& o) {
    o.chunk = 1;
    o.reuse_steps = false;
    o.threads = 1;
  });
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

std::string tiny_file(const std::string& name, const std::string& type) {
  return tiny_data(name + "/" + name + "-" + type + ".gguf");
}

// Reads all tokens of some sequences but the last `steps`, then a token of each per step.
class DecodeBatch {
 public:
  DecodeBatch(Transformer& model, const std::vector<std::vector<TokenId>>& tokens, size_t steps)
      : model_(model), tokens_(tokens), steps_(steps), tables_(tokens.size()) {
    int next_block = 0;
    for (size_t i = 0; i < tokens.size(); ++i) {
      const auto length = static_cast<int64_t>(tokens[i].size());
      for (int64_t b = 0; b < blocks_for(length, model.limits().block_size); ++b)
        tables_[i].push_back(BlockId{next_block++});
      const auto prompt = static_cast<int>(tokens[i].size() - steps);
      const BatchSequence whole{0, prompt, 0, tables_[i]};
      model.forward({.tokens = std::span(tokens[i]).first(tokens[i].size() - steps),
                     .sequences = {&whole, 1},
                     .logits_rows = std::span<const int>()});
    }
    EXPECT_LE(next_block, model.limits().num_blocks);
  }

  std::vector<std::vector<float>> step() {
    std::vector<TokenId> tokens;
    std::vector<BatchSequence> sequences;
    std::vector<int> rows;
    for (size_t i = 0; i < tokens_.size(); ++i) {
      const size_t position = tokens_[i].size() - steps_ + done_;
      sequences.push_back({static_cast<int>(i), 1, static_cast<int>(position), tables_[i]});
      tokens.push_back(tokens_[i][position]);
      rows.push_back(static_cast<int>(i));
    }
    ++done_;
    model_.forward({.tokens = tokens, .sequences = sequences});
    const auto stride = static_cast<size_t>(model_.limits().logits_stride);
    std::vector<float> flat(rows.size() * stride);
    model_.logits(rows, flat.data());
    std::vector<std::vector<float>> out;
    for (size_t i = 0; i < rows.size(); ++i)
      out.emplace_back(flat.begin() + static_cast<long>(i * stride),
                       flat.begin() + static_cast<long>(i * stride) + model_.limits().vocab_size);
    return out;
  }

 private:
  Transformer& model_;
  const std::vector<std::vector<TokenId>>& tokens_;
  size_t steps_, done_ = 0;
  std::vector<std::vector<BlockId>> tables_;
};

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
        expect_same_bits(tiny_file(name, type), {.dtype = dtype}, 150);
}

// Windows, norms of heads and of what is added, fused matrices, experts.
TEST(Invariance, TinyModelsOfOtherFamilies) {
  for (const char* name : {"mistral", "phi3", "gemma2", "gemma3", "qwen3moe", "olmo2", "granite"})
    for (const char* type : {"F32", "Q4_0"}) expect_same_bits(tiny_file(name, type), {}, 100);
}

TEST(Invariance, Bf16Weights) {
  const TempFolder folder;
  for (const char* name : {"llama-rope3", "qwen2"}) {
    const std::string f16 = test_data("tiny/" + std::string(name) + "/" + name + "-F16.gguf");
    const std::string path = folder.write(name, bf16_copy(f16));
    for (ComputeType dtype : {ComputeType::automatic, ComputeType::float32})
      expect_same_bits(path, {.dtype = dtype}, 100);
    // Three digits fewer than f16: close to it, and not it.
    TestModel exact(f16, {}), rounded(path, {});
    const auto tokens = random_tokens(50, exact.transformer().limits().vocab_size, 5);
    const auto a = exact.logits(tokens, {49}).front(), b = rounded.logits(tokens, {49}).front();
    double difference = 0, size = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      difference += std::pow(a[i] - b[i], 2);
      size += std::pow(a[i], 2);
    }
    EXPECT_LT(difference, 0.002 * size) << name;
    EXPECT_GT(difference, 0) << name;
  }
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

// Rows that nobody asks for are dropped in the last layer; the others must not notice.
TEST(Invariance, LogitsOfSomeRows) {
  for (const char* type : {"F32", "Q4_0"}) {
    const std::string path = test_data("tiny/qwen2/qwen2-" + std::string(type) + ".gguf");
    TestModel model(path, {});
    const auto tokens = random_tokens(120, model.transformer().limits().vocab_size, 8);
    const auto expected = model.logits(tokens, positions_of(tokens));
    const std::vector<std::vector<int>> choices = {
        {119}, {0}, {3, 4, 50, 119}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 77, 78}, {100, 101}};
    for (const int chunk : {120, 64, 7})
      for (const auto& positions : choices) {
        TestModel other(path, {.chunk = chunk});
        const auto actual = other.logits(tokens, positions);
        ASSERT_EQ(actual.size(), positions.size());
        for (size_t i = 0; i < positions.size(); ++i)
          EXPECT_EQ(actual[i], expected[static_cast<size_t>(positions[i])])
              << "chunk " << chunk << ", position " << positions[i];
      }
  }
}

// Sequences that grow by a token per step, together, at different depths: small batches and large
// ones, steps that are replayed.
TEST(Invariance, DecodeBatches) {
  const std::string path = test_data("tiny/llama-tied/llama-tied-Q4_0.gguf");
  constexpr size_t kSteps = 12;
  TestModel alone(path, {.threads = 1, .chunk = 1});
  const ModelLimits& limits = alone.transformer().limits();
  for (const size_t count : {size_t{1}, size_t{3}, size_t{11}}) {
    std::vector<std::vector<TokenId>> tokens;
    std::vector<std::vector<std::vector<float>>> expected;
    for (size_t i = 0; i < count; ++i) {
      const size_t prompt = 3 + 37 * i % 100;
      tokens.push_back(random_tokens(prompt + kSteps, limits.vocab_size, static_cast<unsigned>(i)));
      std::vector<int> positions(kSteps);
      std::iota(positions.begin(), positions.end(), static_cast<int>(prompt));
      expected.push_back(alone.logits(tokens.back(), positions));
    }
    for (const int threads : {1, 2, 5})
      for (const bool reuse : {true, false}) {
        TestModel together(path, {.threads = threads, .contexts = 11, .reuse_steps = reuse});
        DecodeBatch batch(together.transformer(), tokens, kSteps);
        for (size_t step = 0; step < kSteps; ++step) {
          const std::vector<std::vector<float>> actual = batch.step();
          for (size_t i = 0; i < count; ++i)
            ASSERT_EQ(actual[i], expected[i][step])
                << count << " sequences, " << threads << " threads, sequence " << i << ", step "
                << step;
        }
        EXPECT_EQ(together.transformer().num_recorded_steps() > 0, reuse);
      }
  }
}

}  // namespace
}  // namespace octavo
