#include "formats/shards.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <span>

#include "formats/quote.h"
#include "formats/shallow_json.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxIndexBytes = size_t{32} << 20;
constexpr int kMaxDepth = 4;
constexpr size_t kMaxFiles = 1000;
constexpr std::string_view kSingle = "model.safetensors";
constexpr std::string_view kIndex = "model.safetensors.index.json";

// A name without a path: it cannot lead out of the folder.
bool is_plain_name(std::string_view name) {
  return name.ends_with(".safetensors") && !name.starts_with('.') &&
         name.find_first_of(std::string_view("/\\\0", 3)) == std::string_view::npos;
}

bool exists(const std::string& path) {
  std::error_code error;
  return fs::exists(path, error);
}

tl::unexpected<Error> no_weights(const std::string& folder) {
  const bool pickled =
      exists(folder + "/pytorch_model.bin") || exists(folder + "/pytorch_model.bin.index.json");
  return fail(pickled ? ErrorCode::unsupported : ErrorCode::not_found,
              fmt::format("{}: neither {} nor {} is there{}", folder, kSingle, kIndex,
                          pickled ? "; pytorch_model.bin can run programs and is not read: convert "
                                    "it to safetensors first"
                                  : ""));
}

// The first few of them.
std::string some_of(const std::vector<std::string>& names) {
  constexpr size_t kMost = 5;
  const auto shown = std::span(names).first(std::min(names.size(), kMost));
  const std::string rest =
      names.size() > kMost ? fmt::format(" and {} more", names.size() - kMost) : "";
  return fmt::format("{}{}", fmt::join(shown, ", "), rest);
}

}  // namespace

Result<ShardIndex> ShardIndex::parse(std::string_view text, const std::string& name) {
  const auto error = [&](std::string_view what, ErrorCode code = ErrorCode::corrupt_file) {
    return fail(code, fmt::format("{}: {}", name, what));
  };
  if (text.size() > kMaxIndexBytes)
    return error(fmt::format("has {} bytes, above the limit of {}", text.size(), kMaxIndexBytes),
                 ErrorCode::unsupported);
  const StrictJson parsed = parse_strict_json(text, kMaxDepth);
  if (parsed.too_deep || !parsed.root.is_object()) return error("is not a JSON object");
  if (parsed.repeated_key)
    return error(fmt::format("{} is given more than once", quote(*parsed.repeated_key)));
  const auto map = parsed.root.find("weight_map");
  if (map == parsed.root.end() || !map->is_object())
    return error("field 'weight_map' is missing or no object");
  if (map->empty()) return error("field 'weight_map' lists no tensor");
  ShardIndex index;
  std::map<std::string, size_t> numbers;
  for (const auto& [tensor, file] : map->items()) {
    if (!file.is_string() || !is_plain_name(file.get_ref<const std::string&>()))
      return error(
          fmt::format("tensor {} is said to be in {}, which is no name of a safetensors "
                      "file of this folder",
                      quote(tensor), quote(file.dump())));
    const auto [it, added] = numbers.emplace(file.get<std::string>(), index.files.size());
    if (added) index.files.push_back(it->first);
    if (numbers.size() > kMaxFiles)
      return error(fmt::format("lists more than {} files", kMaxFiles), ErrorCode::unsupported);
    index.entries.push_back({tensor, it->second});
  }
  return index;
}

Result<Shards> Shards::open(const std::string& folder, Integers integers) {
  Shards shards;
  const std::string single = fmt::format("{}/{}", folder, kSingle);
  const std::string index_path = fmt::format("{}/{}", folder, kIndex);
  if (exists(index_path)) {
    OCTAVO_TRY(const FileMap text, FileMap::open(index_path));
    OCTAVO_TRY(const ShardIndex index,
               ShardIndex::parse({reinterpret_cast<const char*>(text.bytes().data()), text.size()},
                                 index_path));
    OCTAVO_CHECK_OK(shards.open_listed(folder, index, integers));
    OCTAVO_CHECK_OK(shards.take_listed(index, index_path));
  } else if (exists(single)) {
    OCTAVO_TRY(SafetensorsFile file, SafetensorsFile::open(single, integers));
    shards.files_.push_back(std::move(file));
    shards.take_all();
  } else {
    return no_weights(folder);
  }
  shards.note_other_files(folder);
  return shards;
}

