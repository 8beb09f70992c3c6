#include "engine/exit_plan.h"

#include <gtest/gtest.h>

#include "formats/open_model.h"
#include "support/paths.h"
#include "support/temp_folder.h"

namespace octavo {
namespace {

using namespace testing;

TEST(ExitPlan, IsReadWithWhatElseIsThere) {
  const auto plan = parse_exit_plan(
      R"({"skip_layers": [2, 5], "draft_confidence_threshold": 0.7, "measured_speedup": 1.1})");
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_EQ(plan->skipped_layers, (std::vector{2, 5}));
  EXPECT_EQ(plan->confidence_threshold, 0.7);
  EXPECT_TRUE(parse_exit_plan(R"({"skip_layers": []})"));
  for (const char* bad : {"", "[]", "{}", R"({"skip_layers": 3})", R"({"skip_layers": [1.5]})",
                          R"({"skip_layers": [4294967297]})", R"({"skip_layers": [-1]})",
                          R"({"skip_layers": [1], "draft_confidence_threshold": "0"})",
                          R"({"skip_layers": [[[[1]]]]})"}) {
    const auto refused = parse_exit_plan(bad);
    ASSERT_FALSE(refused) << bad;
    EXPECT_EQ(refused.error().code, ErrorCode::corrupt_file);
    EXPECT_NE(refused.error().message.find("run it again"), std::string::npos);
  }
}

TEST(ExitPlan, IsFoundForTheSameFileAlone) {
  const TempFolder folder;
  const std::string packs = folder.file("packs");
  const auto model = open_model(tiny_data("llama-rope3/llama-rope3-Q4_0.gguf"), {});
  const auto other = open_model(tiny_data("qwen2/qwen2-Q8_0.gguf"), {});
  ASSERT_TRUE(model && other);
  const auto found = [&](const ModelSource& source) {
    const auto plan = find_exit_plan(packs, source);
    EXPECT_TRUE(plan) << plan.error().message;
    return *plan;
  };
  EXPECT_FALSE(found(**model));
  ASSERT_TRUE(store_exit_plan(packs, **model, R"({"skip_layers": [1]})"));
  ASSERT_TRUE(store_exit_plan(packs, **model, R"({"skip_layers": [0]})"));
  ASSERT_TRUE(found(**model));
  EXPECT_EQ(found(**model)->skipped_layers, std::vector{0});
  EXPECT_FALSE(found(**other));
  EXPECT_FALSE(*find_exit_plan("", **model));
  ASSERT_TRUE(store_exit_plan(packs, **model, "damaged"));
  EXPECT_FALSE(find_exit_plan(packs, **model));
}

}  // namespace
}  // namespace octavo
