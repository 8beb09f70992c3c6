#include "formats/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/checked.h"
#include "formats/byte_reader.h"
#include "formats/quote.h"
#include "formats/shallow_json.h"

namespace octavo {
namespace {

using nlohmann::json;

constexpr uint64_t kMaxHeaderBytes = uint64_t{8} << 20;  // of the largest published: below 1 MiB
constexpr int kMaxDepth = 4;
constexpr size_t kMaxRank = 4;

// A tensor of the header, before it is known to lie inside the file.
struct Place {
  TensorView view;
  size_t integer_width = 0;     // not 0: integers, of so many bytes; the view's type has no meaning
  uint64_t begin = 0, end = 0;  // from the start of the data
};

std::optional<DType> dtype_of(std::string_view name) {
  if (name == "F32") return DType::f32;
  if (name == "F16") return DType::f16;
  if (name == "BF16") return DType::bf16;
  return std::nullopt;
}

size_t integer_width_of(std::string_view name) { return name == "I32" ? 4 : name == "I64" ? 8 : 0; }

class HeaderReader {
 public:
  HeaderReader(const std::string& file, Integers integers) : file_(file), integers_(integers) {}

  Result<std::vector<Place>> read(std::string_view text) const {
    const StrictJson parsed = parse_strict_json(text, kMaxDepth);
    if (parsed.too_deep) return error("the header is nested too deep");
    if (!parsed.root.is_object()) return error("the header is not a JSON object");
    if (parsed.repeated_key)
      return error(fmt::format("{} is given more than once", quote(*parsed.repeated_key)));
    std::vector<Place> places;
    for (const auto& [name, value] : parsed.root.items()) {
      if (name == "__metadata__") continue;
      OCTAVO_TRY(places.emplace_back(), read_tensor(name, value));
    }
    return places;
  }

  tl::unexpected<Error> error(std::string_view what,
                              ErrorCode code = ErrorCode::corrupt_file) const {
    return fail(code, fmt::format("{}: {}", file_, what));
  }

 private:
  tl::unexpected<Error> tensor_error(std::string_view name, std::string_view what,
                                     ErrorCode code = ErrorCode::corrupt_file) const {
    return error(fmt::format("tensor {} {}", quote(name), what), code);
  }

  Result<Place> read_tensor(const std::string& name, const json& value) const {
    if (!value.is_object()) return tensor_error(name, "is not described by an object");
    for (const auto& [key, unused] : value.items())
      if (key != "dtype" && key != "shape" && key != "data_offsets")
        return tensor_error(name, fmt::format("has the unknown field {}", quote(key)),
                            ErrorCode::unsupported);
    Place place;
    place.view.name = name;
    OCTAVO_CHECK_OK(read_dtype(name, value, place));
    OCTAVO_CHECK_OK(read_shape(name, value, place.view));
    OCTAVO_CHECK_OK(read_offsets(name, value, place));
    return place;
  }

  Result<void> read_dtype(const std::string& name, const json& value, Place& place) const {
    const auto it = value.find("dtype");
    if (it == value.end() || !it->is_string()) return tensor_error(name, "has no dtype");
    const auto& text = it->get_ref<const std::string&>();
    if (integers_ == Integers::read) place.integer_width = integer_width_of(text);
    const auto type = dtype_of(text);
    if (type) place.view.type = *type;
    if (type || place.integer_width > 0) return {};
    return tensor_error(
        name,
        fmt::format("is of type {}; supported are F32, F16 and BF16{}", quote(text),
                    integers_ == Integers::read ? ", and I32 and I64 of packed weights" : ""),
        ErrorCode::unsupported);
  }

  Result<void> read_shape(const std::string& name, const json& value, TensorView& view) const {
    const auto it = value.find("shape");
    if (it == value.end() || !it->is_array()) return tensor_error(name, "has no shape");
    if (it->size() > kMaxRank)
      return tensor_error(
          name, fmt::format("has {} dimensions; at most {} are supported", it->size(), kMaxRank),
          ErrorCode::unsupported);
    view.rank = static_cast<int>(std::max<size_t>(it->size(), 1));
    uint64_t elements = 1;
    for (size_t i = 0; i < it->size(); ++i) {
      const json& number = (*it)[it->size() - 1 - i];
      const uint64_t dim = number.is_number_unsigned() ? number.get<uint64_t>() : 0;
      const auto product = checked_mul(elements, dim);
      if (dim == 0 || !product || *product > uint64_t{1} << 50)
        return tensor_error(name, fmt::format("has the shape {}", quote(it->dump())));
      elements = *product;
      view.shape[i] = static_cast<int64_t>(dim);
    }
    return {};
  }

