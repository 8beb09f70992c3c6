// Longrope has two sets of frequencies; which one a model runs with follows from the length that it
// is served with, for all positions alike.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "support/paths.h"
#include "support/temp_folder.h"
#include "support/test_model.h"

namespace octavo {
namespace {

using namespace testing;
using nlohmann::json;
namespace fs = std::filesystem;

constexpr int kOriginal = 64;

// The tiny Phi-3 with these factors.
class LongropeFolder {
 public:
  LongropeFolder(double short_factor, double long_factor) {
    for (const auto& entry : fs::directory_iterator(tiny_data("phi3")))
      if (entry.path().extension() != ".gguf") fs::copy(entry.path(), folder_.file(""));
    json config = json::parse(read_file(folder_.file("config.json")));
    config.erase("rope_theta");
    config["original_max_position_embeddings"] = kOriginal;
    config["rope_parameters"] = {{"rope_type", "longrope"},
                                 {"rope_theta", 10000.0},
                                 {"attention_factor", 1.1},
                                 {"short_factor", std::vector<double>(8, short_factor)},
                                 {"long_factor", std::vector<double>(8, long_factor)}};
    fs::remove(folder_.file("config.json"));
    folder_.write("config.json", config.dump());
  }

  std::vector<float> logits(int max_model_len) const {
    std::vector<TokenId> tokens;
    for (int i = 0; i < 20; ++i) tokens.push_back(TokenId{i * 7 + 1});
    TestModel model(folder_.file("."), {.max_model_len = max_model_len});
    return model.logits(tokens, {19})[0];
  }

 private:
  TempFolder folder_;
};

TEST(Longrope, FollowsTheLengthThatIsServed) {
  const LongropeFolder both(1.0, 4.0), all_short(1.0, 1.0), all_long(4.0, 4.0);
  const auto short_logits = all_short.logits(0), long_logits = all_long.logits(0);
  ASSERT_NE(short_logits, long_logits);
  EXPECT_EQ(both.logits(kOriginal), short_logits);
  EXPECT_EQ(both.logits(kOriginal + 1), long_logits);
  EXPECT_EQ(both.logits(0), long_logits);  // the model's own length is beyond
}

}  // namespace
}  // namespace octavo
