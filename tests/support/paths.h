// Where tests find their files. Nothing else may be read.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace octavo::testing {

inline std::string test_data(const std::string& name) { return OCTAVO_TEST_DATA "/" + name; }

// Files of tests/data/*.tar.xz, unpacked into the build folder when it was configured.
inline std::string unpacked(const std::string& name) { return OCTAVO_TEST_UNPACKED "/" + name; }

// The real model; scripts/fetch-model puts it there before the tests are run.
inline std::string smollm2_path() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  const std::string root = cache && *cache ? cache : std::string(home ? home : "") + "/.cache";
  return root + "/octavo/models/smollm2-135m-q4_1.gguf";
}

inline std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace octavo::testing
