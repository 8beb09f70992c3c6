// Reading lines, and the file of results, which must survive whatever ends the program.
#include <gtest/gtest.h>

#include <fstream>

#include "cli/line_scanner.h"
#include "cli/result_file.h"
#include "support/paths.h"
#include "support/temp_folder.h"

namespace octavo::cli {
namespace {

std::vector<ScannedLine> scan(const std::string& path, size_t max_bytes) {
  auto scanner = LineScanner::open(path, max_bytes);
  EXPECT_TRUE(scanner);
  std::vector<ScannedLine> lines;
  for (;;) {
    auto line = scanner->next();
    EXPECT_TRUE(line);
    if (!*line) return lines;
    lines.push_back(**line);
  }
}

TEST(LineScanner, FindsLinesWithinBounds) {
  const testing::TempFolder folder;
  const std::string big(200'000, 'x');
  const auto lines =
      scan(folder.write("a", "one\n\n" + big + "\n" + big.substr(1) + "\nend"), 1000);
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_EQ(lines[0].text, "one");
  EXPECT_EQ(lines[1].text, "");
  EXPECT_EQ(lines[2].text, big.substr(0, 1000));
  EXPECT_TRUE(lines[2].too_long);
  EXPECT_NE(lines[2].hash, lines[3].hash) << "what is cut off counts too";
  EXPECT_EQ(lines[4].text, "end");
  EXPECT_EQ(lines[4].number, 5);
  EXPECT_FALSE(lines[4].complete);
  EXPECT_TRUE(lines[3].complete);
  EXPECT_EQ(lines[1].offset, 4);
  EXPECT_EQ(lines[4].offset, 5 + 200'001 + 200'000);
  EXPECT_TRUE(scan(folder.write("b", ""), 10).empty());
  EXPECT_TRUE(scan(folder.write("c", std::string(70'000, 'y') + "\n"), 70'000)[0].complete);
  EXPECT_FALSE(LineScanner::open(folder.file("none"), 10));
}

// Inputs 1, 2, 3 ... with made-up hashes, `count` of them.
auto inputs(int count) {
  return [count, next = 0]() mutable -> Result<std::optional<ResultHead>> {
    if (next == count) return std::nullopt;
    ++next;
    return std::optional(ResultHead{next, static_cast<uint64_t>(next) * 1000});
  };
}

std::string result(int line, const std::string& rest = ",\"x\":1}") {
  return kOwnFormat.head({line, static_cast<uint64_t>(line) * 1000}) + rest + "\n";
}

TEST(ResultFile, GoesOnAfterTheLastWholeLine) {
  const testing::TempFolder folder;
  const std::string whole = result(1) + result(2, ",\"error\":{\"code\":\"io_error\"}}");
  // Whatever part of the third line was written.
  for (size_t cut = 0; cut < result(3).size(); ++cut) {
    const std::string path = folder.write("out", whole + result(3).substr(0, cut));
    auto file = ResultFile::open(path, false);
    ASSERT_TRUE(file);
    const auto found = file->resume(kOwnFormat, inputs(5));
    ASSERT_TRUE(found) << found.error().message;
    EXPECT_EQ(found->done, 2);
    EXPECT_EQ(found->failed, 1);
    EXPECT_EQ(found->first_error, ErrorCode::io_error);
    EXPECT_EQ(found->first_failed_line, 2);
    EXPECT_EQ(found->unfinished, cut > 0);
    ASSERT_TRUE(file->append(result(3)));
    EXPECT_EQ(testing::read_file(path), whole + result(3));
  }
}

TEST(ResultFile, LeavesWhatIsNotItsOwn) {
  const testing::TempFolder folder;
  for (const std::string& content :
       {std::string("notes"), std::string("notes\n"), result(2), result(1) + result(3),
        result(1) + "{\"line\":2,\"input_hash\":\"ffff", result(1) + std::string(10, '\0'),
        result(1) + result(2) + result(3) + result(4), std::string("\n")}) {
    const std::string path = folder.write("out", content);
    {
      auto file = ResultFile::open(path, false);
      const auto found = file->resume(kOwnFormat, inputs(3));
      ASSERT_FALSE(found) << content;
      EXPECT_EQ(found.error().code, ErrorCode::invalid_argument);
      EXPECT_NE(found.error().message.find("--overwrite"), std::string::npos);
    }
    EXPECT_EQ(testing::read_file(path), content);
    ASSERT_TRUE(ResultFile::open(path, true)->resume(kOwnFormat, inputs(3)));
    EXPECT_EQ(testing::read_file(path), "");
  }
}

TEST(ResultFile, IsWrittenByOneRunAtATime) {
  const testing::TempFolder folder;
  const std::string path = folder.write("out", "something\n");
  const auto first = ResultFile::open(path, false);
  ASSERT_TRUE(first);
  const auto second = ResultFile::open(path, true);
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().message.find("another run"), std::string::npos);
  EXPECT_EQ(testing::read_file(path), "something\n");
}

TEST(ResultFile, MayBeADevice) {
  auto file = ResultFile::open("/dev/null", false);
  ASSERT_TRUE(file);
  EXPECT_TRUE(file->resume(kOwnFormat, inputs(1)));
  EXPECT_TRUE(file->append("x\n"));
  auto full = ResultFile::open("/dev/full", false);
  ASSERT_TRUE(full);
  EXPECT_EQ(full->append("x\n").error().code, ErrorCode::io_error);
}

}  // namespace
}  // namespace octavo::cli
