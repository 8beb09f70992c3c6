#include "base/line_writer.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <sstream>
#include <string>
#include <thread>

#include "base/file_descriptor.h"

namespace octavo {
namespace {

struct Pipe {
  Pipe() {
    std::array<int, 2> ends{};
    EXPECT_EQ(pipe(ends.data()), 0);
    reader = FileDescriptor(ends[0]);
    writer = FileDescriptor(ends[1]);
  }
  // Until all that was written has been read. REQUIRES: no writer is left.
  std::string read_all() {
    std::string text;
    std::array<char, 4096> part{};
    for (ssize_t n; (n = ::read(reader.get(), part.data(), part.size())) > 0;)
      text.append(part.data(), static_cast<size_t>(n));
    return text;
  }
  FileDescriptor reader, writer;
};

std::string dropped(int64_t count) { return std::to_string(count) + " dropped\n"; }

// Of all lines that say so: they come whenever there is room again.
int64_t sum_of_dropped(const std::string& text) {
  int64_t sum = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (line.ends_with(" dropped")) sum += std::stoll(line);
  return sum;
}

TEST(LineWriter, WritesWhatIsLeftAtItsEnd) {
  Pipe pipe;
  std::string expected;
  {
    LineWriter lines({.file_descriptor = pipe.writer.get()});
    for (int i = 0; i < 1000; ++i) {
      lines.write(std::to_string(i) + "\n");
      expected += std::to_string(i) + "\n";
    }
  }
  pipe.writer = FileDescriptor();
  EXPECT_EQ(pipe.read_all(), expected);
}

TEST(LineWriter, EndsThoughNobodyReads) {
  Pipe pipe;
  LineWriter lines({.file_descriptor = pipe.writer.get()});
  for (int i = 0; i < 100; ++i) lines.write(std::string(10'000, 'x') + "\n");
}

TEST(LineWriter, DropsTheOldestAndCountsThem) {
  Pipe pipe;
  auto lines = std::make_unique<LineWriter>(LineWriter::Options{
      .file_descriptor = pipe.writer.get(), .max_lines = 10, .dropped_line = dropped});
  for (int i = 0; i < 1000; ++i) lines->write(std::string(999, 'x') + "\n");
  // The pipe holds 64 of them, the writer ten and the one that it writes.
  EXPECT_GT(lines->num_dropped(), 900);
  EXPECT_LT(lines->num_dropped(), 1000);
  lines->write("last\n");
  const int64_t count = lines->num_dropped();
  std::thread reader([&] {
    const std::string text = pipe.read_all();
    EXPECT_TRUE(text.ends_with("x\nlast\n"));
    EXPECT_EQ(sum_of_dropped(text), count);
  });
  lines.reset();
  pipe.writer = FileDescriptor();
  reader.join();
}

TEST(LineWriter, BoundsTheBytesThatWait) {
  Pipe pipe;
  LineWriter lines({.file_descriptor = pipe.writer.get(), .max_bytes = 1 << 20});
  for (int i = 0; i < 30; ++i) lines.write(std::string(100'000, 'x'));
  EXPECT_GE(lines.num_dropped(), 18);
  lines.write(std::string(2 << 20, 'x'));
  EXPECT_GE(lines.num_dropped(), 29);
}

TEST(LineWriter, OfAReaderThatHasGoneDropsAll) {
  LineWriter lines({.file_descriptor = 9999});
  for (int i = 0; i < 10; ++i) lines.write("x\n");
}

}  // namespace
}  // namespace octavo
