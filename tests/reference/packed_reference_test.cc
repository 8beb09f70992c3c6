// Tiny models with packed four-bit weights against fp32 logits that transformers computed from the
// dequantised ones (tools/make_packed_models.py).
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>

#include "support/paths.h"
#include "support/test_model.h"

namespace octavo {
namespace {

using namespace testing;

double spread(const std::vector<float>& values) {
  double mean = 0, squares = 0;
  for (float x : values) mean += x / static_cast<double>(values.size());
  for (float x : values) squares += (x - mean) * (x - mean);
  return std::sqrt(squares / static_cast<double>(values.size()));
}

// tolerance: of the spread of a row's logits.
void expect_logits(TestModel& model, const std::string& folder, double tolerance) {
  for (const auto& expected : nlohmann::json::parse(read_file(folder + "/reference.json"))) {
    const auto tokens = token_ids(expected["prompt"]);
    const auto row = model.logits(tokens, {static_cast<int>(tokens.size()) - 1})[0];
    const std::vector<float> logits = expected["logits"];
    ASSERT_EQ(row.size(), logits.size());
    const double limit = tolerance * spread(logits);
    for (size_t i = 0; i < row.size(); ++i) ASSERT_NEAR(row[i], logits[i], limit) << folder << i;
  }
}

void for_each_folder(const std::function<void(const std::string&)>& body) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(test_data("packed"))) {
    SCOPED_TRACE(entry.path().string());
    body(entry.path().string());
    ++count;
  }
  EXPECT_GE(count, 2);
}

TEST(PackedReference, Float32) {
  for_each_folder([](const std::string& folder) {
    TestModel model(folder, {.dtype = ComputeType::float32, .kv_cache_dtype = KvType::f32});
    expect_logits(model, folder, 1e-4);
  });
}

TEST(PackedReference, RoundedActivations) {
  for_each_folder([](const std::string& folder) {
    TestModel model(folder, {});
    expect_logits(model, folder, 0.15);
  });
}

// A token's result is the same bits alone, in a chunk, and beyond the rows that every thread norms
// for itself.
TEST(PackedReference, DoesNotDependOnTheChunk) {
  for_each_folder([](const std::string& folder) {
    std::vector<TokenId> tokens;
    for (int i = 0; i < 40; ++i) tokens.push_back(TokenId{(i * 37 + 5) % 128});
    const auto whole = TestModel(folder, {}).logits(tokens, positions_of(tokens));
    for (const int chunk : {1, 3, 11, 32})
      EXPECT_EQ(TestModel(folder, {.chunk = chunk}).logits(tokens, positions_of(tokens)), whole);
  });
}

}  // namespace
}  // namespace octavo
