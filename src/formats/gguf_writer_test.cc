#include "formats/gguf_writer.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <optional>

#include "formats/gguf.h"
#include "support/gguf_writer.h"
#include "support/paths.h"
#include "support/temp_folder.h"

namespace octavo {
namespace {

using testing::TempFolder;

std::vector<GgufTensorRow> two_tensors() {
  return {{.name = "a.weight", .type = DType::f32, .shape = {3, 2, 1, 1}, .rank = 2},
          {.name = "b.weight", .type = DType::q8_0, .shape = {32, 1, 1, 1}, .rank = 1}};
}

size_t num_files(const TempFolder& folder) {
  const auto path = std::filesystem::path(folder.file("x")).parent_path();
  return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(path), {}));
}

Result<void> write_two(const std::string& path, const GgufPairs& pairs, bool overwrite = false,
                       uint64_t alignment = 32) {
  OCTAVO_TRY(GgufFileWriter writer,
             GgufFileWriter::create(path, overwrite, pairs, two_tensors(), alignment));
  const std::vector<std::byte> a(24, std::byte{1}), b(34, std::byte{2});
  OCTAVO_CHECK_OK(writer.append(std::span(a).first(7)));
  OCTAVO_CHECK_OK(writer.append(std::span(a).subspan(7)));
  OCTAVO_CHECK_OK(writer.append(b));
  return writer.finish();
}

TEST(GgufFileWriter, WhatItWritesIsReadBack) {
  const TempFolder folder;
  GgufPairs pairs;
  pairs.set_string("general.architecture", "llama");
  pairs.set_u32("general.alignment", 64);
  ASSERT_TRUE(write_two(folder.file("m.gguf"), pairs, false, 64));
  const auto file = GgufFile::open(folder.file("m.gguf"));
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->version(), 3u);
  EXPECT_EQ(file->alignment(), 64u);
  EXPECT_EQ(file->get_string("general.architecture").value(), "llama");
  ASSERT_EQ(file->tensors().size(), 2u);
  const TensorView& a = file->tensors()[0];
  EXPECT_EQ(a.name, "a.weight");
  EXPECT_EQ(a.type, DType::f32);
  EXPECT_EQ(a.rank, 2);
  EXPECT_EQ(a.shape, (std::array<int64_t, 4>{3, 2, 1, 1}));
  EXPECT_EQ(a.data[23], std::byte{1});
  EXPECT_EQ(file->tensors()[1].type, DType::q8_0);
  EXPECT_EQ(file->tensors()[1].data[33], std::byte{2});
  EXPECT_EQ(file->size() % 64, 0u);
  EXPECT_EQ(num_files(folder), 1u);
}

TEST(GgufFileWriter, CopiesPairsOfEveryKind) {
  testing::GgufWriter original;
  std::string nested;
  testing::put(nested, uint32_t{4});
  testing::put(nested, uint64_t{1});
  testing::put(nested, uint32_t{9});
  original.u32("u", 7)
      .f32("f", 0.5f)
      .boolean("b", true)
      .string("s", "text")
      .strings("ss", {"a", "", "ccc"})
      .array<int32_t>("is", GgufType::i32, {1, -2})
      .raw_array("nested", 9, 1, nested);
  const std::string bytes = original.build();
  const auto before = GgufFile::parse(testing::as_bytes(bytes), "before");
  ASSERT_TRUE(before) << before.error().message;
  GgufPairs pairs;
  for (const GgufEntry& entry : before->metadata()) pairs.copy(entry);
  const TempFolder folder;
  ASSERT_TRUE(write_two(folder.file("m.gguf"), pairs));
  const auto after = GgufFile::open(folder.file("m.gguf"));
  ASSERT_TRUE(after) << after.error().message;
  ASSERT_EQ(after->metadata().size(), before->metadata().size());
  for (size_t i = 0; i < after->metadata().size(); ++i) {
    const GgufEntry &x = before->metadata()[i], &y = after->metadata()[i];
    EXPECT_EQ(x.key, y.key);
    EXPECT_EQ(x.type, y.type);
    EXPECT_EQ(x.element, y.element);
    EXPECT_EQ(x.count, y.count);
    EXPECT_TRUE(std::equal(x.value.begin(), x.value.end(), y.value.begin(), y.value.end()))
        << x.key;
  }
}

