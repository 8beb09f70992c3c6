#include "model/pack_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/lost_file_guard.h"
#include "formats/gguf.h"
#include "model/weights.h"
#include "support/paths.h"
#include "support/temp_folder.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;
using testing::read_file;
using testing::test_data;

constexpr char kModel[] = "tiny/llama-untied/llama-untied-Q8_0.gguf";
constexpr char kName[] = "a.pack";

class PackFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    model_path_ = temp_.file("model.gguf");
    fs::copy_file(test_data(kModel), model_path_);
    model_.emplace(std::move(*GgufFile::open(model_path_)));
    folder_.emplace(std::move(*PrivateFolder::open(temp_.file("packs"))));
    config_ = *read_model_config(*model_);
    pool_ = *ThreadPool::create(2);
  }

  ModelWeights load(const PackFile* pack = nullptr) {
    auto weights = load_weights(*model_, config_, *pool_, {}, pack);
    EXPECT_TRUE(weights) << (weights ? "" : weights.error().message);
    return std::move(*weights);
  }
  std::string write() {
    const ModelWeights weights = load();
    const auto written = write_pack(*folder_, kName, *pack_key(*model_), weights.tensors);
    EXPECT_TRUE(written) << (written ? "" : written.error().message);
    return read_file(pack_path());
  }
  Result<PackFile> open() {
    OCTAVO_TRY(FileMap map, folder_->map(kName));
    return PackFile::open(std::move(map), *model_, *pack_key(*model_));
  }
  // The pack with other bytes in it: none of them may be taken for a pack.
  ErrorCode error_of(const std::string& content) {
    std::ofstream(pack_path(), std::ios::binary) << content;
    fs::permissions(pack_path(), fs::perms::owner_read | fs::perms::owner_write);
    const auto pack = open();
    return pack ? ErrorCode::cancelled : pack.error().code;
  }
  std::string pack_path() const { return folder_->path() + "/" + kName; }
  Hash128 key_now() const { return *pack_key(*GgufFile::open(model_path_)); }

  testing::TempFolder temp_;
  std::string model_path_;
  std::optional<GgufFile> model_;
  std::optional<PrivateFolder> folder_;
  ModelConfig config_;
  std::unique_ptr<ThreadPool> pool_;
};

TEST_F(PackFileTest, HoldsTheBytesOfARepack) {
  write();
  const auto pack = open();
  ASSERT_TRUE(pack) << pack.error().message;
  const ModelWeights repacked = load(), mapped = load(&*pack);
  ASSERT_EQ(repacked.tensors.size(), mapped.tensors.size());
  EXPECT_EQ(repacked.tensors.size(), 2 + 7 * repacked.layers.size());
  for (size_t i = 0; i < repacked.tensors.size(); ++i) {
    const kernels::PanelMatrix a = repacked.tensors[i].panels, b = mapped.tensors[i].panels;
    ASSERT_EQ(repacked.tensors[i].tensor, mapped.tensors[i].tensor);
    ASSERT_EQ(a.rows, b.rows);
    ASSERT_EQ(a.cols, b.cols);
    EXPECT_EQ(std::memcmp(a.data, b.data, static_cast<size_t>(a.panels()) * a.panel_bytes), 0);
    const auto kept = pack->find(mapped.tensors[i].tensor);
    ASSERT_TRUE(kept);
    EXPECT_EQ(b.data, reinterpret_cast<const uint8_t*>(kept->data())) << "nothing is copied";
  }
  EXPECT_TRUE(pack->verify({}));
}

TEST_F(PackFileTest, AChangedByteOfHeaderOrTableIsNoticedAtOnce) {
  const std::string good = write();
  const size_t table_end = 56 + 48 * load().tensors.size();
  ASSERT_EQ(error_of(good), ErrorCode::cancelled) << "the good one opens";
  // All of the header and of the first matrices, some of the rest.
  for (size_t at = 0; at < table_end; at += at < 200 ? 1 : 29) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 1 << at % 8);
    ASSERT_EQ(error_of(bad), ErrorCode::corrupt_file) << at;
  }
}

