// Gemma 3 270M, Q4_K_M: windows of 512 positions, two rotations, weights in five types. Its terms
// keep it from being fetched unasked, so it may be missing.
#include <filesystem>

#include "support/reference_check.h"

namespace octavo {
namespace {

using namespace testing;

class Gemma3 : public ::testing::TestWithParam<Tolerance> {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(path()))
      GTEST_SKIP() << path()
                   << " is not there; scripts/fetch-model gemma3-270m --accept-licence fetches it";
  }
  static std::string path() { return fetched_model("gemma3-270m-q4_k_m.gguf"); }
  // Prompts have at most 800 tokens, windows of text 1024.
  static ReferenceCheck check() { return ReferenceCheck(path(), GetParam(), 1088); }
  static bool is_float() { return GetParam().dtype == ComputeType::float32; }
};

TEST_P(Gemma3, Logits) { check().logits("logits/gemma3.jsonl"); }
TEST_P(Gemma3, Greedy) { check().greedy("greedy/gemma3.jsonl"); }
// 40 tokens after prompts of 513 and 800: they drop out of the windows one by one.
TEST_P(Gemma3, GreedyBeyondTheWindow) { check().greedy("greedy/gemma3_long.jsonl", 40); }
TEST_P(Gemma3, Perplexity) {
  check().perplexity("perplexity/gemma3_gpl3_apache2_512.json", is_float() ? 2 : 8);
}
TEST_P(Gemma3, PerplexityBeyondTheWindow) {
  check().perplexity("perplexity/gemma3_gpl3_1024.json", is_float() ? 1 : 2);
}

INSTANTIATE_TEST_SUITE_P(, Gemma3, ::testing::Values(kInt8, kFloat32), [](const auto& of) {
  return of.param.dtype == ComputeType::float32 ? "Float32" : "Int8";
});

}  // namespace
}  // namespace octavo
