#include "model/lora.h"

#include <gtest/gtest.h>

#include <random>

#include "formats/gguf.h"
#include "support/lora_files.h"
#include "support/paths.h"

namespace octavo {
namespace {

using namespace testing;

// Of the same shapes as the folder beside it.
ModelConfig tiny_config() {
  return *read_model_config(*GgufFile::open(tiny_data("llama-tied/llama-tied-F32.gguf")));
}

Result<std::shared_ptr<const LoraAdapter>> load(const std::string& gguf, const ModelConfig& config,
                                                int max_rank = 64) {
  OCTAVO_TRY(const LoraFile file, LoraFile::parse_gguf(as_bytes(gguf), "a", "llama"));
  return LoraAdapter::load(file, config, max_rank);
}

void expect_error(const Result<std::shared_ptr<const LoraAdapter>>& result, std::string_view part,
                  ErrorCode code) {
  ASSERT_FALSE(result) << part;
  EXPECT_NE(result.error().message.find(part), std::string::npos) << result.error().message;
  EXPECT_EQ(error_name(result.error().code), error_name(code));
}

// One pair of zeros, scaled by 1.
std::string gguf_of(const std::string& matrix, int64_t cols, int64_t rank, int64_t rows) {
  const auto zeros = [](int64_t count) {
    return std::string(static_cast<size_t>(4 * count), '\0');
  };
  const auto dim = [](int64_t size) { return static_cast<uint64_t>(size); };
  GgufWriter out;
  out.string("general.type", "adapter")
      .string("general.architecture", "llama")
      .string("adapter.type", "lora")
      .f32("adapter.lora.alpha", static_cast<float>(rank))
      .tensor(matrix + ".weight.lora_a", {dim(cols), dim(rank)}, 0, zeros(cols * rank))
      .tensor(matrix + ".weight.lora_b", {dim(rank), dim(rows)}, 0, zeros(rank * rows));
  return out.build();
}

TEST(LoraAdapter, FitsItsModelOrIsRefused) {
  const ModelConfig c = tiny_config();
  const int64_t hidden = c.hidden_size, q = int64_t{c.num_heads} * c.head_dim;
  const auto adapter = load(gguf_of("blk.1.attn_q", hidden, 3, q), c);
  ASSERT_TRUE(adapter) << adapter.error().message;
  EXPECT_EQ((*adapter)->rank(), 3);
  ASSERT_NE((*adapter)->find(1, 0), nullptr);
  EXPECT_EQ((*adapter)->find(1, 0)->scale, 1);
  EXPECT_EQ((*adapter)->find(0, 0), nullptr);
  EXPECT_EQ((*adapter)->find(1, 1), nullptr);

  using enum ErrorCode;
  expect_error(load(gguf_of("blk.1.attn_q", hidden + 16, 3, q), c), "columns", corrupt_file);
  expect_error(load(gguf_of("blk.1.attn_q", hidden, 3, q - 1), c), "rows", corrupt_file);
  expect_error(load(gguf_of("blk.1.attn_q", hidden, 9, q), c, 8), "--max-lora-rank", unsupported);
  expect_error(load(gguf_of("blk.99.attn_q", hidden, 3, q), c), "layer 99", corrupt_file);
  for (const char* name :
       {"token_embd", "output", "blk.0.attn_norm", "blk.0.attn_qkv", "blk.x.attn_q",
        "blk.-1.attn_q", "blk..attn_q", "blk.99999999999.attn_q", "attn_q"})
    expect_error(load(gguf_of(name, hidden, 3, q), c), name, unsupported);
}

TEST(LoraAdapter, ExpertsAreNotChanged) {
  ModelConfig c = tiny_config();
  c.experts = {.count = 4, .used = 2};
  const int64_t hidden = c.hidden_size;
  EXPECT_TRUE(load(gguf_of("blk.0.attn_output", int64_t{c.num_heads} * c.head_dim, 3, hidden), c));
  expect_error(load(gguf_of("blk.0.ffn_gate_inp", hidden, 3, 4), c), "ffn_gate_inp",
               ErrorCode::unsupported);
  expect_error(load(gguf_of("blk.0.ffn_up", hidden, 3, c.intermediate_size), c), "ffn_up",
               ErrorCode::unsupported);
}

// Whatever is changed in the files, they are refused or loaded, and nothing beyond them is read.
TEST(LoraAdapter, DamagedFilesDoNoHarm) {
  const ModelConfig config = tiny_config();
  const MadeLora made(tiny_data("llama-tied"), {.rank = 2, .only = "layers.0."});
  const std::string gguf = made.gguf(), tensors = made.peft_tensors();
  const std::string peft = made.config().dump();
  std::mt19937 random(1);
  int loaded = 0, refused = 0;
  for (int i = 0; i < 4000; ++i) {
    std::string bytes = i % 2 ? gguf : tensors, text = peft;
    // Mostly in the tables at the front.
    for (uint32_t changes = random() % 3 + 1; changes > 0; --changes)
      bytes[random() % std::min<size_t>(bytes.size(), 3000)] = static_cast<char>(random());
    if (i % 5 == 0) bytes.resize(random() % bytes.size());
    if (i % 7 == 0) text[random() % text.size()] = static_cast<char>(random());
    const auto file = i % 2 ? LoraFile::parse_gguf(as_bytes(bytes), "a", "llama")
                            : LoraFile::parse_peft(text, as_bytes(bytes), "a", "llama");
    const bool fits = file && LoraAdapter::load(*file, config, 64);
    ++(fits ? loaded : refused);
  }
  EXPECT_GT(loaded, 50);
  EXPECT_GT(refused, 500);
}

}  // namespace
}  // namespace octavo