TEST(GgufFileWriter, PairsOfEveryKindAreSet) {
  GgufPairs pairs;
  pairs.set_bool("b", true);
  pairs.set_i32s("is", std::vector<int32_t>{1, -2});
  pairs.set_f32s("fs", std::vector<float>{0.5f});
  StringTable texts;
  for (const char* text : {"a", "", "ccc"}) texts.push_back(text);
  pairs.set_strings("ss", texts);
  const TempFolder folder;
  ASSERT_TRUE(write_two(folder.file("m.gguf"), pairs));
  const auto file = GgufFile::open(folder.file("m.gguf"));
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->get_bool("b").value(), true);
  EXPECT_EQ(file->get_i32s("is").value(), (std::vector<int32_t>{1, -2}));
  EXPECT_EQ(file->get_f32s("fs").value(), std::vector<float>{0.5f});
  const StringTable read = file->get_strings("ss").value();
  ASSERT_EQ(read.size(), 3u);
  EXPECT_EQ(read[1], "");
  EXPECT_EQ(read[2], "ccc");
}

TEST(GgufFileWriter, APairThatIsSetTwiceIsThereOnce) {
  GgufPairs pairs;
  pairs.set_u32("general.file_type", 1);
  pairs.set_string("x", "y");
  pairs.set_u32("general.file_type", 7);
  EXPECT_EQ(pairs.size(), 2u);
  const TempFolder folder;
  ASSERT_TRUE(write_two(folder.file("m.gguf"), pairs));
  EXPECT_EQ(GgufFile::open(folder.file("m.gguf"))->get_u32("general.file_type").value(), 7u);
}

TEST(GgufFileWriter, LeavesNothingWithoutFinish) {
  const TempFolder folder;
  {
    auto writer = GgufFileWriter::create(folder.file("m.gguf"), false, {}, two_tensors());
    ASSERT_TRUE(writer);
    EXPECT_EQ(num_files(folder), 1u);
    EXPECT_FALSE(std::filesystem::exists(folder.file("m.gguf")));
    const auto early = writer->finish();
    ASSERT_FALSE(early);
    EXPECT_EQ(early.error().code, ErrorCode::io_error);
  }
  EXPECT_EQ(num_files(folder), 0u);
}

TEST(GgufFileWriter, ReplacesAFileOnlyWhenAsked) {
  const TempFolder folder;
  const std::string path = folder.write("m.gguf", "old");
  const auto refused = write_two(path, {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument);
  EXPECT_NE(refused.error().message.find("--overwrite"), std::string::npos);
  EXPECT_EQ(testing::read_file(path), "old");
  ASSERT_TRUE(write_two(path, {}, true));
  EXPECT_TRUE(GgufFile::open(path));
}

TEST(GgufFileWriter, AFileThatCameMeanwhileIsKept) {
  const TempFolder folder;
  auto writer = GgufFileWriter::create(folder.file("m.gguf"), false, {}, {});
  ASSERT_TRUE(writer);
  folder.write("m.gguf", "another's");
  const auto refused = writer->finish();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(testing::read_file(folder.file("m.gguf")), "another's");
}

TEST(GgufFileWriter, WhatAKilledRunLeftIsRemoved) {
  const TempFolder folder;
  folder.write(".m.gguf.4194303.part", "left");
  folder.write(".m.gguf.part", "another's");
  folder.write(".n.gguf.7.part", "another's");
  folder.write(".m.gguf.x7.part", "another's");
  ASSERT_TRUE(write_two(folder.file("m.gguf"), {}));
  EXPECT_FALSE(std::filesystem::exists(folder.file(".m.gguf.4194303.part")));
  EXPECT_EQ(num_files(folder), 4u);
}

TEST(GgufFileWriter, WhatARunIsWritingIsKept) {
  const TempFolder folder;
  auto first = GgufFileWriter::create(folder.file("m.gguf"), false, {}, {});
  ASSERT_TRUE(first);
  const std::string part = fmt::format(".m.gguf.{}.part", ::getpid());
  std::filesystem::rename(folder.file(part), folder.file(".m.gguf.4194303.part"));
  ASSERT_TRUE(write_two(folder.file("m.gguf"), {}));
  EXPECT_TRUE(std::filesystem::exists(folder.file(".m.gguf.4194303.part")));
}

TEST(GgufFileWriter, RefusesPlacesThatCannotBe) {
  const TempFolder folder;
  const auto code = [](const std::string& path) {
    return GgufFileWriter::create(path, true, {}, {}).error().code;
  };
  EXPECT_EQ(code(folder.file("none/m.gguf")), ErrorCode::not_found);
  EXPECT_EQ(code(std::filesystem::path(folder.file("x")).parent_path()),
            ErrorCode::invalid_argument);
  EXPECT_EQ(code("/dev/null"), ErrorCode::invalid_argument);
  const std::vector<GgufTensorRow> huge = {
      {.name = "huge", .type = DType::f32, .shape = {int64_t{1} << 55, 1, 1, 1}, .rank = 1}};
  const auto no_room = GgufFileWriter::create(folder.file("m.gguf"), false, {}, huge);
  ASSERT_FALSE(no_room);
  EXPECT_EQ(no_room.error().code, ErrorCode::resource_exhausted);
  EXPECT_EQ(num_files(folder), 0u);
}

}  // namespace
}  // namespace octavo
