#include "formats/gguf_parts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "formats/gguf_part_name.h"
#include "formats/gguf_tokenizer.h"
#include "formats/quote.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxNamed = 8;  // missing parts in a message

std::string name_in_folder(const std::string& path) { return fs::path(path).filename().string(); }

tl::unexpected<Error> corrupt(const GgufFile& file, std::string_view what) {
  return fail(ErrorCode::corrupt_file, fmt::format("{}: {}", file.file(), what));
}

bool same_value(const GgufEntry& a, const GgufEntry& b) {
  return a.type == b.type && a.element == b.element && a.count == b.count &&
         std::ranges::equal(a.value, b.value);
}

// What a part repeats of the metadata is as the first has it.
Result<void> check_metadata(const GgufFile& first, const GgufFile& part) {
  for (const GgufEntry& entry : part.metadata()) {
    const GgufEntry* other = first.find(entry.key);
    if (entry.key.starts_with("split.") || !other || same_value(*other, entry)) continue;
    return part.error(entry, fmt::format("differs from {}: it is a part of another model",
                                         quote(name_in_folder(first.file()))));
  }
  return {};
}

Result<void> check_part(const GgufFile& first, const GgufFile& part, size_t number, size_t count) {
  const GgufSplit& split = part.split();
  if (split.count != count)
    return corrupt(part, fmt::format("is of a model of {} parts, not of {}; fetch all parts of one "
                                     "model again",
                                     split.count, count));
  if (split.number != number)
    return corrupt(part, fmt::format("is part {}, though its name says {}; give it the name that "
                                     "it had",
                                     split.number, number));
  if (split.num_tensors != first.split().num_tensors)
    return corrupt(part,
                   fmt::format("is of another model than {}: of {} tensors, not of {}",
                               quote(name_in_folder(first.file())), split.num_tensors.value_or(0),
                               first.split().num_tensors.value_or(0)));
  return number == 1 ? Result<void>() : check_metadata(first, part);
}

Result<void> check_all_there(const std::string& path, const GgufPartName& name) {
  std::vector<std::string> missing;
  size_t num_missing = 0;
  std::error_code error;
  for (uint32_t number = 1; number <= name.count; ++number) {
    if (fs::exists(name.of(number), error)) continue;
    if (++num_missing <= kMaxNamed) missing.push_back(quote(name_in_folder(name.of(number))));
  }
  if (num_missing == 0) return {};
  return fail(ErrorCode::not_found,
              fmt::format("{}: {} of the {} parts of the model {} missing beside it: {}{}", path,
                          num_missing, name.count, num_missing == 1 ? "is" : "are",
                          fmt::join(missing, ", "), num_missing > kMaxNamed ? ", ..." : ""));
}

// The name that says where the other parts are, and what it must say.
Result<GgufPartName> part_name(const std::string& path, const GgufSplit& split) {
  const auto name = parse_gguf_part_name(path);
  if (name && name->count == split.count) return *name;
  return fail(
      ErrorCode::invalid_argument,
      fmt::format("{}: is part {} of {} of a model, but is not named so, and the others are found "
                  "by their names; give all of them the names that they had, as in {}",
                  path, split.number, split.count,
                  GgufPartName{"NAME", split.number, split.count}.of(split.number)));
}

}  // namespace

GgufParts::GgufParts(std::vector<GgufFile> files)
    : ModelSource(static_cast<const GgufMetadata&>(files.front())), files_(std::move(files)) {}

Result<std::unique_ptr<GgufParts>> GgufParts::create(std::vector<GgufFile> files) {
  for (size_t i = 0; i < files.size(); ++i)
    OCTAVO_CHECK_OK(check_part(files.front(), files[i], i + 1, files.size()));
  std::unique_ptr<GgufParts> model(new GgufParts(std::move(files)));
  OCTAVO_CHECK_OK(model->collect());
  return model;
}

Result<void> GgufParts::collect() {
  for (const GgufFile& part : files_)
    tensors_.insert(tensors_.end(), part.tensors().begin(), part.tensors().end());
  std::vector<std::string_view> names;
  for (const TensorView& tensor : tensors_) names.push_back(tensor.name);
  index_ = NameIndex(names);
  if (const auto twice = index_.duplicate()) {
    std::vector<const GgufFile*> with;
    for (const GgufFile& part : files_)
      if (part.find_tensor(*twice)) with.push_back(&part);
    return corrupt(*with[1], fmt::format("tensor {} is also in {}", quote(*twice),
                                         quote(name_in_folder(with[0]->file()))));
  }
  const auto promised = files_.front().split().num_tensors;
  if (!promised || *promised == tensors_.size()) return {};
  return corrupt(files_.front(), fmt::format("the model has {} tensors by its first part, but its "
                                             "parts hold {}; fetch all of them again",
                                             *promised, tensors_.size()));
}

std::string GgufParts::format() const {
  return fmt::format("{}, {} files", files_.front().format(), files_.size());
}

uint64_t GgufParts::size() const {
  uint64_t bytes = 0;
  for (const GgufFile& part : files_) bytes += part.size();
  return bytes;
}

const TensorView* GgufParts::find_tensor(std::string_view name) const {
  const auto i = index_.find(name);
  return i ? &tensors_[*i] : nullptr;
}

void GgufParts::drop(const TensorView& tensor) const {
  for (const GgufFile& part : files_)
    if (part.find_tensor(tensor.name)) part.drop(tensor);
}

Result<TokenizerSpec> GgufParts::tokenizer() const { return read_tokenizer_spec(*this); }

std::vector<ModelFilePart> GgufParts::parts() const {
  std::vector<ModelFilePart> parts;
  for (const GgufFile& file : files_)
    for (ModelFilePart& part : file.parts()) parts.push_back(std::move(part));
  return parts;
}

Result<std::unique_ptr<ModelSource>> open_gguf(const std::string& path) {
  OCTAVO_TRY(GgufFile given, GgufFile::open(path, GgufPart::read));
  if (given.split().count == 1) return std::make_unique<GgufFile>(std::move(given));
  OCTAVO_TRY(const GgufPartName name, part_name(path, given.split()));
  OCTAVO_CHECK_OK(check_all_there(path, name));
  std::vector<GgufFile> files;
  for (uint32_t number = 1; number <= name.count; ++number) {
    if (number == name.number) {
      files.push_back(std::move(given));
      continue;
    }
    OCTAVO_TRY(GgufFile part, GgufFile::open(name.of(number), GgufPart::read));
    files.push_back(std::move(part));
  }
  return GgufParts::create(std::move(files));
}

}  // namespace octavo
