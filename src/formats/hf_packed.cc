#include "formats/hf_packed.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>

#include "formats/quote.h"
#include "tensor/blocks.h"
#include "tensor/dequant.h"
#include "tensor/half.h"

namespace octavo {
namespace {

constexpr int64_t kBlock = kSmallBlock;
constexpr int64_t kPerWord = 8;  // codes in 32 bits
// Rows that are unpacked at a time: GPTQ and AWQ have neighbouring outputs side by side.
constexpr int64_t kTile = 64;
constexpr int kMiddle = 8;
// Output of each four bits of AWQ's words, from the lowest on; and where each output lies.
constexpr std::array<int, 8> kAwqOutput = {0, 2, 4, 6, 1, 3, 5, 7};
constexpr std::array<int, 8> kAwqPlace = {0, 4, 1, 5, 2, 6, 3, 7};

// The ends of the tensors' names.
struct Names {
  std::string_view codes, zeros, scales, groups, shape;
};
constexpr Names kNames = {".qweight", ".qzeros", ".scales", ".g_idx", {}};
constexpr Names kCompressedNames = {".weight_packed", ".weight_zero_point", ".weight_scale",
                                    ".weight_g_idx", ".weight_shape"};

const Names& names_of(PackingMethod method) {
  return method == PackingMethod::compressed ? kCompressedNames : kNames;
}

uint32_t word_at(const IntegerTensor& tensor, int64_t i) {
  uint32_t word;
  std::memcpy(&word, tensor.data.data() + static_cast<size_t>(i) * sizeof(word), sizeof(word));
  return word;
}

int code_at(uint32_t word, int64_t i) { return static_cast<int>(word >> (4 * i) & 15); }

template <class Block>
void set_codes(const uint8_t* codes, Block& block) {
  for (int i = 0; i < kBlock / 2; ++i)
    block.qs[i] = static_cast<uint8_t>(codes[i] | codes[i + kBlock / 2] << 4);
}

// GGUF's row of the row `row`: of a head, row i of the first half goes to 2 i, of the second to
// 2 i + 1.
int64_t interleaved(int64_t row, int64_t head_rows) {
  if (head_rows == 0) return row;
  const int64_t head = row / head_rows, within = row % head_rows, half = head_rows / 2;
  return head * head_rows + within % half * 2 + within / half;
}

// The module of a tensor whose name ends so.
std::optional<std::string> module_of(std::string_view tensor, std::string_view end) {
  if (end.empty() || !tensor.ends_with(end)) return std::nullopt;
  return std::string(tensor.substr(0, tensor.size() - end.size()));
}

}  // namespace

Result<PackedModules> PackedModules::find(const Shards& shards, const HfQuantization& how) {
  const Names& names = names_of(how.method);
  PackedModules found;
  const std::array kinds = {
      std::pair(names.codes, &PackedParts::codes), std::pair(names.zeros, &PackedParts::zeros),
      std::pair(names.groups, &PackedParts::groups), std::pair(names.shape, &PackedParts::shape)};
  for (const ShardIntegers& part : shards.integers()) {
    const std::string& tensor = part.view->name;
    const auto* kind = std::ranges::find_if(
        kinds, [&](const auto& k) { return module_of(tensor, k.first).has_value(); });
    if (kind != kinds.end())
      found.modules[*module_of(tensor, kind->first)].*kind->second = part;
    else
      return fail(ErrorCode::unsupported,
                  fmt::format("{}: tensor {} holds integers, which no weight packed by {} has so",
                              part.file->file(), quote(tensor), name(how.method)));
  }
  for (const ShardTensor& part : shards.tensors())
    if (const auto module = module_of(part.view->name, names.scales))
      found.modules[*module].scales = part;
    else
      found.plain.push_back(part);
  return found;
}

tl::unexpected<Error> HfPackedMatrix::error(std::string_view tensor, std::string_view what,
                                            ErrorCode code) const {
  return fail(code, fmt::format("tensor {} {}", quote(module_ + std::string(tensor)), what));
}

Result<HfPackedMatrix> HfPackedMatrix::create(std::string module, const PackedParts& parts,
                                              const HfQuantization& how) {
  HfPackedMatrix matrix;
  matrix.module_ = std::move(module);
  matrix.parts_ = parts;
  matrix.how_ = how;
  const Names& names = names_of(how.method);
  if (!parts.codes) return matrix.error(names.codes, "is missing");
  if (!parts.scales) return matrix.error(names.scales, "is missing");
  if (!parts.zeros && how.method != PackingMethod::compressed)
    return matrix.error(names.zeros, "is missing");
  if (parts.groups && how.method == PackingMethod::awq)
    return matrix.error(names.groups, "is nothing that AWQ has", ErrorCode::unsupported);
  OCTAVO_CHECK_OK(matrix.check_shapes());
  OCTAVO_CHECK_OK(matrix.read_groups());
  matrix.find_zeros();
  return matrix;
}

// shape: the contiguous dimension first.
Result<void> HfPackedMatrix::check_integers(const ShardIntegers& part,
                                            std::array<int64_t, 2> shape) const {
  const IntegerTensor& t = *part.view;
  if (t.width == 4 && t.rank <= 2 && t.shape[0] == shape[0] && t.shape[1] == shape[1]) return {};
  return fail(ErrorCode::corrupt_file,
              fmt::format("tensor {} is of I{} and the shape [{}, {}]; I32 and [{}, {}] are "
                          "expected, for {} inputs in groups of {} and {} outputs",
                          quote(t.name), 8 * t.width, t.shape[1], t.shape[0], shape[1], shape[0],
                          cols_, how_.group_size == 0 ? cols_ : how_.group_size, rows_));
}

Result<void> HfPackedMatrix::check_shapes() {
  const IntegerTensor& codes = *parts_.codes->view;
  const bool by_output = how_.method == PackingMethod::compressed;  // rows of it are outputs
  const bool awq = how_.method == PackingMethod::awq;
  cols_ = by_output ? codes.shape[0] * kPerWord : codes.shape[1] * (awq ? 1 : kPerWord);
  rows_ = by_output ? codes.shape[1] : codes.shape[0] * (awq ? kPerWord : 1);
  OCTAVO_CHECK_OK(check_integers(*parts_.codes, {codes.shape[0], codes.shape[1]}));
  if (cols_ % kBlock != 0 || rows_ % kPerWord != 0)
    return fail(ErrorCode::unsupported,
                fmt::format("tensor {} is of {} inputs and {} outputs; supported are multiples of "
                            "{} inputs and of {} outputs",
                            quote(codes.name), cols_, rows_, kBlock, kPerWord));
  const int64_t size = how_.group_size == 0 ? cols_ : how_.group_size;
  num_groups_ = (cols_ + size - 1) / size;
  if (parts_.zeros)
    OCTAVO_CHECK_OK(check_integers(*parts_.zeros, by_output
                                                      ? std::array{num_groups_, rows_ / kPerWord}
                                                      : std::array{rows_ / kPerWord, num_groups_}));
  if (parts_.groups) OCTAVO_CHECK_OK(check_integers(*parts_.groups, {cols_, 1}));
  OCTAVO_CHECK_OK(check_said_shape());
  const TensorView& scales = *parts_.scales->view;
  const std::array expected =
      by_output ? std::array{num_groups_, rows_} : std::array{rows_, num_groups_};
  if (scales.rank <= 2 && scales.shape[0] == expected[0] && scales.shape[1] == expected[1])
    return {};
  return fail(ErrorCode::corrupt_file,
              fmt::format("tensor {} has the shape [{}, {}]; [{}, {}] is expected, for {} inputs "
                          "in groups of {} and {} outputs",
                          quote(scales.name), scales.shape[1], scales.shape[0], expected[1],
                          expected[0], cols_, size, rows_));
}

// More codes than values would be padding.
Result<void> HfPackedMatrix::check_said_shape() const {
  if (!parts_.shape) return {};
  const IntegerTensor& shape = *parts_.shape->view;
  std::array<int64_t, 2> said{};
  if (shape.width == 8 && shape.rank == 1 && shape.shape[0] == 2)
    std::memcpy(said.data(), shape.data.data(), sizeof(said));
  if (said == std::array{rows_, cols_}) return {};
  return fail(ErrorCode::unsupported, fmt::format("tensor {} is not [{}, {}], as the codes are",
                                                  quote(shape.name), rows_, cols_));
}

// The group of each block of columns, and the order of the columns if inputs of a group do not lie
// together.
Result<void> HfPackedMatrix::read_groups() {
  const int64_t size = how_.group_size == 0 ? cols_ : how_.group_size;
  std::vector<int32_t> group_of(static_cast<size_t>(cols_));
  for (int64_t i = 0; i < cols_; ++i) {
    int64_t group = i / size;
    if (parts_.groups) group = static_cast<int32_t>(word_at(*parts_.groups->view, i));
    if (group < 0 || group >= num_groups_)
      return fail(ErrorCode::corrupt_file,
                  fmt::format("tensor {} puts input {} into group {}; there are {}",
                              quote(parts_.groups->view->name), i, group, num_groups_));
    group_of[static_cast<size_t>(i)] = static_cast<int32_t>(group);
  }
  return sort_inputs(group_of);
}

Result<void> HfPackedMatrix::sort_inputs(const std::vector<int32_t>& group_of) {
  std::vector<int32_t> order(group_of.size());
  std::iota(order.begin(), order.end(), 0);
  const auto group = [&](size_t i) { return group_of[static_cast<size_t>(order[i])]; };
  if (!std::is_sorted(group_of.begin(), group_of.end())) {
    std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
      return group_of[static_cast<size_t>(a)] < group_of[static_cast<size_t>(b)];
    });
    order_ = order;
    places_.resize(order.size());
    for (size_t i = 0; i < order.size(); ++i)
      places_[static_cast<size_t>(order[i])] = static_cast<int32_t>(i);
  }
  for (size_t i = 0; i < order.size(); i += kBlock) {
    if (group(i) != group(i + kBlock - 1))
      return fail(ErrorCode::unsupported,
                  fmt::format("tensor {} has groups that are no whole blocks of {} inputs",
                              quote(parts_.groups->view->name), kBlock));
    block_groups_.push_back(group(i));
  }
  return {};
}

