#include "formats/shards.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

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
  if (exists(single)) {
    OCTAVO_TRY(SafetensorsFile file, SafetensorsFile::open(single, integers));
    shards.files_.push_back(std::move(file));
    OCTAVO_CHECK_OK(shards.collect());
    return shards;
  }
  if (!exists(index_path)) return no_weights(folder);
  OCTAVO_TRY(const FileMap text, FileMap::open(index_path));
  OCTAVO_TRY(const ShardIndex index,
             ShardIndex::parse({reinterpret_cast<const char*>(text.bytes().data()), text.size()},
                               index_path));
  for (const std::string& name : index.files) {
    OCTAVO_TRY(SafetensorsFile file,
               SafetensorsFile::open(fmt::format("{}/{}", folder, name), integers));
    shards.files_.push_back(std::move(file));
  }
  OCTAVO_CHECK_OK(shards.collect());
  OCTAVO_CHECK_OK(shards.compare(index, index_path));
  return shards;
}

Result<void> Shards::collect() {
  std::vector<std::string_view> names;
  const auto note = [&](const auto& tensor, const SafetensorsFile& file) {
    names.push_back(tensor.name);
    places_.push_back(&file);
  };
  for (const SafetensorsFile& file : files_) {
    for (const TensorView& tensor : file.tensors()) {
      tensors_.push_back({&tensor, &file});
      note(tensor, file);
    }
    for (const IntegerTensor& tensor : file.integers()) {
      integers_.push_back({&tensor, &file});
      note(tensor, file);
    }
  }
  index_ = NameIndex(names);
  const auto twice = index_.duplicate();
  if (!twice) return {};
  std::vector<std::string_view> where;
  for (size_t i = 0; i < names.size(); ++i)
    if (names[i] == *twice) where.push_back(places_[i]->file());
  return fail(ErrorCode::corrupt_file,
              fmt::format("{}: tensor {} is also in {}", where[1], quote(*twice), where[0]));
}

Result<void> Shards::compare(const ShardIndex& index, const std::string& name) const {
  for (const ShardIndex::Entry& entry : index.entries) {
    const auto found = index_.find(entry.tensor);
    if (!found || places_[*found] != &files_[entry.file])
      return fail(ErrorCode::corrupt_file,
                  fmt::format("{}: tensor {} is missing, though {} says that it is there",
                              files_[entry.file].file(), quote(entry.tensor), name));
  }
  std::vector<std::string_view> listed;
  for (const ShardIndex::Entry& entry : index.entries) listed.push_back(entry.tensor);
  const NameIndex known(listed);
  const auto unlisted = [&](const std::string& tensor,
                            const SafetensorsFile& file) -> Result<void> {
    if (known.find(tensor)) return {};
    return fail(ErrorCode::corrupt_file,
                fmt::format("{}: tensor {} is there, but {} does not list it", file.file(),
                            quote(tensor), name));
  };
  for (const auto& [view, file] : tensors_) OCTAVO_CHECK_OK(unlisted(view->name, *file));
  for (const auto& [view, file] : integers_) OCTAVO_CHECK_OK(unlisted(view->name, *file));
  return {};
}

}  // namespace octavo
