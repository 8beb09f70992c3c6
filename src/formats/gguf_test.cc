#include "formats/gguf.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/gguf_writer.h"

namespace octavo {
namespace {

using testing::as_bytes;
using testing::GgufWriter;
using testing::put;
using testing::put_text;

// Owns the bytes that the file looks into.
struct Parsed {
  std::string bytes;
  Result<GgufFile> file;

  explicit Parsed(const GgufWriter& writer)
      : bytes(writer.build()), file(GgufFile::parse(as_bytes(bytes), "model.gguf")) {}
};

GgufWriter all_types() {
  GgufWriter w;
  w.value<uint8_t>("u8", GgufType::u8, 200);
  w.value<int8_t>("i8", GgufType::i8, -100);
  w.value<uint16_t>("u16", GgufType::u16, 60000);
  w.value<int16_t>("i16", GgufType::i16, -30000);
  w.value<uint32_t>("u32", GgufType::u32, 4000000000u);
  w.value<int32_t>("i32", GgufType::i32, -2000000000);
  w.value<uint64_t>("u64", GgufType::u64, std::numeric_limits<uint64_t>::max());
  w.value<int64_t>("i64", GgufType::i64, std::numeric_limits<int64_t>::min());
  w.f32("f32", 0.5f);
  w.value<double>("f64", GgufType::f64, -0.25);
  w.boolean("true", true).boolean("false", false);
  w.string("string", "na\xc3\xafve \x1b[2J").string("empty", "");
  w.array<uint16_t>("u16s", GgufType::u16, {1, 2, 65535});
  w.array<float>("f32s", GgufType::f32, {1.5f, -HUGE_VALF});
  w.array<double>("f64s", GgufType::f64, {0.125, 1e300});
  w.array<uint8_t>("bools", GgufType::boolean, {1, 0, 1});
  w.strings("strings", {"a", "", "ccc"}).strings("none", {});
  return w;
}

TEST(GgufMetadata, PrintsEveryType) {
  const Parsed parsed(all_types());
  ASSERT_TRUE(parsed.file) << parsed.file.error().message;
  const struct {
    const char *key, *type, *value;
  } cases[] = {
      {"u8", "u8", "200"},
      {"i8", "i8", "-100"},
      {"u16", "u16", "60000"},
      {"i16", "i16", "-30000"},
      {"u32", "u32", "4000000000"},
      {"i32", "i32", "-2000000000"},
      {"u64", "u64", "18446744073709551615"},
      {"i64", "i64", "-9223372036854775808"},
      {"f32", "f32", "0.5"},
      {"f64", "f64", "-0.25"},
      {"true", "bool", "true"},
      {"false", "bool", "false"},
      {"string", "string", "'na\\xc3\\xafve \\x1b[2J'"},
      {"empty", "string", "''"},
      {"u16s", "u16[3]", "u16[3]"},
      {"strings", "string[3]", "string[3]"},
  };
  for (const auto& c : cases) {
    const GgufEntry* entry = parsed.file->find(c.key);
    ASSERT_NE(entry, nullptr) << c.key;
    EXPECT_EQ(type_text(*entry), c.type) << c.key;
    EXPECT_EQ(value_text(*entry), c.value) << c.key;
  }
  EXPECT_EQ(value_text(*parsed.file->find("string"), 2), "'na'...");
  EXPECT_EQ(parsed.file->metadata().size(), 20u);
  EXPECT_EQ(parsed.file->metadata()[0].key, "u8") << "the order of the file is kept";
}

TEST(GgufMetadata, IntegersOfAnyWidthConvertIfTheyFit) {
  const Parsed parsed(all_types());
  ASSERT_TRUE(parsed.file);
  const GgufFile& f = *parsed.file;
  EXPECT_EQ(f.get_u64("u8").value(), 200u);
  EXPECT_EQ(f.get_u64("u64").value(), std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(f.get_u32("u16").value(), 60000u);
  EXPECT_EQ(f.get_i32("i8").value(), -100);
  EXPECT_EQ(f.get_i32("i32").value(), -2000000000);
  EXPECT_FALSE(f.get_u64("i8")) << "negative";
  EXPECT_FALSE(f.get_i32("u32"));
  EXPECT_FALSE(f.get_u32("u64"));
  EXPECT_FALSE(f.get_u32("f32"));
  EXPECT_FALSE(f.get_u32("true")) << "a bool is no integer";
  EXPECT_FALSE(f.get_u32("u16s"));
  EXPECT_EQ(f.get_u32s("u16s").value(), (std::vector<uint32_t>{1, 2, 65535}));
  EXPECT_EQ(f.get_i32s("u16s").value(), (std::vector<int32_t>{1, 2, 65535}));
  EXPECT_FALSE(f.get_i32s("f32s"));
  EXPECT_FALSE(f.get_i32s("u8")) << "no array";
}

TEST(GgufMetadata, OtherTypesConvertToNothing) {
  const Parsed parsed(all_types());
  ASSERT_TRUE(parsed.file);
  const GgufFile& f = *parsed.file;
  EXPECT_EQ(f.get_f32("f32").value(), 0.5f);
  EXPECT_EQ(f.get_f32("f64").value(), -0.25f);
  EXPECT_FALSE(f.get_f32("u8"));
  EXPECT_TRUE(f.get_bool("true").value());
  EXPECT_FALSE(f.get_bool("false").value());
  EXPECT_FALSE(f.get_bool("u8"));
  EXPECT_EQ(f.get_string("empty").value(), "");
  EXPECT_FALSE(f.get_string("strings"));
  EXPECT_EQ(f.get_f32s("f32s").value(), (std::vector<float>{1.5f, -HUGE_VALF}));
  EXPECT_EQ(f.get_f32s("f64s").value(), (std::vector<float>{0.125f, HUGE_VALF}));
  EXPECT_EQ(f.get_bools("bools").value(), (std::vector<bool>{true, false, true}));
  const auto strings = f.get_strings("strings");
  ASSERT_TRUE(strings);
  ASSERT_EQ(strings->size(), 3u);
  EXPECT_EQ((*strings)[0], "a");
  EXPECT_EQ((*strings)[1], "");
  EXPECT_EQ((*strings)[2], "ccc");
  EXPECT_TRUE(f.get_strings("none").value().empty());
  EXPECT_FALSE(f.get_strings("string"));
}

TEST(GgufMetadata, NonFiniteParametersAreRefused) {
  GgufWriter w;
  w.f32("nan", NAN).f32("inf", HUGE_VALF).value<double>("large", GgufType::f64, -1e300);
  const Parsed parsed(w);
  ASSERT_TRUE(parsed.file);
  for (const char* key : {"nan", "inf", "large"}) EXPECT_FALSE(parsed.file->get_f32(key)) << key;
}

TEST(GgufMetadata, AbsentIsNothingOnlyForFind) {
  const Parsed parsed(all_types());
  ASSERT_TRUE(parsed.file);
  const GgufFile& f = *parsed.file;
  EXPECT_EQ(f.find_u32("absent").value(), std::nullopt);
  EXPECT_EQ(f.find_string("absent").value(), std::nullopt);
  EXPECT_EQ(f.find_bool("absent").value(), std::nullopt);
  EXPECT_EQ(f.find_u32("u16").value(), 60000u);
  EXPECT_FALSE(f.find_u32("string")) << "present, but of a wrong type";
  EXPECT_FALSE(f.find_f32("u8"));
  const auto absent = f.get_u32("llama.block_count");
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().code, ErrorCode::corrupt_file);
  EXPECT_NE(absent.error().message.find("model.gguf: metadata key 'llama.block_count' is missing"),
            std::string::npos)
      << absent.error().message;
}

TEST(GgufMetadata, ErrorsNameFileKeyByteAndValue) {
  const Parsed parsed(GgufWriter().value<int32_t>("k", GgufType::i32, -7));
  ASSERT_TRUE(parsed.file);
  const auto got = parsed.file->get_u32("k");
  ASSERT_FALSE(got);
  // Header 24, key length 8, key 1, type 4.
  EXPECT_EQ(got.error().message,
            "model.gguf: metadata key 'k' at byte 37 is -7, expected an integer from 0 to "
            "4294967295");
}

TEST(GgufFile, VersionsTwoAndThree) {
  for (const uint32_t version : {2u, 3u}) {
    GgufWriter w = all_types();
    w.version = version;
    const Parsed parsed(w);
    ASSERT_TRUE(parsed.file) << parsed.file.error().message;
    EXPECT_EQ(parsed.file->version(), version);
  }
}

TEST(GgufFile, NoTensorsIsAVocabularyFile) {
  const Parsed parsed(GgufWriter().u32("a", 1));
  ASSERT_TRUE(parsed.file);
  EXPECT_TRUE(parsed.file->tensors().empty());
  EXPECT_EQ(parsed.file->find_tensor("x"), nullptr);
  const Parsed empty{GgufWriter()};
  EXPECT_TRUE(empty.file) << "24 bytes of header and nothing else";
}

TEST(GgufFile, TensorsAreViewsOfTheirBytes) {
  GgufWriter w;
  w.tensor("vector", {3}, 0, std::string(12, 'v'));
  w.tensor("matrix", {64, 2}, 3, std::string(80, 'm'));
  w.tensor("cube", {1, 2, 3, 2}, 1, std::string(24, 'c'));
  const Parsed parsed(w);
  ASSERT_TRUE(parsed.file) << parsed.file.error().message;
  ASSERT_EQ(parsed.file->tensors().size(), 3u);
  const TensorView* matrix = parsed.file->find_tensor("matrix");
  ASSERT_NE(matrix, nullptr);
  EXPECT_EQ(matrix->name, "matrix");
  EXPECT_EQ(matrix->type, DType::q4_1);
  EXPECT_EQ(matrix->rank, 2);
  EXPECT_EQ(matrix->cols(), 64);
  EXPECT_EQ(matrix->rows(), 2);
  ASSERT_EQ(matrix->data.size(), 80u);
  EXPECT_EQ(static_cast<char>(matrix->data[0]), 'm');
  EXPECT_EQ(static_cast<char>(matrix->data[79]), 'm');
  const TensorView* cube = parsed.file->find_tensor("cube");
  ASSERT_NE(cube, nullptr);
  EXPECT_EQ(cube->shape, (std::array<int64_t, 4>{1, 2, 3, 2}));
  EXPECT_EQ(cube->rows(), 12);
}

TEST(GgufFile, HonoursTheAlignmentOfTheFile) {
  for (const uint32_t alignment : {8u, 64u, 4096u}) {
    GgufWriter w;
    w.alignment = alignment;
    w.u32("general.alignment", alignment);
    w.tensor("a", {1}, 0, "aaaa").tensor("b", {1}, 0, "bbbb");
    const Parsed parsed(w);
    ASSERT_TRUE(parsed.file) << parsed.file.error().message;
    EXPECT_EQ(parsed.file->alignment(), alignment);
    EXPECT_EQ(parsed.file->data_offset() % alignment, 0u);
    EXPECT_EQ(static_cast<char>(parsed.file->find_tensor("b")->data[0]), 'b');
  }
}

TEST(GgufFile, MovingKeepsEverythingValid) {
  Parsed parsed(all_types().tensor("t", {1}, 0, "data"));
  ASSERT_TRUE(parsed.file);
  const TensorView* before = parsed.file->find_tensor("t");
  const GgufFile moved = std::move(*parsed.file);
  EXPECT_EQ(moved.find_tensor("t"), before);
  EXPECT_EQ(moved.get_u32("u8").value(), 200u);
  moved.drop(*before);  // nothing is mapped: has no effect
  EXPECT_EQ(static_cast<char>(before->data[0]), 'd');
}

TEST(GgufFile, NestedArraysAreAccepted) {
  std::string inner;  // two arrays of u8: {1, 2} and {}
  put<uint32_t>(inner, 0);
  put<uint64_t>(inner, 2);
  inner += "\x01\x02";
  put<uint32_t>(inner, 0);
  put<uint64_t>(inner, 0);
  GgufWriter w;
  w.raw_array("nested", 9, 2, inner).u32("after", 5);
  const Parsed parsed(w);
  ASSERT_TRUE(parsed.file) << parsed.file.error().message;
  EXPECT_EQ(type_text(*parsed.file->find("nested")), "array[2]");
  EXPECT_EQ(parsed.file->get_u32("after").value(), 5u);
}

}  // namespace
}  // namespace octavo