// Stored as a number from 0 on; version 1 of GPTQ takes one off first, so that there it is 1 to 16.
int HfPackedMatrix::zero(int64_t row, int64_t group) const {
  if (!parts_.zeros) return kMiddle;
  const IntegerTensor& zeros = *parts_.zeros->view;
  if (how_.method == PackingMethod::compressed)
    return code_at(word_at(zeros, row / kPerWord * num_groups_ + group), row % kPerWord);
  const uint32_t word = word_at(zeros, group * (rows_ / kPerWord) + row / kPerWord);
  if (how_.method == PackingMethod::awq)
    return code_at(word, kAwqPlace[static_cast<size_t>(row % kPerWord)]);
  return code_at(word, row % kPerWord) + (how_.zero_plus_one ? 1 : 0);
}

void HfPackedMatrix::find_zeros() {
  if (!parts_.zeros) return;
  const uint32_t all_middle = how_.zero_plus_one ? 0x77777777u : 0x88888888u;
  const int64_t words = num_groups_ * (rows_ / kPerWord);
  for (int64_t i = 0; i < words && symmetric_; ++i)
    symmetric_ = word_at(*parts_.zeros->view, i) == all_middle;
}

// As f16, [rows][groups].
Result<std::vector<uint16_t>> HfPackedMatrix::read_scales() const {
  const TensorView& scales = *parts_.scales->view;
  const int64_t count = rows_ * num_groups_;
  std::vector<float> values(static_cast<size_t>(count));
  dequantize_row(scales.type, scales.data.data(), values.data(), count);
  const bool by_output = how_.method == PackingMethod::compressed;
  std::vector<uint16_t> out(values.size());
  for (int64_t row = 0; row < rows_; ++row)
    for (int64_t group = 0; group < num_groups_; ++group) {
      const int64_t at = row * num_groups_ + group;
      const float scale = values[static_cast<size_t>(by_output ? at : group * rows_ + row)];
      const uint16_t half = f32_to_f16(scale);
      if (!std::isfinite(f16_to_f32(half)))
        return fail(ErrorCode::numeric_error,
                    fmt::format("tensor {} holds the scale {}; {}", quote(scales.name), scale,
                                std::isfinite(scale) ? "the largest that f16 has is 65504"
                                                     : "the file is of no use, take another"));
      out[static_cast<size_t>(at)] = half;
    }
  return out;
}

