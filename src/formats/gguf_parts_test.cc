#include "formats/gguf_parts.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <random>

#include "formats/gguf_part_name.h"
#include "formats/open_model.h"
#include "support/gguf_writer.h"
#include "support/paths.h"
#include "support/temp_folder.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;
using testing::GgufWriter;
using testing::TempFolder;

TEST(GgufPartName, IsReadAndWritten) {
  const auto name = parse_gguf_part_name("some/model-q4-00002-of-00005.gguf");
  ASSERT_TRUE(name);
  EXPECT_EQ(name->stem, "some/model-q4");
  EXPECT_EQ(name->number, 2u);
  EXPECT_EQ(name->count, 5u);
  EXPECT_EQ(name->of(1), "some/model-q4-00001-of-00005.gguf");
  EXPECT_EQ(name->of(5), "some/model-q4-00005-of-00005.gguf");
  for (const char* other :
       {"model.gguf", "model-00000-of-00005.gguf", "model-00006-of-00005.gguf", "model-2-of-5.gguf",
        "model-00002-of-00005.bin", "-of-.gguf", "", ".gguf", "model-0000x-of-00005.gguf",
        "model_00002-of-00005.gguf", "00002-of-00005.gguf"})
    EXPECT_FALSE(parse_gguf_part_name(other)) << other;
}

std::string values(char fill) { return std::string(32 * 4, fill); }

// What a writer of parts says in each.
GgufWriter part(uint16_t number, uint16_t count, int32_t tensors) {
  GgufWriter writer;
  writer.value("split.no", GgufType::u16, static_cast<uint16_t>(number - 1));
  writer.value("split.count", GgufType::u16, count);
  writer.value("split.tensors.count", GgufType::i32, tensors);
  return writer;
}

class GgufPartsTest : public ::testing::Test {
 protected:
  static std::string name(int number, int count = 3) {
    return GgufPartName{"m", 1, static_cast<uint32_t>(count)}.of(static_cast<uint32_t>(number));
  }
  std::string path(int number) const { return folder_.file(name(number)); }
  void write(int number, const GgufWriter& writer) { folder_.write(name(number), writer.build()); }

  // Metadata and one tensor, two tensors, one tensor.
  void write_all() {
    write(1, part(1, 3, 4).string("general.name", "parts").tensor("a", {32}, 0, values('a')));
    write(2, part(2, 3, 4).tensor("b", {32}, 0, values('b')).tensor("c", {32}, 0, values('c')));
    write(3, part(3, 3, 4).tensor("d", {32}, 0, values('d')));
  }

  void expect_refused(const std::string& path, ErrorCode code,
                      const std::vector<std::string>& words) const {
    const auto model = open_model(path);
    ASSERT_FALSE(model);
    EXPECT_EQ(model.error().code, code) << model.error().message;
    for (const std::string& word : words)
      EXPECT_NE(model.error().message.find(word), std::string::npos)
          << model.error().message << " lacks " << word;
  }

  TempFolder folder_;
};

TEST_F(GgufPartsTest, AnyPartOpensAll) {
  write_all();
  for (int number = 1; number <= 3; ++number) {
    const auto model = open_model(path(number));
    ASSERT_TRUE(model) << model.error().message;
    EXPECT_EQ((*model)->get_string("general.name"), "parts");
    EXPECT_EQ((*model)->format(), "GGUF version 3, 3 files");
    ASSERT_EQ((*model)->tensors().size(), 4u);
    std::vector<std::byte> room;
    for (const char* tensor : {"a", "b", "c", "d"}) {
      const TensorView* view = (*model)->find_tensor(tensor);
      ASSERT_NE(view, nullptr) << tensor;
      EXPECT_EQ((*model)->read(*view, room)->data.front(), static_cast<std::byte>(*tensor));
      (*model)->drop(*view);
      EXPECT_EQ(view->data.back(), static_cast<std::byte>(*tensor)) << "a dropped page comes back";
    }
    EXPECT_EQ((*model)->find_tensor("e"), nullptr);
    const auto parts = (*model)->parts();
    ASSERT_EQ(parts.size(), 3u);
    uint64_t bytes = 0;
    for (size_t i = 0; i < parts.size(); ++i) {
      EXPECT_EQ(parts[i].path, path(static_cast<int>(i) + 1));
      bytes += fs::file_size(parts[i].path);
    }
    EXPECT_EQ((*model)->size(), bytes);
  }
}

TEST_F(GgufPartsTest, TheFirstMayHaveMetadataAlone) {
  write(1, part(1, 2, 1).string("general.name", "parts"));
  fs::rename(path(1), folder_.file(name(1, 2)));
  folder_.write(name(2, 2), part(2, 2, 1).tensor("a", {32}, 0, values('a')).build());
  const auto model = open_model(folder_.file(name(2, 2)));
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_NE((*model)->find_tensor("a"), nullptr);
  EXPECT_TRUE((*model)->get_string("general.name"));
}

