#include "base/lost_file_guard.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <csignal>
#include <numeric>

#include "base/file_map.h"
#include "support/temp_folder.h"

namespace octavo {
namespace {

// Each death test runs in a process of its own; the handler of this one stays what it was.
class LostFileGuardTest : public ::testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }

  static int sum(std::span<const std::byte> bytes) {
    return std::accumulate(bytes.begin(), bytes.end(), 0,
                           [](int total, std::byte b) { return total + std::to_integer<int>(b); });
  }

  testing::TempFolder folder_;
};

TEST_F(LostFileGuardTest, AShortenedFileEndsTheProgramWithItsName) {
  const std::string path = folder_.write("model.gguf", std::string(100'000, 'x'));
  const auto shorten_and_read = [&] {
    end_program_when_mapped_file_is_lost();
    auto opened = FileMap::open(path);
    const FileMap map = std::move(*opened);  // the registration moves along
    if (::truncate(path.c_str(), 10) != 0) std::_Exit(99);
    std::_Exit(sum(map.bytes()) > 0 ? 98 : 97);
  };
  EXPECT_EXIT(shorten_and_read(), ::testing::ExitedWithCode(4),
              "octavo: error: .*model.gguf: was shortened.*\\[io_error\\]");
}

TEST_F(LostFileGuardTest, ANameOfSeveralLinesStaysOneLine) {
  const std::string path = folder_.write("a\nb\x1b[2Jc", std::string(100'000, 'x'));
  const auto shorten_and_read = [&] {
    end_program_when_mapped_file_is_lost();
    const auto map = FileMap::open(path);
    if (::truncate(path.c_str(), 10) != 0) std::_Exit(99);
    std::_Exit(sum(map->bytes()) > 0 ? 98 : 97);
  };
  EXPECT_EXIT(shorten_and_read(), ::testing::ExitedWithCode(4), "a\\?b\\?\\[2Jc: was shortened");
}

TEST_F(LostFileGuardTest, OtherBusErrorsStayWhatTheyWere) {
  const std::string path = folder_.write("other", std::string(100'000, 'x'));
  const auto read_beyond = [&] {
    std::signal(SIGBUS, [](int) { std::_Exit(77); });
    end_program_when_mapped_file_is_lost();
    std::byte* bytes = nullptr;
    {
      const auto map = FileMap::open(path);  // registered, and given up
      bytes = const_cast<std::byte*>(map->bytes().data());
    }
    const auto map = FileMap::open(path);
    FILE* file = std::fopen(path.c_str(), "r");
    void* raw = ::mmap(nullptr, 100'000, PROT_READ, MAP_SHARED, ::fileno(file), 0);
    bytes = static_cast<std::byte*>(raw);  // a mapping that nobody registered
    if (::truncate(path.c_str(), 10) != 0) std::_Exit(99);
    std::_Exit(sum({bytes, 100'000}) > 0 ? 98 : 97);
  };
  EXPECT_EXIT(read_beyond(), ::testing::ExitedWithCode(77), "");
}

TEST_F(LostFileGuardTest, MoreFilesThanPlacesAreNoHarm) {
  const std::string path = folder_.write("many", "x");
  std::vector<FileMap> maps;
  for (int i = 0; i < 200; ++i) maps.push_back(std::move(*FileMap::open(path)));
  EXPECT_EQ(sum(maps.back().bytes()), 'x');
}

}  // namespace
}  // namespace octavo
