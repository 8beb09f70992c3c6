#include "formats/quantize_file.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>

#include "support/paths.h"
#include "support/temp_folder.h"

namespace octavo {
namespace {

using testing::TempFolder;

TensorView matrix(const std::string& name, int64_t cols = 256, int64_t rows = 4) {
  return {.name = name, .type = DType::f32, .shape = {cols, rows, 1, 1}, .rank = 2, .data = {}};
}

DType planned(const std::string& name, const QuantizeRules& rules) {
  return plan_tensor(matrix(name), rules).type;
}

TEST(QuantizePlan, NormsVectorsAndRoutersStay) {
  const QuantizeRules rules{.type = DType::q4_0};
  EXPECT_EQ(planned("blk.0.attn_q.weight", rules), DType::q4_0);
  EXPECT_EQ(planned("blk.0.ffn_gate_inp.weight", rules), DType::f32);
  EXPECT_EQ(planned("blk.0.attn_norm.weight", rules), DType::f32);
  EXPECT_EQ(planned("blk.0.attn_q.bias", rules), DType::f32);
  TensorView vector = matrix("blk.0.something.weight", 256, 1);
  vector.rank = 1;
  EXPECT_EQ(plan_tensor(vector, rules).type, DType::f32);
}

TEST(QuantizePlan, HeadsGetMoreBitsUnlessPure) {
  EXPECT_EQ(planned("output.weight", {.type = DType::q4_0, .tied = false}), DType::q6_k);
  EXPECT_EQ(planned("token_embd.weight", {.type = DType::q4_0, .tied = false}), DType::q4_0);
  EXPECT_EQ(planned("token_embd.weight", {.type = DType::q4_0, .tied = true}), DType::q6_k);
  EXPECT_EQ(planned("token_embd.weight", {.type = DType::q8_0, .tied = true}), DType::q8_0);
  EXPECT_EQ(planned("token_embd.weight", {.type = DType::f16, .tied = true}), DType::f16);
  EXPECT_EQ(planned("output.weight", {.type = DType::q4_0, .pure = true}), DType::q4_0);
}

TEST(QuantizePlan, MixturesGiveTheEndsAndEveryThirdLayerMore) {
  const QuantizeRules rules{.type = DType::q4_k, .num_layers = 16};
  std::string layers;
  for (int i = 0; i < 16; ++i)
    layers +=
        planned("blk." + std::to_string(i) + ".ffn_down.weight", rules) == DType::q6_k ? 'x' : '.';
  EXPECT_EQ(layers, "xx..x..x..x..xxx");
  EXPECT_EQ(planned("blk.0.attn_v.weight", rules), DType::q6_k);
  EXPECT_EQ(planned("blk.0.attn_k.weight", rules), DType::q4_k);
  EXPECT_EQ(planned("blk.0.ffn_down.weight", {.type = DType::q4_0, .num_layers = 16}), DType::q4_0);
}

TEST(QuantizePlan, RowsThatAreNoWholeBlocksGetSmallerOnes) {
  const QuantizeRules rules{.type = DType::q4_k, .num_layers = 16};
  const TensorPlan plan = plan_tensor(matrix("blk.3.attn_q.weight", 576), rules);
  EXPECT_EQ(plan.type, DType::q5_0);
  EXPECT_EQ(plan.instead_of, DType::q4_k);
  EXPECT_EQ(plan_tensor(matrix("blk.0.ffn_down.weight", 64), rules).type, DType::q8_0);
  EXPECT_EQ(plan_tensor(matrix("blk.3.attn_q.weight", 48), rules).type, DType::f16);
}

TEST(QuantizePlan, RulesComeFromTheTensors) {
  const std::vector<TensorView> tensors = {matrix("blk.0.a"), matrix("blk.11.b"),
                                           matrix("output.weight")};
  const QuantizeRules rules = make_rules(DType::q4_k, false, tensors, 8);
  EXPECT_EQ(rules.num_layers, 12);
  EXPECT_FALSE(rules.tied);
  EXPECT_TRUE(make_rules(DType::q4_k, false, {}, 0).tied);
}

class QuantizeFile : public ::testing::Test {
 protected:
  Result<QuantizeReport> quantize(const WeightSource& source, DType type) {
    return quantize_to_file(source, folder_.file("out.gguf"),
                            {.rules = make_rules(type, false, source.tensors, 0)}, *pool_);
  }

