// Tiny random models of each family, in four weight types, against fp32 values of another
// implementation (NAME/reference.json: full logits after three prompts, 32 greedy tokens with their
// margins), from GGUF files and from folders of safetensors.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "support/paths.h"
#include "support/test_model.h"

namespace octavo {
namespace {

using namespace testing;

constexpr const char* kModels[] = {"llama-tied", "llama-untied", "llama-rope3", "qwen2",
                                   "mistral",    "qwen3",        "phi3",        "gemma3",
                                   "mixtral",    "qwen3moe",     "olmo2",       "granite"};
constexpr const char* kTypes[] = {"safetensors", "F32", "F16", "Q8_0", "Q4_0"};

double tolerance(const std::string& type, bool rounded_activations,
                 const std::vector<float>& expected) {
  if (!rounded_activations) return type == "F32" || type == "safetensors" ? 1e-3 : 2e-3;
  double mean = 0, squares = 0;
  for (float x : expected) mean += x / static_cast<double>(expected.size());
  for (float x : expected) squares += (x - mean) * (x - mean);
  return 0.15 * std::sqrt(squares / static_cast<double>(expected.size()));
}

std::string path_of(const std::string& name, const std::string& type) {
  if (type == "safetensors") return tiny_data(name);
  return tiny_data(name + "/" + name + "-" + type + ".gguf");
}

void check(const std::string& name, const std::string& type, ComputeType dtype) {
  const auto reference = nlohmann::json::parse(read_file(tiny_data(name + "/reference.json")));
  const bool rounded = dtype == ComputeType::automatic && type[0] == 'Q';
  const std::string path = path_of(name, type);
  if (type == "F16" && !std::filesystem::exists(path)) return;  // some families have no such file
  TestModel model(path, {.dtype = dtype, .kv_cache_dtype = rounded ? KvType::f16 : KvType::f32});
  double largest = 0;  // difference, as a part of what is allowed
  for (size_t i = 0; i < reference[type].size(); ++i) {
    const auto& expected = reference[type][i];
    auto tokens = token_ids(reference["safetensors"][i]["prompt"]);
    const auto row = model.logits(tokens, {static_cast<int>(tokens.size()) - 1})[0];
    const std::vector<float> logits = expected["logits"];
    ASSERT_EQ(row.size(), logits.size());
    const double limit = tolerance(type, rounded, logits);
    for (size_t k = 0; k < row.size(); ++k) {
      largest = std::max(largest, std::fabs(double{row[k]} - double{logits[k]}) / limit);
      ASSERT_NEAR(row[k], logits[k], limit)
          << name << " " << type << " prompt " << i << " logit " << k;
    }

    // Greedy tokens, as far as their margins decide; the reference's own tokens are fed, so that
    // all are looked at.
    const std::vector<int> greedy = expected["greedy"];
    const std::vector<double> margin = expected["margin"];
    const auto prompt = static_cast<int>(tokens.size());
    for (int token : greedy) tokens.push_back(TokenId{token});
    const auto rows = model.logits(tokens, positions_of(tokens));
    for (size_t k = 0; k < greedy.size() && margin[k] > 10 * limit; ++k)
      EXPECT_EQ(argmax_index(rows[static_cast<size_t>(prompt) - 1 + k]), greedy[k])
          << name << " " << type << " " << k;
  }
  ::testing::Test::RecordProperty(name + "_" + type, std::to_string(largest));
}

TEST(TinyReference, Float32) {
  for (const char* name : kModels)
    for (const char* type : kTypes) check(name, type, ComputeType::float32);
}

TEST(TinyReference, RoundedActivations) {
  for (const char* name : kModels)
    for (const char* type : kTypes) check(name, type, ComputeType::automatic);
}

}  // namespace
}  // namespace octavo
