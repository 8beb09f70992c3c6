// Files that are wrong, by accident or on purpose. None may crash, none may make the loader
// allocate much.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <limits>
#include <new>
#include <random>

#include "formats/gguf.h"
#include "formats/gguf_tokenizer.h"
#include "support/gguf_writer.h"
#include "support/paths.h"

namespace {

std::atomic<size_t> allocated_bytes = 0;

void* counted_allocation(size_t size) {
  allocated_bytes += size;
  if (void* p = std::malloc(size ? size : 1)) return p;
  throw std::bad_alloc();
}

}  // namespace

// Replaced in this test program to see how much a file makes the loader ask for.
void* operator new(size_t size) { return counted_allocation(size); }
void* operator new[](size_t size) { return counted_allocation(size); }
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  allocated_bytes += size;
  return std::malloc(size ? size : 1);
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, size_t) noexcept { std::free(p); }
void operator delete[](void* p, size_t) noexcept { std::free(p); }

namespace octavo {
namespace {

using testing::as_bytes;
using testing::GgufWriter;
using testing::put;
using testing::put_text;

constexpr uint64_t kHuge = std::numeric_limits<uint64_t>::max();
constexpr uint32_t kF32 = 0;
constexpr uint32_t kQ4_0 = 2;

std::string le(uint64_t value) {
  std::string out;
  put(out, value);
  return out;
}

std::string nested_arrays(int depth) {
  std::string out;
  for (int i = 0; i < depth; ++i) {
    put<uint32_t>(out, 9);
    put<uint64_t>(out, 1);
  }
  put<uint32_t>(out, 0);
  put<uint64_t>(out, 0);
  return out;
}

GgufWriter with_magic(uint32_t magic, uint32_t version) {
  GgufWriter w;
  w.magic = magic;
  w.version = version;
  return w;
}

GgufWriter with_counts(int64_t tensors, int64_t metadata) {
  GgufWriter w;
  w.u32("a", 1);
  w.extra_tensor_count = tensors;
  w.extra_metadata_count = metadata;
  return w;
}

GgufWriter one_tensor(const std::vector<uint64_t>& dims, uint32_t type, uint64_t offset) {
  return GgufWriter().tensor_info("t", dims, type, offset).data(std::string(64, 'd'));
}

GgufWriter aligned_to(uint32_t alignment) {
  return GgufWriter().u32("general.alignment", alignment).tensor("t", {1}, kF32, "data");
}

std::string tokens_array(uint64_t count, std::string_view elements) {
  return GgufWriter().raw_array("tokens", 8, count, elements).build();
}

struct Case {
  const char* name;
  std::string bytes;
  ErrorCode code;
  const char* says;
};

constexpr ErrorCode kCorrupt = ErrorCode::corrupt_file;
constexpr ErrorCode kUnsupported = ErrorCode::unsupported;

std::vector<Case> header_cases() {
  return {
      {"empty", "", kCorrupt, "GGUF magic at byte 0 needs 4 bytes"},
      {"three bytes", "GGU", kCorrupt, "only 3 of the file's 3 are left"},
      {"wrong magic", with_magic(0x46464947, 3).build(), kCorrupt, "magic at byte 0 is 0x46464947"},
      {"swapped magic", with_magic(0x47475546, 3).build(), kUnsupported, "big-endian"},
      {"swapped version", with_magic(0x46554747, 0x03000000).build(), kUnsupported, "big-endian"},
      {"version 0", with_magic(0x46554747, 0).build(), kUnsupported, "version at byte 4 is 0;"},
      {"version 1", with_magic(0x46554747, 1).build(), kUnsupported, "version at byte 4 is 1;"},
      {"version 4", with_magic(0x46554747, 4).build(), kUnsupported, "version at byte 4 is 4;"},
      {"tensors 2^63", with_counts(std::numeric_limits<int64_t>::min(), 0).build(), kCorrupt,
       "tensor count at byte 8 is 9223372036854775808"},
      {"tensors 2", with_counts(2, 0).build(), kCorrupt, "tensor count at byte 8 is 2"},
      {"pairs 2^40", with_counts(0, (int64_t{1} << 40) - 1).build(), kCorrupt,
       "metadata count at byte 16 is 1099511627776"},
      {"pairs -1", with_counts(0, -2).build(), kCorrupt, "metadata count at byte 16 is 184"},
  };
}

std::vector<Case> metadata_cases() {
  GgufWriter split;
  split.value<uint16_t>("split.no", GgufType::u16, 0)
      .value<uint16_t>("split.count", GgufType::u16, 2);
  return {
      {"key length 2^64-1", GgufWriter().build().substr(0, 16) + le(1) + le(kHuge) + le(0),
       kCorrupt, "metadata key at byte 32 needs 18446744073709551615 bytes"},
      {"empty key", GgufWriter().u32("", 1).build(), kCorrupt,
       "metadata key at byte 24 has 0 bytes"},
      {"long key", GgufWriter().u32(std::string(65536, 'k'), 1).build(), kCorrupt,
       "has 65536 bytes"},
      {"key twice", GgufWriter().u32("a", 1).u32("b", 2).u32("a", 1).build(), kCorrupt,
       "metadata key 'a' at byte"},
      {"value type 13", GgufWriter().raw("k", 13, le(0)).build(), kCorrupt,
       "value of metadata key 'k' at byte 33 has the unknown value type 13"},
      {"value type 99", GgufWriter().raw("k", 99, le(0)).build(), kCorrupt, "value type 99"},
      {"element type 99", GgufWriter().raw_array("k", 99, 1, le(0)).build(), kCorrupt,
       "value type 99"},
      {"string 2^64-1", GgufWriter().raw("k", 8, le(kHuge)).build(), kCorrupt,
       "needs 18446744073709551615 bytes"},
      {"string one too long", GgufWriter().raw("k", 8, le(3) + "ab").build(), kCorrupt,
       "needs 3 bytes, but only 2"},
      {"array wraps to 0 bytes", GgufWriter().raw_array("k", 10, uint64_t{1} << 61, le(0)).build(),
       kCorrupt, "array length of key 'k' at byte 41 is 2305843009213693952"},
      {"array 2^64-1 bytes", GgufWriter().raw_array("k", 0, kHuge, le(0)).build(), kCorrupt,
       "is 18446744073709551615"},
      {"array of too many strings", tokens_array(3, le(0) + le(0)), kCorrupt, "array length"},
      {"string in array too long", tokens_array(2, le(0) + le(1)), kCorrupt,
       "value of metadata key 'tokens' at byte"},
      {"arrays nested deeply", GgufWriter().raw("k", 9, nested_arrays(10000)).build(), kUnsupported,
       "nests arrays deeper than 8 levels"},
      {"arrays nested, cut", GgufWriter().raw("k", 9, nested_arrays(3)).build().substr(0, 60),
       kCorrupt, "array length of key 'k'"},
      {"bool 2", GgufWriter().raw("k", 7, "\x02").build(), kCorrupt,
       "is 2, expected 0 or 1 for a bool"},
      {"bool in array", GgufWriter().raw_array("k", 7, 2, "\x01\x03").build(), kCorrupt,
       "at byte 50 is 3"},
      {"control characters", GgufWriter().raw("k\x1b[31m\n", 99, le(0)).build(), kCorrupt,
       "'k\\x1b[31m\\x0a'"},
      {"alignment 0", aligned_to(0).build(), kCorrupt, "'general.alignment' at byte 53 is 0"},
      {"alignment 3", aligned_to(3).build(), kCorrupt, "is 3, expected a power of two"},
      {"alignment 4", aligned_to(4).build(), kCorrupt, "is 4, expected a power of two from 8"},
      {"alignment 2^63",
       GgufWriter().value<uint64_t>("general.alignment", GgufType::u64, uint64_t{1} << 63).build(),
       kCorrupt, "is u64, expected u32"},
      {"alignment a string", GgufWriter().string("general.alignment", "32").build(), kCorrupt,
       "is string, expected u32"},
      {"alignment beyond the file", aligned_to(1u << 31).build(), kCorrupt,
       "(from byte 2147483648) needs 4 bytes, but the file has 0"},
      {"part 1 of 2", split.build(), kUnsupported, "is part 1 of 2 of a model in several files"},
      {"parts of a wrong type", GgufWriter().string("split.count", "2").build(), kCorrupt,
       "'split.count' at byte"},
  };
}

std::vector<Case> tensor_cases() {
  GgufWriter twice;
  twice.tensor("t", {1}, kF32, "data")
      .tensor("u", {1}, kF32, "data")
      .tensor("t", {1}, kF32, "data");
  GgufWriter overlap;
  overlap.tensor_info("a", {16}, kF32, 0)
      .tensor_info("b", {1}, kF32, 32)
      .data(std::string(64, 'd'));
  GgufWriter same;
  same.tensor_info("a", {8}, kF32, 0).tensor_info("b", {8}, kF32, 0).data(std::string(64, 'd'));
  const uint64_t big = uint64_t{1} << 62;
  return {
      {"name 65 bytes", GgufWriter().tensor(std::string(65, 'n'), {1}, kF32, "data").build(),
       kCorrupt, "tensor name at byte 24 has 65 bytes"},
      {"no name", GgufWriter().tensor("", {1}, kF32, "data").build(), kCorrupt, "has 0 bytes"},
      {"no dimensions", one_tensor({}, kF32, 0).build(), kCorrupt,
       "'t' at byte 33 has 0 dimensions"},
      {"5 dimensions", one_tensor({1, 1, 1, 1, 1}, kF32, 0).build(), kCorrupt, "has 5 dimensions"},
      {"9 dimensions", one_tensor({1, 1, 1, 1, 1, 1, 1, 1, 1}, kF32, 0).build(), kCorrupt,
       "has 9 dimensions"},
      {"dimension 0", one_tensor({4, 0}, kF32, 0).build(), kCorrupt, "size 0 in dimension 1"},
      {"dimension 2^63", one_tensor({uint64_t{1} << 63}, kF32, 0).build(), kCorrupt,
       "size 9223372036854775808 in dimension 0"},
      {"product wraps to 4", one_tensor({big + 1, 4}, kF32, 0).build(), kCorrupt,
       "impossible shape"},
      {"product wraps to 0", one_tensor({uint64_t{1} << 32, uint64_t{1} << 32}, kF32, 0).build(),
       kCorrupt, "impossible shape"},
      {"bytes wrap to 4", one_tensor({big + 1}, kF32, 0).build(), kCorrupt, "impossible shape"},
      {"row cuts a block", one_tensor({33}, kQ4_0, 0).build(), kCorrupt,
       "rows of 33 values, which is no multiple of q4_0's block of 32"},
      {"rows cut a block", one_tensor({16, 2}, kQ4_0, 0).build(), kCorrupt, "rows of 16 values"},
      {"type 255", one_tensor({1}, 255, 0).build(), kCorrupt, "unknown tensor type 255"},
      {"removed type 4", one_tensor({32}, 4, 0).build(), kCorrupt, "unknown tensor type 4"},
      {"type iq4_nl", one_tensor({32}, 20, 0).build(), kUnsupported, "the type iq4_nl (number 20)"},
      {"offset near 2^64", one_tensor({4}, kF32, kHuge - 31).build(), kCorrupt,
       "needs 16 bytes, but the file has 0 bytes from there"},
      {"offset 4", one_tensor({4}, kF32, 4).build(), kCorrupt, "is not aligned to 32 bytes"},
      {"one value too many", one_tensor({17}, kF32, 0).build(), kCorrupt,
       "tensor 't': data at offset 0 (from byte 64) needs 68 bytes, but the file has 64 bytes"},
      {"name twice", twice.build(), kCorrupt, "tensor 't' is given more than once"},
      {"overlap", overlap.build(), kCorrupt,
       "tensor 'b': data at offset 32 (from byte 96) overlaps tensor 'a', which has 64 bytes"},
      {"same place", same.build(), kCorrupt, "overlaps tensor"},
  };
}

// Enough for the longest message; what a file of this size may make the loader allocate besides.
constexpr size_t kAllowance = size_t{64} << 10;

void expect_refused(const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    const size_t before = allocated_bytes;
    const auto file = GgufFile::parse(as_bytes(c.bytes), "model.gguf");
    const size_t used = allocated_bytes - before;
    ASSERT_FALSE(file) << c.name;
    const std::string& message = file.error().message;
    EXPECT_EQ(file.error().code, c.code) << c.name << ": " << message;
    EXPECT_EQ(message.rfind("model.gguf: ", 0), 0u) << c.name << ": " << message;
    EXPECT_NE(message.find(c.says), std::string::npos) << c.name << ": " << message;
    EXPECT_LE(used, c.bytes.size() + kAllowance) << c.name;
  }
}

TEST(GgufHostile, Headers) { expect_refused(header_cases()); }
TEST(GgufHostile, Metadata) { expect_refused(metadata_cases()); }
TEST(GgufHostile, Tensors) { expect_refused(tensor_cases()); }

TEST(GgufHostile, EveryTruncationIsRefused) {
  GgufWriter w;
  w.string("s", "text").strings("list", {"a", "bb"}).u32("n", 1);
  w.tensor("a", {8}, kF32, std::string(32, 'a')).tensor("b", {32, 2}, kQ4_0, std::string(36, 'b'));
  const std::string whole = w.build();
  ASSERT_TRUE(GgufFile::parse(as_bytes(whole), "f"));
  for (size_t size = 0; size < whole.size(); ++size)
    ASSERT_FALSE(GgufFile::parse(as_bytes(whole).first(size), "f")) << size;
}

TEST(GgufHostile, TheRealModelTruncatedSaysWhatIsMissing) {
  const auto map = FileMap::open(testing::smollm2_path());
  ASSERT_TRUE(map) << map.error().message;
  const struct {
    size_t size;
    const char* says;
  } cases[] = {
      {20, "metadata count at byte 16 needs 8 bytes"},
      {1000000, "tokenizer.ggml"},
      {1785664, "tensor 'token_embd.weight': data at offset 0 (from byte 1785664) needs 30081024"},
      {50000000, "but the file has"},
      {map->size() - 1, "fetch it again"},
  };
  for (const auto& c : cases) {
    const auto file = GgufFile::parse(map->bytes().first(c.size), "cut.gguf");
    ASSERT_FALSE(file) << c.size;
    EXPECT_EQ(file.error().code, ErrorCode::corrupt_file);
    EXPECT_NE(file.error().message.find(c.says), std::string::npos) << file.error().message;
  }
}

// ---- mutations ----

// What must hold for every file that opens. Touches the ends of every tensor and every value.
void expect_sound(const GgufFile& file, std::span<const std::byte> bytes) {
  for (const TensorView& t : file.tensors()) {
    ASSERT_GE(t.data.data(), bytes.data());
    ASSERT_LE(t.data.data() + t.data.size(), bytes.data() + bytes.size());
    ASSERT_GE(t.cols(), 1);
    ASSERT_GE(t.rows(), 1);
    ASSERT_EQ(t.data.size(),
              row_bytes(t.type, static_cast<size_t>(t.cols())) * static_cast<size_t>(t.rows()));
    ASSERT_EQ(file.find_tensor(t.name), &t);
  }
  size_t printed = 0;
  for (const GgufEntry& entry : file.metadata()) printed += value_text(entry).size();
  ASSERT_GE(printed, file.metadata().size());
}

// Bytes that hold numbers: header, lengths, types, small values, the tensor table.
std::vector<size_t> number_positions(const GgufFile& file, std::span<const std::byte> bytes) {
  std::vector<size_t> positions;
  const auto add = [&](size_t from, size_t to) {
    for (size_t p = from; p < to; ++p) positions.push_back(p);
  };
  add(0, 24);
  size_t end = 24;
  for (const GgufEntry& entry : file.metadata()) {
    const size_t key = reinterpret_cast<const std::byte*>(entry.key.data()) - bytes.data();
    add(key - 8, key);
    add(key + entry.key.size(), entry.offset + std::min<size_t>(entry.value.size(), 16));
    end = entry.offset + entry.value.size();
  }
  add(end, file.data_offset());
  return positions;
}

uint64_t interesting_number(std::mt19937_64& random) {
  constexpr uint64_t kNumbers[] = {0,          1,          2,          3,          5,
                                   9,          12,         99,         255,        65535,
                                   1ull << 31, 1ull << 32, 1ull << 40, 1ull << 62, 1ull << 63,
                                   kHuge,      kHuge - 1,  kHuge - 31, 33,         64};
  return kNumbers[random() % std::size(kNumbers)];
}

// Overwrites 1, 2, 4 or 8 bytes at `position`.
void mutate(std::span<std::byte> bytes, size_t position, std::mt19937_64& random) {
  uint64_t number = random() % 4 == 0 ? random() : interesting_number(random);
  const size_t width = std::min(size_t{1} << (random() % 4), bytes.size() - position);
  if (random() % 4 == 0) {  // one more or one less than what is there
    number = 0;
    std::memcpy(&number, bytes.data() + position, width);
    number += random() % 2 == 0 ? 1 : kHuge;
  }
  std::memcpy(bytes.data() + position, &number, width);
}

struct Outcome {
  int opened = 0;
  int refused = 0;
};

Outcome run_mutations(std::span<std::byte> bytes, int rounds, uint64_t seed) {
  Outcome outcome;
  std::vector<size_t> positions;
  size_t header_size = 0;
  {
    const auto file = GgufFile::parse(bytes, "original");
    if (!file) return outcome;
    positions = number_positions(*file, bytes);
    header_size = file->data_offset();
  }
  const std::vector<std::byte> header(bytes.begin(),
                                      bytes.begin() + static_cast<long>(header_size));
  std::mt19937_64 random(seed);
  for (int round = 0; round < rounds; ++round) {
    const size_t changes = 1 + random() % 3;
    for (size_t i = 0; i < changes; ++i) {
      const bool anywhere = random() % 8 == 0;
      const size_t p = anywhere ? random() % header_size : positions[random() % positions.size()];
      mutate(bytes, p, random);
    }
    const size_t before = allocated_bytes;
    const auto file = GgufFile::parse(bytes, "mutated");
    EXPECT_LE(allocated_bytes - before, header_size + (size_t{1} << 20)) << "seed " << seed;
    ++(file ? outcome.opened : outcome.refused);
    if (file) {
      expect_sound(*file, bytes);
      const auto spec = read_tokenizer_spec(*file);
      EXPECT_TRUE(spec || !spec.error().message.empty());
    }
    std::copy(header.begin(), header.end(), bytes.begin());
  }
  return outcome;
}

TEST(GgufHostile, MutationsOfATinyModel) {
  std::string bytes =
      testing::read_file(testing::test_data("tiny/llama-tied/llama-tied-Q4_0.gguf"));
  const Outcome outcome =
      run_mutations({reinterpret_cast<std::byte*>(bytes.data()), bytes.size()}, 4000, 1);
  EXPECT_EQ(outcome.opened + outcome.refused, 4000);
  EXPECT_GT(outcome.opened, 100) << "some changes are harmless";
  EXPECT_GT(outcome.refused, 1000) << "most are not";
}

TEST(GgufHostile, MutationsOfTheRealModel) {
  const auto map = FileMap::open(testing::smollm2_path());
  ASSERT_TRUE(map) << map.error().message;
  std::vector<std::byte> bytes(map->bytes().begin(), map->bytes().end());
  const Outcome outcome = run_mutations(bytes, 300, 2);
  EXPECT_EQ(outcome.opened + outcome.refused, 300);
  EXPECT_GT(outcome.refused, 100);
}

}  // namespace
}  // namespace octavo
