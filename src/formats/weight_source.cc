#include "formats/weight_source.h"

#include <fmt/format.h>

#include <charconv>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>

#include "formats/gguf_parts.h"
#include "formats/gguf_tokenizer_pairs.h"
#include "formats/quote.h"
#include "tensor/dequant.h"

namespace octavo {
namespace {

constexpr std::string_view kEmbedding = "token_embd.weight";

Result<int> num_experts(const ModelSource& model) {
  OCTAVO_TRY(const auto family, model.find_string("general.architecture"));
  if (!family) return 0;
  OCTAVO_TRY(const auto experts, model.find_i32(fmt::format("{}.expert_count", *family)));
  return experts.value_or(0);
}

// 3 and "attn_q.weight" of "blk.3.attn_q.weight"; nothing outside of layers.
struct LayerPart {
  int64_t layer;
  std::string_view part;
};

std::optional<LayerPart> layer_part(std::string_view name) {
  constexpr std::string_view kPrefix = "blk.";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  int64_t layer = 0;
  const char* end = name.data() + name.size();
  const auto [after, error] = std::from_chars(name.data() + kPrefix.size(), end, layer);
  if (error != std::errc{} || after == end) return std::nullopt;
  return LayerPart{layer, {after + 1, static_cast<size_t>(end - after - 1)}};
}

tl::unexpected<Error> tensor_error(const HfModel& folder, std::string_view name,
                                   std::string_view what) {
  return fail(ErrorCode::corrupt_file,
              fmt::format("{}: tensor {} {}", folder.file(), quote(folder.spelling(name)), what));
}

Result<void> check_layer(const HfModel& folder, int64_t layer,
                         const std::map<std::string_view, const TensorView*>& parts) {
  for (const auto& [part, first] : parts) {
    const std::string name = fmt::format("blk.{}.{}", layer, part);
    const TensorView* tensor = folder.find_tensor(name);
    if (!tensor) return tensor_error(folder, name, "is missing");
    if (tensor->shape != first->shape)
      return tensor_error(
          folder, name,
          fmt::format("has another shape than {} has", quote(folder.spelling(first->name))));
  }
  return {};
}

// What is not there now would be missed only when the new file is loaded.
Result<void> check_complete(const HfModel& folder) {
  for (const std::string_view name : {kEmbedding, std::string_view("output_norm.weight")})
    if (!folder.find_tensor(name)) return tensor_error(folder, name, "is missing");
  OCTAVO_TRY(const std::string_view family, folder.get_string("general.architecture"));
  OCTAVO_TRY(const uint32_t layers, folder.get_u32(fmt::format("{}.block_count", family)));
  std::map<std::string_view, const TensorView*> parts;  // of any layer
  for (const TensorView& tensor : folder.tensors()) {
    const auto part = layer_part(tensor.name);
    if (part && part->layer >= layers)
      return tensor_error(folder, tensor.name,
                          fmt::format("is of a layer beyond the {} of config.json", layers));
    if (part) parts.emplace(part->part, &tensor);
  }
  for (uint32_t layer = 0; layer < layers; ++layer)
    OCTAVO_CHECK_OK(check_layer(folder, layer, parts));
  return {};
}

// With the columns in the order of the inputs, as a GGUF file has them.
Result<TensorView> read_in_order(const HfModel& folder, const TensorView& tensor,
                                 std::vector<std::byte>& room) {
  const std::span<const int32_t> order = folder.input_order(tensor);
  if (order.empty()) return folder.read(tensor, room);
  std::vector<std::byte> packed;
  OCTAVO_TRY(const TensorView stored, folder.read(tensor, packed));
  const auto cols = static_cast<size_t>(tensor.cols());
  const size_t from = row_bytes(stored.type, cols), to = cols * sizeof(float);
  room.resize(to * static_cast<size_t>(tensor.rows()));
  std::vector<float> values(cols), ordered(cols);
  for (int64_t row = 0; row < tensor.rows(); ++row) {
    const auto at = static_cast<size_t>(row);
    dequantize_row(stored.type, stored.data.data() + at * from, values.data(), tensor.cols());
    for (size_t i = 0; i < cols; ++i) ordered[static_cast<size_t>(order[i])] = values[i];
    std::memcpy(room.data() + at * to, ordered.data(), to);
  }
  TensorView made = tensor;
  made.type = DType::f32;
  made.data = room;
  return made;
}

// What other programs do not read of it.
Result<void> note_rope(const HfModel& folder, std::vector<std::string>& notes) {
  OCTAVO_TRY(const std::string_view family, folder.get_string("general.architecture"));
  OCTAVO_TRY(const auto kind, folder.find_string(fmt::format("{}.rope.scaling.type", family)));
  if (kind == "dynamic")
    notes.emplace_back("rope is scaled in the way 'dynamic', which llama.cpp does not read");
  return {};
}

}  // namespace

Result<WeightSource> weight_source(const ModelSource& gguf) {
  WeightSource source{.name = gguf.file(),
                      .tensors = gguf.tensors(),
                      .drop = [&gguf](const TensorView& tensor) { gguf.drop(tensor); }};
  for (const GgufEntry& entry : gguf.metadata())
    if (!entry.key.starts_with("split.")) source.metadata.copy(entry);
  OCTAVO_TRY(const auto alignment, gguf.find_u32("general.alignment"));
  source.alignment = alignment.value_or(source.alignment);
  OCTAVO_TRY(source.num_experts, num_experts(gguf));
  return source;
}

Result<WeightSource> weight_source(const HfModel& folder) {
  WeightSource source{.name = folder.file(),
                      .tensors = folder.tensors(),
                      .read =
                          [&folder](const TensorView& tensor, std::vector<std::byte>& room) {
                            return read_in_order(folder, tensor, room);
                          },
                      .drop = [&folder](const TensorView& tensor) { folder.drop(tensor); }};
  for (const GgufEntry& entry : folder.metadata()) source.metadata.copy(entry);
  OCTAVO_TRY(source.num_experts, num_experts(folder));
  OCTAVO_TRY(const TokenizerSpec tokenizer, folder.tokenizer());
  const TensorView* embedding = folder.find_tensor(kEmbedding);
  const size_t rows = embedding ? static_cast<size_t>(embedding->rows()) : 0;
  OCTAVO_TRY(source.notes, add_tokenizer_pairs(tokenizer, rows, folder.file(), source.metadata));
  OCTAVO_CHECK_OK(check_complete(folder));
  OCTAVO_CHECK_OK(note_rope(folder, source.notes));
  return source;
}

Result<OpenWeightSource> open_weight_source(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    OCTAVO_TRY(std::unique_ptr<HfModel> folder, HfModel::open(path));
    OCTAVO_TRY(WeightSource weights, weight_source(*folder));
    return OpenWeightSource{std::move(folder), std::move(weights)};
  }
  OCTAVO_TRY(std::unique_ptr<ModelSource> model, open_gguf(path));
  OCTAVO_TRY(WeightSource weights, weight_source(*model));
  return OpenWeightSource{std::move(model), std::move(weights)};
}

}  // namespace octavo
