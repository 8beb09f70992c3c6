// Models by the name that they have on a Hugging Face-compatible hub, and where they are kept here.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace octavo {

// "org/name", or "org/name:file.gguf". Each part consists of ASCII letters, digits and . _ + -,
// and begins with none of . and -, so that no path made of it leaves its folder.
struct HubName {
  std::string org, name;
  std::string file = {};  // may lie in folders of the repository; empty: its only one

  std::string repository() const { return org + "/" + name; }
  std::string text() const { return file.empty() ? repository() : repository() + ":" + file; }
};

// Whether this can only be meant as such a name; paths end in .gguf or begin with . or /.
bool looks_like_hub_name(std::string_view text);

// invalid_argument, naming the part that cannot be.
Result<HubName> parse_hub_name(std::string_view text);

// Of a GGUF file: a path inside its repository.
bool is_hub_file(std::string_view path);

// models_folder()/hub
std::string hub_folder();
// Where its files are, and where its file is. REQUIRES: a file.
std::string cache_folder(const HubName& name);
std::string cache_path(const HubName& name);

// Of a model that is a folder: a file that is read of it (config.json, tokenizer.json,
// model.safetensors and so on).
bool is_folder_file(std::string_view path);

// The file that gets its name last: a folder that has it is whole.
constexpr std::string_view kFolderMark = "config.json";

// All that is kept, "org/name:file.gguf", and "org/name" of a folder, sorted.
std::vector<std::string> cached_hub_models();

// The file, or the folder, of a model that is kept; of one in several files the first. Nothing: it
// is not. invalid_argument: no file was named and there are several.
Result<std::optional<std::string>> find_cached(const HubName& name);

}  // namespace octavo
