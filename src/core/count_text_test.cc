#include "core/count_text.h"

#include <gtest/gtest.h>

#include <string>

namespace octavo {
namespace {

TEST(CountText, ReadsUnits) {
  const std::pair<const char*, int64_t> cases[] = {
      {"0", 0},
      {"8192", 8192},
      {"8k", 8000},
      {"8K", 8192},
      {"25.6k", 25'600},
      {"0.5K", 512},
      {"1m", 1'000'000},
      {"1M", 1 << 20},
      {"4GiB", int64_t{4} << 30},
      {"4 GiB", int64_t{4} << 30},
      {"4G", int64_t{4} << 30},
      {"4g", 4'000'000'000},
      {"2GB", 2'000'000'000},
      {"1.5MiB", 3 << 19},
      {"512B", 512},
      {"7 kB", 7000},
      {"0001KiB", 1024},
      {"1.000k", 1000},
      {"8388607T", int64_t{8388607} << 40},
  };
  for (const auto& [text, count] : cases) EXPECT_EQ(parse_count(text), count) << text;
}

TEST(CountText, RefusesWhatIsNoCount) {
  for (const char* text : {"",
                           " ",
                           "k",
                           "-1",
                           "+1",
                           "1.5",
                           "1.0001k",
                           "8kk",
                           "8ki",
                           "8kb",
                           "8KB",
                           "8gib",
                           "8 ",
                           " 8",
                           "8  k",
                           "8k ",
                           "1e3",
                           "0x10",
                           ".5k",
                           "1.k",
                           "1,5k",
                           "8388608T",
                           "9999999999999999999",
                           "999999999999999999K",
                           "0.0000000000000000001T",
                           "8k8"})
    EXPECT_EQ(parse_count(text), std::nullopt) << text;
}

}  // namespace
}  // namespace octavo