// Codes of the rows [first, first + count), [count][cols] in the order of the columns.
void HfPackedMatrix::unpack(int64_t first, int64_t count, uint8_t* codes) const {
  const IntegerTensor& packed = *parts_.codes->view;
  const auto put = [&](int64_t row, int64_t input, uint32_t word, int64_t i) {
    codes[(row - first) * cols_ + place(input)] = static_cast<uint8_t>(code_at(word, i));
  };
  if (how_.method == PackingMethod::awq) {
    for (int64_t input = 0; input < cols_; ++input)
      for (int64_t row = first; row < first + count; row += kPerWord) {
        const uint32_t word = word_at(packed, (input * rows_ + row) / kPerWord);
        for (int64_t i = 0; i < kPerWord; ++i)
          put(row + kAwqOutput[static_cast<size_t>(i)], input, word, i);
      }
    return;
  }
  const bool by_output = how_.method == PackingMethod::compressed;
  for (int64_t eight = 0; eight < cols_ / kPerWord; ++eight)
    for (int64_t row = first; row < first + count; ++row) {
      const uint32_t word =
          word_at(packed, by_output ? row * (cols_ / kPerWord) + eight : eight * rows_ + row);
      for (int64_t i = 0; i < kPerWord; ++i) put(row, eight * kPerWord + i, word, i);
    }
}