TEST_F(PackFileTest, AnotherLengthIsNoticedAtOnce) {
  const std::string good = write();
  for (const size_t size : {1ul, 7ul, 55ul, 56ul, 57ul, 200ul, 4095ul, 4096ul, 4097ul,
                            good.size() / 2, good.size() - 4096, good.size() - 1})
    ASSERT_EQ(error_of(good.substr(0, size)), ErrorCode::corrupt_file) << size;
  ASSERT_EQ(error_of(good + "x"), ErrorCode::corrupt_file);
  ASSERT_EQ(error_of(std::string(100'000, '\0')), ErrorCode::corrupt_file);
}

TEST_F(PackFileTest, TablesThatLieWithARightChecksumAreRefused) {
  const std::string good = write();
  const auto put = [&](std::string& bytes, size_t at, auto value) {
    std::memcpy(bytes.data() + at, &value, sizeof(value));
  };
  const size_t table_bytes = 48 * load().tensors.size();
  const auto with_checksum = [&](std::string bytes) {
    put(bytes, 48, uint64_t{0});
    put(bytes, 48, hash64(std::as_bytes(std::span(bytes)).first(56 + table_bytes)));
    return bytes;
  };
  ASSERT_EQ(error_of(with_checksum(good)), ErrorCode::cancelled);
  const struct {
    const char* what;
    size_t at;
    uint64_t value;
  } cases[] = {
      {"offset: unaligned", 56 + 24, 8192 + 64},
      {"offset: at the end", 56 + 24, good.size() / 4096 * 4096},
      {"offset: far away", 56 + 24, uint64_t{1} << 63},
      {"offset: wraps", 56 + 24, ~uint64_t{4095}},
      {"size", 56 + 32, 64},
      {"size: huge", 56 + 32, ~uint64_t{0}},
      {"rows", 56 + 8, 16},
      {"rows: negative", 56 + 8, ~uint64_t{0}},
      {"cols", 56 + 16, 32},
      {"tensor and type: no such", 56, 0xffffffff},
      {"tensor and type: no such type", 56, uint64_t{200} << 32},
      {"entries", 40, 3},
      {"entries: huge", 40, ~uint64_t{0}},
  };
  for (const auto& c : cases) {
    std::string bad = good;
    put(bad, c.at, c.value);
    EXPECT_EQ(error_of(with_checksum(bad)), ErrorCode::corrupt_file) << c.what;
  }
  std::string twice = good;
  std::memcpy(twice.data() + 56 + 48, twice.data() + 56, 48);
  EXPECT_EQ(error_of(with_checksum(twice)), ErrorCode::corrupt_file);
}

TEST_F(PackFileTest, ChangedWeightsAreFoundByVerify) {
  const std::string good = write();
  for (const size_t at : {good.size() / 4096 * 4096 - 4096, good.size() - 1}) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 4);
    ASSERT_EQ(error_of(bad), ErrorCode::cancelled) << "the table is good";
    const auto result = open()->verify({});
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, ErrorCode::corrupt_file);
    EXPECT_NE(result.error().message.find(kName), std::string::npos);
  }
}

TEST_F(PackFileTest, VerifyStopsWhenAsked) {
  write();
  std::stop_source stop;
  stop.request_stop();
  const auto result = open()->verify(stop.get_token());
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::cancelled);
}

TEST_F(PackFileTest, ThePackOfAnotherModelIsRefused) {
  write();
  const auto other = GgufFile::open(test_data("tiny/llama-tied/llama-tied-Q8_0.gguf"));
  auto pack = PackFile::open(*folder_->map(kName), *other, *pack_key(*other));
  ASSERT_FALSE(pack);
  // The same key, whatever made it so, does not help.
  pack = PackFile::open(*folder_->map(kName), *other, *pack_key(*model_));
  ASSERT_FALSE(pack);
}

TEST(PackKey, EveryPartOfItCounts) {
  // 100 pages behind the tables, of which 64 are sampled, the first and the last among them.
  std::vector<std::byte> bytes(500 + 100 * 4096);
  const FileIdentity identity{1, 2, bytes.size(), 4, 5};
  const Hash128 before = pack_key(identity, bytes, 500);
  EXPECT_EQ(before, pack_key(identity, bytes, 500));
  EXPECT_NE(before, pack_key(identity, bytes, 501));
  for (auto field : {&FileIdentity::inode, &FileIdentity::size}) {
    FileIdentity other = identity;
    ++(other.*field);
    EXPECT_NE(before, pack_key(other, bytes, 500));
  }
  for (auto field : {&FileIdentity::modified_ns, &FileIdentity::changed_ns}) {
    FileIdentity other = identity;
    ++(other.*field);
    EXPECT_NE(before, pack_key(other, bytes, 500));
  }
  int noticed = 0;
  for (size_t page = 0; page < 100; ++page) {
    std::byte& byte = bytes[500 + page * 4096 + 77];
    byte = std::byte{1};
    noticed += pack_key(identity, bytes, 500) != before;
    byte = std::byte{0};
  }
  EXPECT_EQ(noticed, 64);
  for (const size_t at : {size_t{0}, size_t{499}, size_t{500}, bytes.size() - 1}) {
    bytes[at] = std::byte{1};
    EXPECT_NE(before, pack_key(identity, bytes, 500)) << at;
    bytes[at] = std::byte{0};
  }
}

TEST_F(PackFileTest, TheKeyIsThatOfOneStateOfOneFile) {
  const Hash128 before = key_now();
  EXPECT_EQ(before, key_now());
  const auto time = fs::last_write_time(model_path_);
  fs::last_write_time(model_path_, time + std::chrono::nanoseconds(1000));
  EXPECT_NE(before, key_now()) << "time of change";
  const std::string content = read_file(model_path_);

  const std::string copy = temp_.file("copy.gguf");
  fs::copy_file(model_path_, copy);
  fs::last_write_time(copy, time);
  EXPECT_NE(before, *pack_key(*GgufFile::open(copy))) << "another inode";
  EXPECT_FALSE(pack_key(*GgufFile::parse(std::as_bytes(std::span(content)), "memory")));
}

TEST_F(PackFileTest, AModelOrPackShortenedInUseEndsWithAnError) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  write();
  const auto shorten_model = [&] {
    end_program_when_mapped_file_is_lost();
    if (::truncate(model_path_.c_str(), 4096) != 0) std::_Exit(99);
    load();
    std::_Exit(98);
  };
  EXPECT_EXIT(shorten_model(), ::testing::ExitedWithCode(4), "model.gguf: was shortened");
  const auto shorten_pack = [&] {
    end_program_when_mapped_file_is_lost();
    const auto pack = open();
    if (::truncate(pack_path().c_str(), 4096) != 0) std::_Exit(99);
    std::_Exit(pack->verify({}) ? 98 : 97);
  };
  EXPECT_EXIT(shorten_pack(), ::testing::ExitedWithCode(4), "a.pack: was shortened");
}

}  // namespace
}  // namespace octavo
