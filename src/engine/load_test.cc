#include "engine/load.h"

#include <gtest/gtest.h>

#include <stop_token>

#include "support/paths.h"

namespace octavo {
namespace {

EngineOptions options_with(const std::stop_source& stop) {
  EngineOptions options;
  options.model = testing::test_data("tiny/llama-tied/llama-tied-F32.gguf");
  options.threads = 1;
  options.stop_loading = stop.get_token();
  return options;
}

TEST(Load, CanBeStoppedBeforeAndWhileItReadsWeights) {
  std::stop_source before;
  before.request_stop();
  EXPECT_EQ(load_engine(options_with(before)).error().code, ErrorCode::cancelled);

  std::stop_source within;
  EngineOptions options = options_with(within);
  double reached = 0;
  options.on_progress = [&](double done) {
    reached = done;
    if (done > 0.2) within.request_stop();
  };
  EXPECT_EQ(load_engine(options).error().code, ErrorCode::cancelled);
  EXPECT_LT(reached, 1);
}

}  // namespace
}  // namespace octavo
