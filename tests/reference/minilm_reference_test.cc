// all-MiniLM-L6-v2 against Hugging Face Transformers in fp32: tokens and embeddings of texts of all
// kinds and lengths. Needs scripts/fetch-model all-minilm-l6-v2.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "engine/load.h"
#include "support/paths.h"

namespace octavo {
namespace {

using namespace testing;
using nlohmann::json;

std::vector<json> lines() {
  std::vector<json> out;
  std::istringstream text(read_file(test_data("embeddings/all-minilm-l6-v2.jsonl")));
  for (std::string line; std::getline(text, line);) out.push_back(json::parse(line));
  return out;
}

std::vector<float> from_base64(const std::string& text) {
  std::string bytes;
  uint32_t word = 0;
  int bits = 0;
  for (const char c : text) {
    constexpr std::string_view kAlphabet =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    if (c == '=') break;
    word = word << 6 | static_cast<uint32_t>(kAlphabet.find(c));
    if ((bits += 6) >= 8) bytes += static_cast<char>(word >> (bits -= 8) & 255);
  }
  std::vector<float> out(bytes.size() / sizeof(float));
  std::memcpy(out.data(), bytes.data(), out.size() * sizeof(float));
  return out;
}

struct Closeness {
  double cosine = 0, largest = 0;
};

Closeness compare(const std::vector<float>& a, const std::vector<float>& b) {
  double ab = 0, aa = 0, bb = 0;
  Closeness out;
  for (size_t i = 0; i < a.size(); ++i) {
    const double x = double{a[i]}, y = double{b[i]};
    ab += x * y, aa += x * x, bb += y * y;
    out.largest = std::max(out.largest, std::fabs(x - y));
  }
  out.cosine = ab / std::sqrt(aa * bb);
  return out;
}

class MiniLm : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string path = fetched_model("all-minilm-l6-v2");
    if (!std::filesystem::exists(path))
      GTEST_SKIP() << "scripts/fetch-model all-minilm-l6-v2 fetches the model";
    auto loaded = load_engine({.model = path, .dtype = dtype_, .quantization = quantization_});
    ASSERT_TRUE(loaded) << loaded.error().message;
    loaded_ = std::move(*loaded);
  }
  std::vector<float> embed(const std::vector<TokenId>& ids) {
    auto output =
        loaded_.engine->run({.prompt_token_ids = ids,
                             .pooling = PoolingParams{.type = loaded_.pooling.type,
                                                      .normalize = loaded_.pooling.normalize}});
    EXPECT_TRUE(output) << output.error().message;
    return output ? std::move(output->embedding) : std::vector<float>();
  }
  // Of all texts, with the tokens of ours.
  void check(double least_cosine, double most_difference) {
    Closeness worst{1, 0};
    for (const json& line : lines()) {
      const std::string text = line["text"];
      const auto ids = loaded_.tokenizer->encode(text, {.add_special = true});
      ASSERT_TRUE(ids) << ids.error().message;
      std::vector<int> raw_ids;
      for (const TokenId id : *ids) raw_ids.push_back(raw(id));
      EXPECT_EQ(raw_ids, line["ids"].get<std::vector<int>>()) << text;
      const auto expected = from_base64(line["embedding"]), actual = embed(*ids);
      ASSERT_EQ(actual.size(), expected.size());
      const Closeness close = compare(actual, expected);
      EXPECT_GT(close.cosine, least_cosine) << text;
      EXPECT_LT(close.largest, most_difference) << text;
      worst = {std::min(worst.cosine, close.cosine), std::max(worst.largest, close.largest)};
    }
    RecordProperty("cosine", std::to_string(worst.cosine));
    RecordProperty("largest_difference", fmt::format("{}", worst.largest));
  }

  std::string dtype_ = "auto", quantization_ = "none";
  LoadedEngine loaded_;
};

class MiniLmInt8 : public MiniLm {
 protected:
  MiniLmInt8() { quantization_ = "int8"; }
};

TEST_F(MiniLm, TextsBecomeTheSameVectors) {
  EXPECT_EQ(loaded_.pooling.type, PoolingType::mean);
  EXPECT_TRUE(loaded_.pooling.normalize);
  EXPECT_GE(lines().size(), 20u);
  check(0.9999, 1e-4);
}

TEST_F(MiniLmInt8, StaysClose) { check(0.999, 0.02); }

}  // namespace
}  // namespace octavo
