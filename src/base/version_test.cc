#include "base/version.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <string>

namespace octavo {
namespace {

bool is_hex(std::string_view text) {
  return text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

TEST(Version, NumberHasThreeParts) {
  const std::string text(version());
  int major = -1, minor = -1, patch = -1, length = 0;
  ASSERT_EQ(3, std::sscanf(text.c_str(), "%d.%d.%d%n", &major, &minor, &patch, &length)) << text;
  EXPECT_EQ(text.size(), static_cast<size_t>(length));
}

TEST(Version, CommitIsDigitsOrUnknown) {
  if (commit() == "unknown") return;
  EXPECT_GE(commit().size(), 12u) << commit();
  EXPECT_TRUE(is_hex(commit().substr(0, 12))) << commit();
  const std::string_view rest = commit().substr(12);
  EXPECT_TRUE(rest == "+changes" || is_hex(rest)) << commit();
}

TEST(Version, NamesTheCompilerThatBuiltThis) {
  // clang calls itself GNU 4 in __GNUC__.
#ifdef __clang_major__
  const std::string major = std::to_string(__clang_major__);
#else
  const std::string major = std::to_string(__GNUC__);
#endif
  EXPECT_NE(std::string_view::npos, compiler().find(major)) << compiler();
  EXPECT_FALSE(build_type().empty());
}

}  // namespace
}  // namespace octavo
