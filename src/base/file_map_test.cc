#include "base/file_map.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace octavo {
namespace {

class FileMapTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "octavo_map_XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& text) const {
    const std::string path = (folder_ / name).string();
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }

  static std::string text(const FileMap& map) {
    return {reinterpret_cast<const char*>(map.bytes().data()), map.size()};
  }

  static Error error(const std::string& path) {
    const auto map = FileMap::open(path);
    return map ? Error{ErrorCode::cancelled, "opened"} : map.error();
  }

  std::filesystem::path folder_;
};

TEST_F(FileMapTest, MapsTheBytes) {
  const std::string path = write("a", "octavo");
  const auto map = FileMap::open(path);
  ASSERT_TRUE(map) << map.error().message;
  EXPECT_EQ(text(*map), "octavo");
  EXPECT_EQ(map->path(), path);
}

TEST_F(FileMapTest, MovesWithoutMovingTheBytes) {
  auto first = FileMap::open(write("a", "first"));
  auto second = FileMap::open(write("b", "second"));
  ASSERT_TRUE(first && second);
  const std::byte* address = second->bytes().data();
  FileMap moved = std::move(*first);
  moved = std::move(*second);
  EXPECT_EQ(moved.bytes().data(), address);
  EXPECT_EQ(text(moved), "second");
  EXPECT_TRUE(first->bytes().empty());
  EXPECT_TRUE(second->bytes().empty());
}

TEST_F(FileMapTest, RefusalsNameThePath) {
  const std::string missing = (folder_ / "missing").string();
  const std::string pipe = (folder_ / "pipe").string();
  const std::string loop = (folder_ / "loop").string();
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  ASSERT_EQ(::symlink(loop.c_str(), loop.c_str()), 0);  // a refusal that root gets as well
  const struct {
    std::string path;
    ErrorCode code;
    std::string says;
  } cases[] = {
      {missing, ErrorCode::not_found, "no such file"},
      {write("file", "x") + "/below", ErrorCode::not_found, "no such file"},
      {folder_.string(), ErrorCode::io_error, "is a directory"},
      {loop, ErrorCode::io_error, "cannot open: "},
      {pipe, ErrorCode::io_error, "not a regular file"},
      {write("empty", ""), ErrorCode::corrupt_file, "is empty"},
  };
  for (const auto& c : cases) {
    const Error e = error(c.path);
    EXPECT_EQ(e.code, c.code) << e.message;
    EXPECT_NE(e.message.find(c.says), std::string::npos) << e.message;
    EXPECT_EQ(e.message.rfind(c.path, 0), 0u) << e.message;
  }
}

TEST_F(FileMapTest, DropsWholePagesOnlyAndReadsThemAgain) {
  const size_t page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const auto map = FileMap::open(write("pages", std::string(4 * page, 'x')));
  ASSERT_TRUE(map);
  const auto bytes = map->bytes();
  const struct {
    size_t begin, size, dropped;
  } cases[] = {
      {0, 4 * page, 4 * page}, {1, 4 * page - 1, 3 * page}, {1, 2 * page, page},     {1, page, 0},
      {page, page, page},      {page - 1, page + 2, page},  {page + 1, page - 2, 0}, {0, 0, 0},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(map->drop(bytes.subspan(c.begin, c.size)), c.dropped) << c.begin << " " << c.size;
    EXPECT_EQ(text(*map), std::string(4 * page, 'x'));
  }
}

}  // namespace
}  // namespace octavo