Result<void> Shards::open_listed(const std::string& folder, const ShardIndex& index,
                                 Integers integers) {
  for (const std::string& name : index.files) {
    const std::string path = fmt::format("{}/{}", folder, name);
    const std::string single = fmt::format("{}/{}", folder, kSingle);
    if (!exists(path) && exists(single))
      return fail(
          ErrorCode::not_found,
          fmt::format("{} is not there, though {} lists it; if {} is the whole model, remove "
                      "the index",
                      path, kIndex, kSingle));
    OCTAVO_TRY(SafetensorsFile file, SafetensorsFile::open(path, integers));
    files_.push_back(std::move(file));
  }
  return {};
}

void Shards::take_all() {
  for (const SafetensorsFile& file : files_) {
    for (const TensorView& tensor : file.tensors()) tensors_.push_back({&tensor, &file});
    for (const IntegerTensor& tensor : file.integers()) integers_.push_back({&tensor, &file});
  }
}

// Of a tensor that several files have, the one that the index says.
Result<void> Shards::take_listed(const ShardIndex& index, const std::string& name) {
  std::vector<std::string_view> listed;
  for (const ShardIndex::Entry& entry : index.entries) listed.push_back(entry.tensor);
  const NameIndex known(listed);
  std::vector<bool> found(listed.size());
  std::map<const SafetensorsFile*, std::vector<std::string>> ignored;
  const auto take = [&](const auto& tensor, const SafetensorsFile& file,
                        auto& taken) -> Result<void> {
    const auto entry = known.find(tensor.name);
    if (!entry)
      return fail(ErrorCode::corrupt_file,
                  fmt::format("{}: tensor {} is there, but {} does not list it", file.file(),
                              quote(tensor.name), name));
    if (&files_[index.entries[*entry].file] != &file) {
      ignored[&file].push_back(quote(tensor.name));
      return {};
    }
    taken.push_back({&tensor, &file});
    found[*entry] = true;
    return {};
  };
  for (const SafetensorsFile& file : files_) {
    for (const TensorView& tensor : file.tensors()) OCTAVO_CHECK_OK(take(tensor, file, tensors_));
    for (const IntegerTensor& tensor : file.integers())
      OCTAVO_CHECK_OK(take(tensor, file, integers_));
  }
  const auto missing = std::ranges::find(found, false);
  if (missing != found.end()) {
    const ShardIndex::Entry& entry = index.entries[static_cast<size_t>(missing - found.begin())];
    return fail(ErrorCode::corrupt_file,
                fmt::format("{}: tensor {} is missing, though {} says that it is there",
                            files_[entry.file].file(), quote(entry.tensor), name));
  }
  for (const auto& [file, names] : ignored)
    notes_.push_back(fmt::format("{}: {}, which {} says to be in another file: ignored here",
                                 file->file(), some_of(names), kIndex));
  return {};
}

// Who looks at them may think that they count.
void Shards::note_other_files(const std::string& folder) {
  std::vector<std::string> others;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    const bool is_read = std::ranges::any_of(files_, [&](const SafetensorsFile& file) {
      return fs::path(file.file()).filename() == name;
    });
    if (is_plain_name(name) && !is_read) others.push_back(quote(name));
  }
  if (others.empty()) return;
  std::ranges::sort(others);
  notes_.push_back(fmt::format("{}: weights in {} are ignored: the model's are in {}", folder,
                               some_of(others),
                               files_.size() > 1 ? "the files that the index lists"
                                                 : fs::path(files_[0].file()).filename().string()));
}

}  // namespace octavo
