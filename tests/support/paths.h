// Where tests find their files. Nothing else may be read.
#pragma once

#include <string>

namespace octavo::testing {

// Files of tests/data/*.tar.xz, unpacked into the build folder when it was configured.
std::string unpacked(const std::string& name);

// A file of tests/data, which may lie in one of its archives.
std::string test_data(const std::string& name);

// A tiny random model of some family, "NAME/FILE".
std::string tiny_data(const std::string& name);

// The real models; scripts/fetch-model puts them there before the tests are run.
std::string fetched_model(const std::string& file);
std::string smollm2_path();

std::string read_file(const std::string& path);

}  // namespace octavo::testing
