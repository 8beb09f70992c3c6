#include "formats/quantize_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>

#include "formats/gguf_parts.h"
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

class QuantizeShards : public QuantizeFile {
 protected:
  // Six matrices of one size and of values of their own.
  WeightSource six() {
    values_.clear();
    for (int i = 0; i < 6; ++i) values_.insert(values_.end(), 256 * 4, static_cast<float>(i));
    tensors_.clear();
    for (size_t i = 0; i < 6; ++i) {
      tensors_.push_back(matrix("blk." + std::to_string(i) + ".attn_q.weight"));
      tensors_.back().data = std::as_bytes(std::span(values_).subspan(i * 1024, 1024));
    }
    WeightSource source{.name = "six", .tensors = tensors_};
    source.metadata.set_string("general.name", "six");
    return source;
  }

  Result<QuantizeReport> write(uint64_t max_bytes, const std::string& name = "out.gguf") {
    const WeightSource source = six();
    return quantize_to_file(
        source, folder_.file(name),
        {.rules = make_rules(DType::f32, true, source.tensors, 0), .max_shard_bytes = max_bytes},
        *pool_);
  }

  static constexpr uint64_t kBytes = 4096;  // of each matrix
};

TEST_F(QuantizeShards, ReadBackAsOneModel) {
  const auto report = write(2 * kBytes + 5);
  ASSERT_TRUE(report) << report.error().message;
  ASSERT_EQ(report->files.size(), 3u);
  EXPECT_EQ(report->files[1], folder_.file("out-00002-of-00003.gguf"));
  uint64_t bytes = 0;
  for (const std::string& file : report->files) bytes += std::filesystem::file_size(file);
  EXPECT_EQ(report->file_bytes, bytes);
  const auto model = open_gguf(report->files[2]);
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ((*model)->get_string("general.name"), "six");
  ASSERT_EQ((*model)->tensors().size(), 6u);
  for (size_t i = 0; i < 6; ++i) {
    const TensorView* tensor = (*model)->find_tensor(tensors_[i].name);
    ASSERT_NE(tensor, nullptr);
    EXPECT_TRUE(std::ranges::equal(tensor->data, tensors_[i].data)) << i;
  }
  // As gguf-split has them: types included.
  const auto second = GgufFile::open(report->files[1], GgufPart::read);
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_EQ(second->find("split.no")->type, GgufType::u16);
  EXPECT_EQ(second->find("split.count")->type, GgufType::u16);
  EXPECT_EQ(second->find("split.tensors.count")->type, GgufType::i32);
  EXPECT_EQ(second->metadata().size(), 3u);
  EXPECT_EQ(second->tensors().size(), 2u);
}

TEST_F(QuantizeShards, WhatFitsIsOneFile) {
  const auto report = write(6 * kBytes);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->files, std::vector{folder_.file("out.gguf")});
  const auto whole = GgufFile::open(folder_.file("out.gguf"));
  ASSERT_TRUE(whole) << whole.error().message;
  EXPECT_EQ(whole->find("split.count"), nullptr);
}

TEST_F(QuantizeShards, ATensorLargerThanTheLimitHasAFileOfItsOwn) {
  const auto report = write(1, "all");
  ASSERT_TRUE(report) << report.error().message;
  ASSERT_EQ(report->files.size(), 6u);
  EXPECT_EQ(report->files[5], folder_.file("all-00006-of-00006.gguf"));
  EXPECT_TRUE(open_gguf(report->files[0]));
}

TEST_F(QuantizeShards, LeaveNothingWhereOneCannotBeWritten) {
  folder_.write("out-00003-of-00003.gguf", "mine");
  const auto refused = write(2 * kBytes);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("out-00003-of-00003.gguf"), std::string::npos);
  size_t files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder_.file(".")))
    ++files;
  EXPECT_EQ(files, 1u);
}

}  // namespace
}  // namespace octavo
