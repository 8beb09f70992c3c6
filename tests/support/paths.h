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

// A tiny random model of some family, "NAME/FILE". Most are kept compressed.
inline std::string tiny_data(const std::string& name) {
  const std::string plain = test_data("tiny/" + name);
  return std::filesystem::exists(plain) ? plain : unpacked("tiny/" + name);
}

// The real models; scripts/fetch-model puts them there before the tests are run.
inline std::string fetched_model(const std::string& file) {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  const std::string root = cache && *cache ? cache : std::string(home ? home : "") + "/.cache";
  return root + "/octavo/models/" + file;
}
inline std::string smollm2_path() { return fetched_model("smollm2-135m-q4_1.gguf"); }

inline std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace octavo::testing