TEST_F(GgufPartsTest, MissingPartsAreNamed) {
  write_all();
  fs::remove(path(2));
  expect_refused(path(3), ErrorCode::not_found, {"1 of the 3 parts", "'m-00002-of-00003.gguf'"});
  fs::remove(path(1));
  expect_refused(path(3), ErrorCode::not_found,
                 {"2 of the 3 parts", "'m-00001-of-00003.gguf', 'm-00002-of-00003.gguf'"});
}

TEST_F(GgufPartsTest, PartsInEachOthersPlacesAreNamed) {
  write_all();
  fs::rename(path(2), folder_.file("x"));
  fs::rename(path(3), path(2));
  fs::rename(folder_.file("x"), path(3));
  expect_refused(path(1), ErrorCode::corrupt_file,
                 {"m-00002-of-00003.gguf", "is part 3, though its name says 2"});
}

TEST_F(GgufPartsTest, PartsOfOtherModelsAreNamed) {
  const std::string second = path(2);
  const struct {
    GgufWriter writer;
    const char* says;
  } cases[] = {
      {part(2, 4, 4).tensor("b", {32}, 0, values('b')), "is of a model of 4 parts, not of 3"},
      {part(2, 3, 9).tensor("b", {32}, 0, values('b')), "of 9 tensors, not of 4"},
      {part(2, 3, 4).tensor("a", {32}, 0, values('b')).tensor("c", {32}, 0, values('c')),
       "tensor 'a' is also in 'm-00001-of-00003.gguf'"},
      {part(2, 3, 4).tensor("b", {32}, 0, values('b')), "has 4 tensors by its first part"},
      {part(2, 3, 4).string("general.name", "other").tensor("b", {32}, 0, values('b')),
       "'general.name' at byte"},
      {GgufWriter().tensor("b", {32}, 0, values('b')), "is of a model of 1 parts"},
  };
  for (const auto& c : cases) {
    write_all();
    write(2, c.writer);
    expect_refused(path(1), ErrorCode::corrupt_file, {c.says});
  }
}

TEST_F(GgufPartsTest, APartThatIsNotNamedSoSaysWhatItShouldBe) {
  write_all();
  fs::rename(path(2), folder_.file("second.gguf"));
  expect_refused(folder_.file("second.gguf"), ErrorCode::invalid_argument,
                 {"is part 2 of 3", "NAME-00002-of-00003.gguf"});
  fs::rename(path(3), folder_.file(name(3, 4)));
  expect_refused(folder_.file(name(3, 4)), ErrorCode::invalid_argument, {"is part 3 of 3"});
}

TEST_F(GgufPartsTest, NumbersThatCannotBeAreRefused) {
  write(1, part(5, 3, 1));
  expect_refused(path(1), ErrorCode::corrupt_file, {"'split.no'", "is 4, of 3 parts"});
  write(1, GgufWriter().value<uint16_t>("split.count", GgufType::u16, 3));
  expect_refused(path(1), ErrorCode::corrupt_file, {"'split.no' is missing"});
  write(1, GgufWriter().u32("split.count", 1u << 31).u32("split.no", 0));
  expect_refused(path(1), ErrorCode::corrupt_file, {"'split.count'", "at most"});
}

TEST_F(GgufPartsTest, AFileWithTheNameOfAPartMayBeWhole) {
  folder_.write(name(2), GgufWriter().tensor("a", {32}, 0, values('a')).build());
  EXPECT_TRUE(open_model(path(2)));
  folder_.write("one.gguf", part(1, 1, 1).tensor("a", {32}, 0, values('a')).build());
  EXPECT_TRUE(open_model(folder_.file("one.gguf")));
}

// Any change to any part is refused, or all of the model can be read.
TEST_F(GgufPartsTest, MutatedParts) {
  write_all();
  std::vector<std::string> originals;
  for (int number = 1; number <= 3; ++number) originals.push_back(testing::read_file(path(number)));
  std::mt19937_64 random(7);
  int opened = 0, refused = 0;
  for (int round = 0; round < 3000; ++round) {
    const size_t which = random() % 3;
    std::string bytes = originals[which];
    for (size_t changes = 1 + random() % 3; changes > 0; --changes)
      bytes[random() % bytes.size()] = static_cast<char>(random());
    if (random() % 8 == 0) bytes.resize(random() % bytes.size());
    folder_.write(name(static_cast<int>(which) + 1), bytes);
    const auto model = open_model(path(static_cast<int>(random() % 3) + 1));
    ++(model ? opened : refused);
    if (model) {
      for (const TensorView& tensor : (*model)->tensors()) {
        EXPECT_EQ((*model)->find_tensor(tensor.name)->data.data(), tensor.data.data());
        (*model)->drop(tensor);
      }
    } else {
      EXPECT_FALSE(model.error().message.empty());
    }
    folder_.write(name(static_cast<int>(which) + 1), originals[which]);
  }
  EXPECT_GT(opened, 100);
  EXPECT_GT(refused, 100);
}

}  // namespace
}  // namespace octavo