Result<void> HfPackedMatrix::write(DType type, int64_t half_turn_rows, std::byte* out) const {
  OCTAVO_TRY(const std::vector<uint16_t> scales, read_scales());
  const size_t bytes = row_bytes(type, static_cast<size_t>(cols_));
  std::vector<uint8_t> codes(static_cast<size_t>(kTile * cols_));
  const auto write_row = [&](int64_t row, const uint8_t* from, std::byte* to) {
    for (const int32_t group : block_groups_) {
      const uint16_t scale = scales[static_cast<size_t>(row * num_groups_ + group)];
      if (type == DType::q4_0) {
        BlockQ4_0 block{.d = scale, .qs = {}};
        set_codes(from, block);
        std::memcpy(to, &block, sizeof(block));
        to += sizeof(block);
      } else {
        BlockQ4_Z block{.d = scale, .z = static_cast<uint8_t>(zero(row, group)), .qs = {}};
        set_codes(from, block);
        std::memcpy(to, &block, sizeof(block));
        to += sizeof(block);
      }
      from += kBlock;
    }
  };
  for (int64_t first = 0; first < rows_; first += kTile) {
    const int64_t count = std::min(kTile, rows_ - first);
    unpack(first, count, codes.data());
    for (int64_t i = 0; i < count; ++i)
      write_row(first + i, codes.data() + i * cols_,
                out + static_cast<size_t>(interleaved(first + i, half_turn_rows)) * bytes);
  }
  return {};
}

void HfPackedMatrix::drop() const {
  for (const auto* part : {&parts_.codes, &parts_.zeros, &parts_.groups})
    if (*part) (*part)->file->drop((*part)->view->data);
  parts_.scales->file->drop(parts_.scales->view->data);
}

}  // namespace octavo
