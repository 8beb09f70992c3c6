#include "formats/safetensors.h"

#include <gtest/gtest.h>

#include "support/safetensors_writer.h"

namespace octavo {
namespace {

using testing::safetensors;

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

Error error_of(const std::string& text) {
  const auto file = SafetensorsFile::parse(bytes_of(text), "m.safetensors");
  return file ? Error{ErrorCode::cancelled, "no error"} : file.error();
}

TEST(Safetensors, ReadsTensors) {
  const std::string text = safetensors(
      R"({"__metadata__":{"format":"pt"},"b":{"dtype":"BF16","shape":[2,3],"data_offsets":[4,16]},)"
      R"("a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
      std::string(16, 'x'));
  const auto file = SafetensorsFile::parse(bytes_of(text), "m.safetensors");
  ASSERT_TRUE(file) << file.error().message;
  ASSERT_EQ(file->tensors().size(), 2u);
  const TensorView* b = file->find("b");
  ASSERT_NE(b, nullptr);
  EXPECT_EQ(b->type, DType::bf16);
  EXPECT_EQ(b->cols(), 3);
  EXPECT_EQ(b->rows(), 2);
  EXPECT_EQ(b->data.size(), 12u);
  EXPECT_EQ(file->find("c"), nullptr);
}

TEST(Safetensors, RefusesWhatContradictsItself) {
  struct Case {
    const char* header;
    size_t data;
    const char* message;
  };
  const Case cases[] = {
      {R"([])", 0, "not a JSON object"},
      {R"({"a":)", 0, "not a JSON object"},
      {R"({"a":[]})", 0, "tensor 'a' is not described by an object"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":1}})", 4, "unknown field 'x'"},
      {R"({"a":{"dtype":"I32","shape":[1],"data_offsets":[0,4]}})", 4,
       "tensor 'a' is of type 'I32'"},
      {R"({"a":{"dtype":"F8_E4M3","shape":[4],"data_offsets":[0,4]}})", 4, "'F8_E4M3'"},
      {R"({"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}})", 0, "has the shape '[0]'"},
      {R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4, "has the shape"},
      {R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,4]}})", 4,
       "has the shape"},
      {R"({"a":{"dtype":"F32","shape":[1,1,1,1,1],"data_offsets":[0,4]}})", 4, "5 dimensions"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4, "needs 8 bytes"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", 4, "from 4 to 0"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0]}})", 4, "no pair"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 4, "damaged or incomplete"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 5,
       "1 bytes after its last tensor"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", 8, "leaves a gap after"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
       R"("b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
       8, "tensor 'b' overlaps 'a'"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
       R"("a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
       8, "'a' is given more than once"},
      {R"({"a":{"dtype":[[[[[]]]]]}})", 0, "nested too deep"},
  };
  for (const Case& c : cases) {
    const Error error = error_of(safetensors(c.header, std::string(c.data, '\0')));
    EXPECT_NE(error.message.find(c.message), std::string::npos) << c.header << error.message;
    EXPECT_TRUE(error.message.starts_with("m.safetensors: ")) << error.message;
  }
}

TEST(Safetensors, RefusesShortFiles) {
  const std::string whole = safetensors(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
                                        std::string(4, '\0'));
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_NE(error_of(whole.substr(0, size)).code, ErrorCode::cancelled) << size;
}

TEST(Safetensors, BoundsTheHeader) {
  EXPECT_EQ(error_of(std::string(8, '\xff')).code, ErrorCode::unsupported);
}

// Every byte of a header changed in several ways: an error or a file, never a crash.
TEST(Safetensors, SurvivesDamage) {
  const std::string whole =
      safetensors(R"({"a":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},)"
                  R"("b":{"dtype":"F16","shape":[2],"data_offsets":[8,12]}})",
                  std::string(12, '\1'));
  size_t opened = 0;
  for (size_t at = 0; at < whole.size(); ++at)
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit));
      const auto file = SafetensorsFile::parse(bytes_of(damaged), "m");
      if (!file) continue;
      ++opened;
      for (const TensorView& tensor : file->tensors()) EXPECT_LE(tensor.data.size(), 12u);
    }
  EXPECT_GE(opened, 12u * 8u);  // of the data any byte may be
}

}  // namespace
}  // namespace octavo
