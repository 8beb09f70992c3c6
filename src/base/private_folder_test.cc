#include "base/private_folder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <thread>

#include "support/paths.h"
#include "support/temp_folder.h"

namespace octavo {
namespace {

using testing::read_file;

std::span<const std::byte> bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

int mode(const std::string& path) {
  struct stat status {};
  EXPECT_EQ(::stat(path.c_str(), &status), 0) << path;
  return status.st_mode & 0777;
}

Result<void> put(const PrivateFolder& folder, const std::string& name, const std::string& text) {
  OCTAVO_TRY(PrivateFolder::NewFile file, folder.create(text.size()));
  OCTAVO_CHECK_OK(file.write(bytes(text), 0));
  return file.commit(name);
}

class PrivateFolderTest : public ::testing::Test {
 protected:
  std::string path() const { return temp_.file("above/packs"); }
  PrivateFolder open() const {
    auto folder = PrivateFolder::open(path());
    EXPECT_TRUE(folder) << (folder ? "" : folder.error().message);
    return std::move(*folder);
  }
  testing::TempFolder temp_;
};

TEST_F(PrivateFolderTest, IsMadeForThisUserAlone) {
  const mode_t before = ::umask(0);
  const PrivateFolder folder = open();
  EXPECT_TRUE(put(folder, "a", "text"));
  ::umask(before);
  EXPECT_EQ(mode(path()), 0700);
  EXPECT_EQ(mode(temp_.file("above")), 0700);
  EXPECT_EQ(mode(path() + "/a"), 0600);
  const auto map = folder.map("a");
  ASSERT_TRUE(map) << map.error().message;
  EXPECT_EQ(read_file(path() + "/a"), "text");
}

TEST_F(PrivateFolderTest, WhatOthersCanWriteIsRefused) {
  const PrivateFolder folder = open();
  ASSERT_TRUE(put(folder, "a", "text"));
  for (const int bad : {0720, 0702, 0777}) {
    ASSERT_EQ(::chmod((path() + "/a").c_str(), static_cast<mode_t>(bad & 0666)), 0);
    const auto map = folder.map("a");
    ASSERT_FALSE(map);
    EXPECT_EQ(map.error().code, ErrorCode::invalid_argument);
    EXPECT_NE(map.error().message.find("can be written by others"), std::string::npos);
    ASSERT_EQ(::chmod(path().c_str(), static_cast<mode_t>(bad)), 0);
    const auto again = PrivateFolder::open(path());
    ASSERT_FALSE(again);
    EXPECT_EQ(again.error().code, ErrorCode::invalid_argument);
  }
  ASSERT_EQ(::chmod(path().c_str(), 0755), 0);
  ASSERT_EQ(::chmod((path() + "/a").c_str(), 0644), 0);
  EXPECT_TRUE(open().map("a")) << "others may read";
}

TEST_F(PrivateFolderTest, WhatAnotherUserOwnsIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  const PrivateFolder folder = open();
  ASSERT_TRUE(put(folder, "a", "text"));
  ASSERT_EQ(::chown((path() + "/a").c_str(), 12345, 12345), 0);
  const auto map = folder.map("a");
  ASSERT_FALSE(map);
  EXPECT_NE(map.error().message.find("another user"), std::string::npos) << map.error().message;
  ASSERT_EQ(::chown(path().c_str(), 12345, 12345), 0);
  const auto again = PrivateFolder::open(path());
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, ErrorCode::invalid_argument);
}

TEST_F(PrivateFolderTest, LinksAreNotFollowed) {
  const PrivateFolder folder = open();
  const std::string elsewhere = temp_.write("elsewhere", "text");
  std::filesystem::create_symlink(elsewhere, path() + "/link");
  EXPECT_FALSE(folder.map("link"));
  ASSERT_TRUE(put(folder, "link", "new"));
  EXPECT_EQ(read_file(elsewhere), "text");
  EXPECT_EQ(read_file(path() + "/link"), "new");
}

TEST_F(PrivateFolderTest, WhatIsNotCommittedIsGone) {
  const PrivateFolder folder = open();
  {
    auto file = folder.create(100);
    ASSERT_TRUE(file);
    EXPECT_TRUE(file->write(bytes("part"), 0));
    EXPECT_EQ(folder.entries().size(), 1u);
    EXPECT_TRUE(folder.entries()[0].name.starts_with(PrivateFolder::kTemporaryPrefix));
  }
  EXPECT_TRUE(folder.entries().empty());
}

TEST_F(PrivateFolderTest, AFolderThatCannotBeIsAnError) {
  const std::string file = temp_.write("file", "x");
  for (const std::string& bad : {file, file + "/below", std::string("/proc/none/packs")}) {
    const auto folder = PrivateFolder::open(bad);
    ASSERT_FALSE(folder) << bad;
    EXPECT_NE(folder.error().code, ErrorCode::invalid_argument) << folder.error().message;
  }
}

TEST_F(PrivateFolderTest, NoRoomIsAnError) {
  const auto file = open().create(uint64_t{1} << 55);
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code, ErrorCode::io_error);
  EXPECT_TRUE(open().entries().empty());
}

TEST_F(PrivateFolderTest, AReplacedFileIsNotRemoved) {
  const PrivateFolder folder = open();
  ASSERT_TRUE(put(folder, "a", "old"));
  const auto old = folder.map("a");
  ASSERT_TRUE(old);
  ASSERT_TRUE(put(folder, "a", "new"));
  folder.remove("a", old->identity());
  EXPECT_EQ(read_file(path() + "/a"), "new");
  folder.remove("a", folder.map("a")->identity());
  EXPECT_TRUE(folder.entries().empty());
}

TEST_F(PrivateFolderTest, ReadersNextToWritersSeeWholeFiles) {
  const PrivateFolder folder = open();
  const auto text = [](char c) { return std::string(100'000, c); };
  ASSERT_TRUE(put(folder, "a", text('0')));
  std::vector<std::jthread> writers;
  for (const char c : {'1', '2'})
    writers.emplace_back([&, c] {
      for (int i = 0; i < 6; ++i) EXPECT_TRUE(put(folder, "a", text(c)));
    });
  for (int i = 0; i < 20; ++i) {
    const auto map = folder.map("a");
    ASSERT_TRUE(map);
    ASSERT_EQ(map->size(), 100'000u);
    EXPECT_EQ(map->bytes().front(), map->bytes().back());
  }
  writers.clear();
  EXPECT_EQ(folder.entries().size(), 1u);
}

}  // namespace
}  // namespace octavo
