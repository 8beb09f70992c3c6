#include "formats/gguf_metadata.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "formats/byte_reader.h"
#include "formats/quote.h"

namespace octavo {
namespace {

constexpr size_t kLengthBytes = sizeof(uint64_t);  // in front of every string

template <class To, class From>
std::optional<To> narrow(From value) {
  if (!std::in_range<To>(value)) return std::nullopt;
  return static_cast<To>(value);
}

// Nothing if the value does not fit. REQUIRES: is_integer(type).
template <class To>
std::optional<To> load_integer(GgufType type, const std::byte* at) {
  switch (type) {
    case GgufType::u8:
      return narrow<To>(load<uint8_t>(at));
    case GgufType::i8:
      return narrow<To>(load<int8_t>(at));
    case GgufType::u16:
      return narrow<To>(load<uint16_t>(at));
    case GgufType::i16:
      return narrow<To>(load<int16_t>(at));
    case GgufType::u32:
      return narrow<To>(load<uint32_t>(at));
    case GgufType::i32:
      return narrow<To>(load<int32_t>(at));
    case GgufType::u64:
      return narrow<To>(load<uint64_t>(at));
    case GgufType::i64:
      return narrow<To>(load<int64_t>(at));
    default:
      return std::nullopt;
  }
}

bool is_float(GgufType type) { return type == GgufType::f32 || type == GgufType::f64; }

// REQUIRES: is_float(type). A finite f64 beyond the range of f32 becomes infinite.
float load_float(GgufType type, const std::byte* at) {
  if (type == GgufType::f32) return load<float>(at);
  const double value = load<double>(at);
  const double largest = std::numeric_limits<float>::max();
  if (std::abs(value) > largest)
    return std::copysign(std::numeric_limits<float>::infinity(), value > 0 ? 1.0f : -1.0f);
  return static_cast<float>(value);
}

std::string_view load_text(const std::byte* at) {
  return {reinterpret_cast<const char*>(at + kLengthBytes), load<uint64_t>(at)};
}

tl::unexpected<Error> wrong_type(const GgufMetadata& file, const GgufEntry& entry,
                                 std::string_view expected) {
  return file.error(entry, fmt::format("is {}, expected {}", type_text(entry), expected));
}

template <class To>
Result<To> integer(const GgufMetadata& file, const GgufEntry& entry) {
  if (!is_integer(entry.type)) return wrong_type(file, entry, "an integer");
  const auto value = load_integer<To>(entry.type, entry.value.data());
  if (value) return *value;
  return file.error(entry,
                    fmt::format("is {}, expected an integer from {} to {}", value_text(entry),
                                std::numeric_limits<To>::min(), std::numeric_limits<To>::max()));
}

Result<float> finite_float(const GgufMetadata& file, const GgufEntry& entry) {
  if (!is_float(entry.type)) return wrong_type(file, entry, "f32");
  const float value = load_float(entry.type, entry.value.data());
  if (std::isfinite(value)) return value;
  return file.error(entry, fmt::format("is {}, expected a finite f32", value_text(entry)));
}

Result<bool> boolean(const GgufMetadata& file, const GgufEntry& entry) {
  if (entry.type != GgufType::boolean) return wrong_type(file, entry, "bool");
  return load<uint8_t>(entry.value.data()) != 0;
}

Result<std::string_view> text(const GgufMetadata& file, const GgufEntry& entry) {
  if (entry.type != GgufType::string) return wrong_type(file, entry, "a string");
  return load_text(entry.value.data());
}

bool is_array_of(const GgufEntry& entry, bool (*wanted)(GgufType)) {
  return entry.type == GgufType::array && wanted(entry.element);
}

template <class To>
Result<std::vector<To>> integers(const GgufMetadata& file, const GgufEntry& entry) {
  if (!is_array_of(entry, is_integer)) return wrong_type(file, entry, "an array of integers");
  std::vector<To> out;
  out.reserve(entry.count);
  const size_t step = fixed_size(entry.element);
  for (uint64_t i = 0; i < entry.count; ++i) {
    const auto value = load_integer<To>(entry.element, entry.value.data() + i * step);
    if (!value) return file.error(entry, fmt::format("has an element {} that is out of range", i));
    out.push_back(*value);
  }
  return out;
}

// Nothing if there is no such entry; else what `read` makes of it.
template <class T>
Result<std::optional<T>> optional(const GgufMetadata& file, std::string_view key,
                                  Result<T> (*read)(const GgufMetadata&, const GgufEntry&)) {
  const GgufEntry* entry = file.find(key);
  if (!entry) return std::optional<T>();
  OCTAVO_TRY(T value, read(file, *entry));
  return std::optional<T>(std::move(value));
}

std::string number_text(const GgufEntry& entry) {
  const std::byte* at = entry.value.data();
  if (entry.type == GgufType::u64) return fmt::format("{}", load<uint64_t>(at));
  if (entry.type == GgufType::f32) return fmt::format("{}", load<float>(at));
  if (entry.type == GgufType::f64) return fmt::format("{}", load<double>(at));
  return fmt::format("{}", load_integer<int64_t>(entry.type, at).value_or(0));
}

}  // namespace

Result<GgufMetadata> GgufMetadata::create(std::string file, std::vector<GgufEntry> entries) {
  std::vector<std::string_view> keys;
  keys.reserve(entries.size());
  for (const GgufEntry& entry : entries) keys.push_back(entry.key);
  GgufMetadata out;
  out.file_ = std::move(file);
  out.entries_ = std::move(entries);
  out.index_ = NameIndex(keys);
  if (const auto key = out.index_.duplicate())
    return out.error(*out.find(*key), "is given more than once");
  return out;
}

const GgufEntry* GgufMetadata::find(std::string_view key) const {
  const auto i = index_.find(key);
  return i ? &entries_[*i] : nullptr;
}

Result<const GgufEntry*> GgufMetadata::require(std::string_view key) const {
  const GgufEntry* entry = find(key);
  if (entry) return entry;
  return fail(ErrorCode::corrupt_file,
              fmt::format("{}: metadata key {} is missing; the file was not written by a complete "
                          "conversion",
                          file_, quote(key)));
}

tl::unexpected<Error> GgufMetadata::error(const GgufEntry& entry, std::string_view why,
                                          ErrorCode code) const {
  return fail(code, fmt::format("{}: metadata key {} at byte {} {}", file_, quote(entry.key),
                                entry.offset, why));
}

Result<uint64_t> GgufMetadata::get_u64(std::string_view key) const {
  OCTAVO_TRY(const GgufEntry* entry, require(key));
  return integer<uint64_t>(*this, *entry);
}

Result<uint32_t> GgufMetadata::get_u32(std::string_view key) const {
  OCTAVO_TRY(const GgufEntry* entry, require(key));
  return integer<uint32_t>(*this, *entry);
}

Result<int32_t> GgufMetadata::get_i32(std::string_view key) const {
  OCTAVO_TRY(const GgufEntry* entry, require(key));
  return integer<int32_t>(*this, *entry);
}

Result<float> GgufMetadata::get_f32(std::string_view key) const {
  OCTAVO_TRY(const GgufEntry* entry, require(key));
  return finite_float(*this, *entry);
}

Result<bool> GgufMetadata::get_bool(std::string_view key) const {
  OCTAVO_TRY(const GgufEntry* entry, require(key));
  return boolean(*this, *entry);
}

Result<std::string_view> GgufMetadata::get_string(std::string_view key) const {
  OCTAVO_TRY(const GgufEntry* entry, require(key));
  return text(*this, *entry);
}

Result<std::optional<uint64_t>> GgufMetadata::find_u64(std::string_view key) const {
  return optional(*this, key, integer<uint64_t>);
}

Result<std::optional<uint32_t>> GgufMetadata::find_u32(std::string_view key) const {
  return optional(*this, key, integer<uint32_t>);
}

Result<std::optional<int32_t>> GgufMetadata::find_i32(std::string_view key) const {
  return optional(*this, key, integer<int32_t>);
}

Result<std::optional<float>> GgufMetadata::find_f32(std::string_view key) const {
  return optional(*this, key, finite_float);
}

Result<std::optional<bool>> GgufMetadata::find_bool(std::string_view key) const {
  return optional(*this, key, boolean);
}

Result<std::optional<std::string_view>> GgufMetadata::find_string(std::string_view key) const {
  return optional(*this, key, text);
}

Result<std::optional<uint64_t>> GgufMetadata::find_layers_u64(std::string_view key,
                                                              uint64_t num_layers) const {
  const GgufEntry* entry = find(key);
  if (!entry || entry->type != GgufType::array) return find_u64(key);
  OCTAVO_TRY(const std::vector<uint64_t> values, integers<uint64_t>(*this, *entry));
  if (values.empty() || values.size() != num_layers)
    return error(*entry, fmt::format("has {} elements; one for each of {} layers is expected",
                                     values.size(), num_layers));
  if (std::ranges::any_of(values, [&](uint64_t value) { return value != values[0]; }))
    return error(*entry, "differs from layer to layer, which is not supported",
                 ErrorCode::unsupported);
  return std::optional(values[0]);
}

Result<std::vector<int32_t>> GgufMetadata::get_i32s(std::string_view key) const {
  OCTAVO_TRY(const GgufEntry* entry, require(key));
  return integers<int32_t>(*this, *entry);
}

Result<std::vector<uint32_t>> GgufMetadata::get_u32s(std::string_view key) const {
  OCTAVO_TRY(const GgufEntry* entry, require(key));
  return integers<uint32_t>(*this, *entry);
}

Result<std::vector<float>> GgufMetadata::get_f32s(std::string_view key) const {
  OCTAVO_TRY(const GgufEntry* entry, require(key));
  if (!is_array_of(*entry, is_float)) return wrong_type(*this, *entry, "an array of f32");
  std::vector<float> out(entry->count);
  const size_t step = fixed_size(entry->element);
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = load_float(entry->element, entry->value.data() + i * step);
  return out;
}

Result<std::vector<bool>> GgufMetadata::get_bools(std::string_view key) const {
  OCTAVO_TRY(const GgufEntry* entry, require(key));
  if (!is_array_of(*entry, [](GgufType type) { return type == GgufType::boolean; }))
    return wrong_type(*this, *entry, "an array of bool");
  std::vector<bool> out(entry->count);
  for (size_t i = 0; i < out.size(); ++i) out[i] = entry->value[i] != std::byte{0};
  return out;
}

Result<StringTable> GgufMetadata::get_strings(std::string_view key) const {
  OCTAVO_TRY(const GgufEntry* entry, require(key));
  if (!is_array_of(*entry, [](GgufType type) { return type == GgufType::string; }))
    return wrong_type(*this, *entry, "an array of strings");
  StringTable out;
  out.reserve(entry->count, entry->value.size() - entry->count * kLengthBytes);
  const std::byte* at = entry->value.data();
  for (uint64_t i = 0; i < entry->count; ++i) {
    const std::string_view item = load_text(at);
    out.push_back(item);
    at += kLengthBytes + item.size();
  }
  return out;
}

std::string type_text(const GgufEntry& entry) {
  if (entry.type != GgufType::array) return std::string(name(entry.type));
  return fmt::format("{}[{}]", name(entry.element), entry.count);
}

std::string value_text(const GgufEntry& entry, size_t max_bytes) {
  if (entry.type == GgufType::array) return type_text(entry);
  if (entry.type == GgufType::string) return quote(load_text(entry.value.data()), max_bytes);
  if (entry.type != GgufType::boolean) return number_text(entry);
  return entry.value[0] != std::byte{0} ? "true" : "false";
}

}  // namespace octavo
