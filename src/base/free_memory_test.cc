#include "base/free_memory.h"

#include <gtest/gtest.h>

namespace octavo {
namespace {

TEST(FreeMemory, ReadsTheNamedLine) {
  const std::string_view text =
      "MemTotal:       100 kB\nMemAvailable:    7 kB\nOtherMemTotal: 9 kB\n";
  EXPECT_EQ(meminfo_bytes(text, "MemTotal"), 100 * 1024);
  EXPECT_EQ(meminfo_bytes(text, "MemAvailable"), 7 * 1024);
  EXPECT_EQ(meminfo_bytes(text, "Available"), std::nullopt);
  EXPECT_EQ(meminfo_bytes(text, "Other"), std::nullopt);
}

TEST(FreeMemory, NonsenseIsNothing) {
  EXPECT_EQ(meminfo_bytes("", "MemTotal"), std::nullopt);
  EXPECT_EQ(meminfo_bytes("MemTotal: many\n", "MemTotal"), std::nullopt);
  EXPECT_EQ(meminfo_bytes("MemTotal: 99999999999999999999 kB\n", "MemTotal"), std::nullopt);
  EXPECT_EQ(meminfo_bytes("MemTotal: 9000000000000000000 kB\n", "MemTotal"), std::nullopt);
}

}  // namespace
}  // namespace octavo