  Result<void> read_offsets(const std::string& name, const json& value, Place& place) const {
    const auto it = value.find("data_offsets");
    const bool two = it != value.end() && it->is_array() && it->size() == 2 &&
                     (*it)[0].is_number_unsigned() && (*it)[1].is_number_unsigned();
    if (!two) return tensor_error(name, "has no pair of data_offsets");
    place.begin = (*it)[0].get<uint64_t>();
    place.end = (*it)[1].get<uint64_t>();
    const auto elements = static_cast<size_t>(place.view.cols() * place.view.rows());
    const uint64_t size = place.integer_width > 0 ? elements * place.integer_width
                                                  : row_bytes(place.view.type, elements);
    if (place.begin <= place.end && place.end - place.begin == size) return {};
    return tensor_error(name, fmt::format("has data from {} to {}, but its shape needs {} bytes",
                                          place.begin, place.end, size));
  }

  const std::string& file_;
  Integers integers_;
};

// The format allows no gaps: each tensor begins where the one before ends, the last ends with the
// file.
Result<void> check_places(const std::string& file, const std::vector<Place>& sorted,
                          uint64_t available) {
  uint64_t end = 0;
  std::string_view before = "the header";
  for (const Place& place : sorted) {
    if (place.end > available)
      return fail(ErrorCode::corrupt_file,
                  fmt::format("{}: tensor {} ends at byte {} of the data, but the file has {}; it "
                              "is damaged or incomplete: fetch it again",
                              file, quote(place.view.name), place.end, available));
    if (place.begin != end)
      return fail(
          ErrorCode::corrupt_file,
          fmt::format("{}: tensor {} {} {}: it begins at byte {} of the data, not at {}", file,
                      quote(place.view.name), place.begin < end ? "overlaps" : "leaves a gap after",
                      quote(before), place.begin, end));
    end = place.end;
    before = place.view.name;
  }
  if (end == available) return {};
  return fail(ErrorCode::corrupt_file,
              fmt::format("{}: has {} bytes after its last tensor", file, available - end));
}

}  // namespace

Result<SafetensorsFile> SafetensorsFile::open(const std::string& path, Integers integers) {
  OCTAVO_TRY(FileMap map, FileMap::open(path));
  OCTAVO_TRY(SafetensorsFile file, parse(map.bytes(), path, integers));
  file.map_ = std::move(map);
  return file;
}

Result<SafetensorsFile> SafetensorsFile::parse(std::span<const std::byte> bytes, std::string name,
                                               Integers integers) {
  ByteReader reader(bytes, name);
  OCTAVO_TRY(const uint64_t length, reader.number<uint64_t>({"header length"}));
  if (length > kMaxHeaderBytes)
    return fail(ErrorCode::unsupported,
                fmt::format("{}: the header has {} bytes, above the limit of {}; is it a "
                            "safetensors file?",
                            name, length, kMaxHeaderBytes));
  OCTAVO_TRY(const auto header, reader.take(length, {"header"}));
  OCTAVO_TRY(auto places, HeaderReader(name, integers)
                              .read({reinterpret_cast<const char*>(header.data()), header.size()}));
  std::sort(places.begin(), places.end(), [](const Place& a, const Place& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  OCTAVO_CHECK_OK(check_places(name, places, reader.remaining()));

  SafetensorsFile file;
  file.name_ = std::move(name);
  file.data_offset_ = reader.position();
  file.bytes_ = bytes;
  for (Place& place : places) {
    place.view.data = bytes.subspan(file.data_offset_ + place.begin, place.end - place.begin);
    TensorView& view = place.view;
    if (place.integer_width > 0)
      file.integers_.push_back(
          {std::move(view.name), place.integer_width, view.shape, view.rank, view.data});
    else
      file.tensors_.push_back(std::move(view));
  }
  std::vector<std::string_view> names;
  for (const TensorView& tensor : file.tensors_) names.push_back(tensor.name);
  file.index_ = NameIndex(names);
  return file;
}

const TensorView* SafetensorsFile::find(std::string_view name) const {
  const auto i = index_.find(name);
  return i ? &tensors_[*i] : nullptr;
}

void SafetensorsFile::drop(std::span<const std::byte> data) const {
  if (map_) map_->drop(data);
}

}  // namespace octavo
