#include "bench/prometheus_text.h"

#include <gtest/gtest.h>

namespace octavo {
namespace {

constexpr std::string_view kText =
    "# HELP vllm:kv_cache_usage_perc of the cache\n"
    "# TYPE vllm:kv_cache_usage_perc gauge\n"
    "vllm:kv_cache_usage_perc{model_name=\"a } \\\" 7\",engine=\"0\"} 0.25\n"
    "vllm:kv_cache_usage_perc{engine=\"1\"} 0.5 1700000000000\r\n"
    "vllm:kv_cache_usage_perc_more 9\n"
    "process_resident_memory_bytes 1.5e+08\n"
    "bad NaN\n"
    "worse{x=\"unfinished 3\n"
    "worst";

TEST(PrometheusText, SumsTheSamplesOfAName) {
  EXPECT_EQ(metric_sum(kText, "vllm:kv_cache_usage_perc"), 0.75);
  EXPECT_EQ(metric_sum(kText, "process_resident_memory_bytes"), 1.5e8);
}

TEST(PrometheusText, KnowsWhatIsNotThere) {
  for (const char* name : {"vllm:kv", "bad", "worse", "worst", "none"})
    EXPECT_FALSE(metric_sum(kText, name)) << name;
  EXPECT_FALSE(metric_sum("", "a"));
}

}  // namespace
}  // namespace octavo