  // A source of one matrix that is all ones but for its last value.
  WeightSource ones(float last) {
    values_.assign(256 * 33, 1.0f);
    values_.back() = last;
    tensors_ = {matrix("blk.0.attn_q.weight", 256, 33)};
    tensors_[0].data = std::as_bytes(std::span(values_));
    return {.name = "ones", .tensors = tensors_};
  }

  bool is_empty() const {
    return std::filesystem::is_empty(std::filesystem::path(folder_.file("x")).parent_path());
  }

  TempFolder folder_;
  std::unique_ptr<ThreadPool> pool_ = ThreadPool::create(2).value();
  std::vector<float> values_;
  std::vector<TensorView> tensors_;
};

TEST_F(QuantizeFile, EqualsAnotherProgramsFile) {
  const auto in =
      GgufFile::open(testing::test_data("tiny/llama-untied/llama-untied-F32.gguf")).value();
  const auto expected =
      GgufFile::open(testing::test_data("tiny/llama-untied/llama-untied-Q8_0.gguf")).value();
  const auto report = quantize(weight_source(in).value(), DType::q8_0);
  ASSERT_TRUE(report) << report.error().message;
  const auto out = GgufFile::open(folder_.file("out.gguf")).value();
  EXPECT_EQ(out.size(), report->file_bytes);
  EXPECT_EQ(out.get_u32("general.file_type").value(), 7u);
  ASSERT_EQ(out.tensors().size(), expected.tensors().size());
  for (const TensorView& tensor : out.tensors()) {
    const TensorView* other = expected.find_tensor(tensor.name);
    ASSERT_TRUE(other) << tensor.name;
    EXPECT_EQ(tensor.type, other->type) << tensor.name;
    EXPECT_EQ(tensor.shape, other->shape) << tensor.name;
    EXPECT_TRUE(
        std::equal(tensor.data.begin(), tensor.data.end(), other->data.begin(), other->data.end()))
        << tensor.name;
  }
}

TEST_F(QuantizeFile, CountsWhatWasLost) {
  const auto report = quantize(ones(1.0f), DType::q8_0);
  ASSERT_TRUE(report) << report.error().message;
  const QuantizedType& figures = report->types.at(DType::q8_0);
  EXPECT_EQ(figures.num_tensors, 1);
  EXPECT_EQ(figures.elements, 256 * 33);
  EXPECT_EQ(figures.bytes_after, row_bytes(DType::q8_0, 256 * 33));
  EXPECT_GT(figures.relative_error(), 0);
  EXPECT_LT(figures.relative_error(), 1e-3);
}

TEST_F(QuantizeFile, RefusesWhatIsNoNumberAndNamesTheTensor) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const float last : {kInfinity, -kInfinity, std::nanf("")})
    for (const DType type : {DType::q4_k, DType::f16, DType::f32}) {
      const auto refused = quantize(ones(last), type);
      ASSERT_FALSE(refused);
      EXPECT_EQ(refused.error().code, ErrorCode::numeric_error);
      EXPECT_NE(refused.error().message.find("'blk.0.attn_q.weight'"), std::string::npos);
    }
  EXPECT_TRUE(is_empty());
}

TEST_F(QuantizeFile, RefusesValuesBeyondTheType) {
  const auto refused = quantize(ones(1e20f), DType::q4_0);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::numeric_error);
  EXPECT_NE(refused.error().message.find("too large for q4_0"), std::string::npos);
  EXPECT_TRUE(is_empty());
  EXPECT_TRUE(quantize(ones(1e20f), DType::bf16));
}

TEST_F(QuantizeFile, StopsWhenAskedAndLeavesNothing) {
  const WeightSource source = ones(1);
  std::stop_source stop;
  QuantizeOptions options{.rules = make_rules(DType::q8_0, false, source.tensors, 0),
                          .stop = stop.get_token()};
  options.on_progress = [&](size_t, size_t) { stop.request_stop(); };
  const auto stopped = quantize_to_file(source, folder_.file("out.gguf"), options, *pool_);
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code, ErrorCode::cancelled);
  EXPECT_TRUE(is_empty());
}

}  // namespace
}  // namespace octavo
