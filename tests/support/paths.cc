#include "support/paths.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace octavo::testing {

std::string unpacked(const std::string& name) { return OCTAVO_TEST_UNPACKED "/" + name; }

std::string test_data(const std::string& name) {
  const std::string plain = OCTAVO_TEST_DATA "/" + name;
  const std::string packed = unpacked(name);
  return !std::filesystem::exists(plain) && std::filesystem::exists(packed) ? packed : plain;
}

std::string tiny_data(const std::string& name) { return test_data("tiny/" + name); }

std::string fetched_model(const std::string& file) {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  const std::string root = cache && *cache ? cache : std::string(home ? home : "") + "/.cache";
  return root + "/octavo/models/" + file;
}

std::string smollm2_path() { return fetched_model("smollm2-135m-q4_1.gguf"); }

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace octavo::testing
