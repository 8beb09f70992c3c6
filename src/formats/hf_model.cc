#include "formats/hf_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "formats/hf_pooling.h"
#include "formats/hf_row_order.h"
#include "formats/hf_tokenizer.h"
#include "formats/quote.h"
#include "formats/weight_fault.h"
#include "tensor/dequant.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;

std::string_view text_of(const FileMap& map) {
  return {reinterpret_cast<const char*>(map.bytes().data()), map.size()};
}

std::string name_of(const std::string& folder) {
  std::error_code error;
  const fs::path real = fs::canonical(folder, error);
  return error ? folder : real.filename().string();
}

bool is_query_or_key(std::string_view name) {
  return name.ends_with(".attn_q.weight") || name.ends_with(".attn_k.weight") ||
         name.ends_with(".attn_q.bias") || name.ends_with(".attn_k.bias");
}

bool is_norm(std::string_view name) { return name.ends_with("norm.weight"); }
bool is_router(std::string_view name) { return name.ends_with(".ffn_gate_inp.weight"); }

}  // namespace

Result<std::unique_ptr<HfModel>> HfModel::open(const std::string& folder, WeightTypes types) {
  OCTAVO_TRY(FileMap config, FileMap::open(folder + "/config.json"));
  OCTAVO_TRY(HfMetadata hf, read_hf_metadata(text_of(config), config.path(), name_of(folder)));
  OCTAVO_CHECK_OK(read_hf_pooling(folder, hf.family->architecture, hf.keys));
  OCTAVO_TRY(GgufMetadata metadata, GgufMetadata::create(folder, hf.keys.entries()));
  // Checkpoints of encoders hold the numbers of positions.
  const bool has_integers = hf.quantization || hf.family->encoder;
  const Integers integers = has_integers ? Integers::read : Integers::refused;
  OCTAVO_TRY(Shards shards, Shards::open(folder, integers));
  std::unique_ptr<HfModel> model(
      new HfModel(std::move(metadata), std::move(hf), std::move(shards), std::move(config)));
  OCTAVO_CHECK_OK(model->add_tensors(types));
  return model;
}

HfModel::HfModel(GgufMetadata metadata, HfMetadata hf, Shards shards, FileMap config)
    : ModelSource(std::move(metadata)),
      hf_(std::move(hf)),
      shards_(std::move(shards)),
      config_(std::move(config)) {}

tl::unexpected<Error> HfModel::tensor_error(std::string_view hf_name, std::string_view what,
                                            ErrorCode code) const {
  return fail(code, fmt::format("{}: tensor {} {}", file(), quote(hf_name), what));
}

std::array<int64_t, 4> HfModel::Part::shape() const {
  return packed ? std::array<int64_t, 4>{packed->cols(), packed->rows(), 1, 1} : plain.view->shape;
}

Result<std::vector<HfModel::Part>> HfModel::find_parts() const {
  std::vector<Part> parts;
  const auto add_plain = [&](std::span<const ShardTensor> tensors) {
    for (const ShardTensor& tensor : tensors) parts.push_back({tensor.view->name, tensor});
  };
  if (!hf_.quantization) {
    for (const ShardIntegers& part : shards_.integers()) {
      const auto found = gguf_name_of(*hf_.family, part.view->name);
      if (!found || !found->ignored)
        return tensor_error(part.view->name, "holds integers, which no weight has",
                            ErrorCode::unsupported);
    }
    add_plain(shards_.tensors());
    return parts;
  }
  OCTAVO_TRY(const PackedModules found, PackedModules::find(shards_, *hf_.quantization));
  add_plain(found.plain);
  for (const auto& [module, packed] : found.modules) {
    auto matrix = HfPackedMatrix::create(module, packed, *hf_.quantization);
    if (!matrix)
      return fail(matrix.error().code, fmt::format("{}: {}", file(), matrix.error().message));
    parts.push_back({.name = module + ".weight", .packed = std::move(*matrix)});
  }
  return parts;
}

// Of a tensor of GGUF's name, whether the model has it.
bool HfModel::has_bias(std::string_view name) const {
  if (name.find(".ffn_") != std::string_view::npos) return hf_.mlp_bias;
  const bool output = name.ends_with(".attn_output.bias");
  return hf_.attention_bias || (hf_.family->qkv_bias && !output);
}

// Packers write biases of zeros for every matrix.
Result<void> HfModel::check_unused_bias(const Part& part) const {
  const TensorView& bias = *part.plain.view;
  const int64_t count = bias.cols() * bias.rows();
  std::vector<float> values(static_cast<size_t>(count));
  dequantize_row(bias.type, bias.data.data(), values.data(), count);
  if (std::ranges::all_of(values, [](float value) { return value == 0; })) return {};
  return tensor_error(part.name, "is a bias, which the model has not as config.json describes it",
                      ErrorCode::unsupported);
}

// Those that config.json promises; of others the model's description knows.
Result<void> HfModel::check_biases() const {
  constexpr std::array kAttention = {"attn_q", "attn_k", "attn_v", "attn_output"};
  constexpr std::array kMlp = {"ffn_gate", "ffn_up", "ffn_down"};
  for (int layer = 0; layer < hf_.num_layers; ++layer) {
    const auto check = [&](bool promised, std::span<const char* const> names) -> Result<void> {
      for (const char* matrix : names)
        if (const auto name = fmt::format("blk.{}.{}.bias", layer, matrix);
            promised && !find_tensor(name))
          return tensor_error(hf_name_of(*hf_.family, name), "is missing", ErrorCode::corrupt_file);
      return {};
    };
    OCTAVO_CHECK_OK(check(hf_.attention_bias, kAttention));
    OCTAVO_CHECK_OK(check(hf_.mlp_bias, kMlp));
  }
  return {};
}

Result<void> HfModel::add_part(Part part) {
  const auto text_name = hf_.multimodal ? text_part_name(part.name) : part.name;
  if (!text_name) {
    ++num_of_images_;
    return {};
  }
  const auto found = gguf_name_of(*hf_.family, *text_name);
  const bool unused_bias =
      part.name.ends_with(".bias") && !hf_.family->encoder && !(found && has_bias(found->name));
  if (unused_bias) return check_unused_bias(part);
  if (!found)
    return tensor_error(part.name,
                        fmt::format("is not part of the family {} as this program knows it",
                                    hf_.family->model_type),
                        ErrorCode::unsupported);
  const bool unused_head = hf_.tied_head && found->name == "output.weight";
  if (found->ignored || unused_head) return {};
  const auto [it, added] = numbers_.emplace(found->name, tensors_.size());
  if (added) {
    tensors_.emplace_back().name = found->name;
    recipes_.emplace_back();
  }
  auto& parts = recipes_[it->second].parts;
  const size_t place = static_cast<size_t>(found->expert.value_or(0));
  const auto limit = static_cast<size_t>(found->expert ? hf_.num_experts : 1);
  if (place >= limit)
    return tensor_error(part.name,
                        fmt::format("is of an expert beyond the {} of config.json", limit),
                        ErrorCode::corrupt_file);
  parts.resize(limit);
  if (!parts[place].name.empty())
    return tensor_error(part.name,
                        fmt::format("stands for the same as {}", quote(parts[place].name)),
                        ErrorCode::unsupported);
  parts[place] = std::move(part);
  return {};
}

Result<void> HfModel::add_tensors(const WeightTypes& types) {
  if (hf_.quantization && types.matrices && info(*types.matrices).quantized)
    return fail(
        ErrorCode::invalid_argument,
        fmt::format("{}: the weights are quantised by {} already; leave --quantization away",
                    file(), name(hf_.quantization->method)));
  OCTAVO_TRY(std::vector<Part> parts, find_parts());
  for (Part& part : parts) OCTAVO_CHECK_OK(add_part(std::move(part)));
  for (size_t i = 0; i < tensors_.size(); ++i) OCTAVO_CHECK_OK(finish(i, types));
  for (const HfMadeVector& made : hf_.vectors) {
    TensorView& tensor = tensors_.emplace_back();
    tensor.name = made.name;
    tensor.data = std::as_bytes(std::span(made.values));
    tensor.shape[0] = static_cast<int64_t>(made.values.size());
    recipes_.emplace_back();
  }
  std::vector<std::string_view> names;
  for (const TensorView& tensor : tensors_) names.push_back(tensor.name);
  index_ = NameIndex(names);
  OCTAVO_CHECK_OK(check_biases());
  if (types.matrices) conversion_ = fmt::format("matrices as {}", octavo::name(*types.matrices));
  if (!hf_.tied_head && !find_tensor("output.weight"))
    return tensor_error("lm_head.weight", "is missing, and tie_word_embeddings is not true",
                        ErrorCode::corrupt_file);
  return {};
}

// All are there and alike.
Result<void> HfModel::check_parts(const TensorView& tensor, const Recipe& recipe) const {
  const Part& first = recipe.parts[0];
  for (size_t i = 0; i < recipe.parts.size(); ++i) {
    const Part& part = recipe.parts[i];
    if (part.name.empty())
      return tensor_error(hf_name_of(*hf_.family, tensor.name),
                          fmt::format("is missing for expert {}", i), ErrorCode::corrupt_file);
    const bool alike = part.shape() == first.shape() && !part.packed == !first.packed &&
                       (part.packed || part.plain.view->type == first.plain.view->type);
    if (!alike)
      return tensor_error(part.name,
                          fmt::format("differs in shape or type from {}", quote(first.name)),
                          ErrorCode::corrupt_file);
    if (recipe.parts.size() > 1 && part.packed && !part.packed->order().empty())
      return tensor_error(part.packed->name(),
                          "is of an expert and in act-order, which is not supported",
                          ErrorCode::unsupported);
  }
  return {};
}

// Shape and type, and how it is made.
Result<void> HfModel::finish(size_t index, const WeightTypes& types) {
  TensorView& tensor = tensors_[index];
  Recipe& recipe = recipes_[index];
  OCTAVO_CHECK_OK(check_parts(tensor, recipe));
  const Part& first = recipe.parts[0];
  tensor.shape = first.shape();
  tensor.rank = first.rank();
  const bool of_experts = tensor.name.find("_exps.") != std::string::npos;
  const int expected_rank = tensor.name.ends_with(".bias") ? 1 : 2;
  if ((of_experts || is_query_or_key(tensor.name)) && first.rank() != expected_rank)
    return tensor_error(
        first.name, fmt::format("has {} dimensions; {} are expected", first.rank(), expected_rank),
        ErrorCode::corrupt_file);
  if (of_experts) {
    tensor.shape[2] = static_cast<int64_t>(recipe.parts.size());
    tensor.rank = 3;
  }
  recipe.plus_one = hf_.family->norms_from_zero && is_norm(tensor.name);
  if (hf_.family->permuted_qk && is_query_or_key(tensor.name)) {
    const int64_t rows = tensor.rank == 1 ? tensor.cols() : tensor.rows();
    if (rows % hf_.head_dim != 0 || hf_.head_dim % 2 != 0)
      return tensor_error(
          first.name,
          fmt::format("has {} rows, which is no number of heads of {}", rows, hf_.head_dim),
          ErrorCode::corrupt_file);
    recipe.permuted_heads = static_cast<int>(rows / hf_.head_dim);
  }
  OCTAVO_TRY(tensor.type, type_of(tensor, recipe, types));
  if (lies_ready(tensor, recipe)) tensor.data = first.plain.view->data;
  return {};
}

Result<DType> HfModel::type_of(const TensorView& tensor, const Recipe& recipe,
                               const WeightTypes& types) const {
  const Part& first = recipe.parts[0];
  if (first.packed) {
    const bool symmetric = std::ranges::all_of(
        recipe.parts, [](const Part& part) { return part.packed->symmetric(); });
    if (tensor.rank >= 2 && !is_router(tensor.name)) return symmetric ? DType::q4_0 : DType::q4_z;
    return tensor_error(first.packed->name(), "stands for a tensor that is never packed",
                        ErrorCode::unsupported);
  }
  if (tensor.rank < 2 || is_router(tensor.name)) return DType::f32;
  const DType type = types.matrices.value_or(first.plain.view->type);
  const int block = info(type).block_elements;
  if (tensor.cols() % block == 0) return type;
  return tensor_error(first.name,
                      fmt::format("has rows of {} values, which blocks of {} do not divide; leave "
                                  "--quantization away",
                                  tensor.cols(), block),
                      ErrorCode::unsupported);
}

// Safetensors may lie at any byte; kernels want whole elements.
bool HfModel::lies_ready(const TensorView& tensor, const Recipe& recipe) const {
  const Part& first = recipe.parts[0];
  if (recipe.parts.size() > 1 || first.packed || recipe.permuted_heads > 0 || recipe.plus_one)
    return false;
  const TensorView& view = *first.plain.view;
  const size_t alignment = static_cast<size_t>(info(view.type).block_bytes);
  return tensor.type == view.type && reinterpret_cast<uintptr_t>(view.data.data()) % alignment == 0;
}

Result<TensorView> HfModel::read(const TensorView& tensor, std::vector<std::byte>& room) const {
  if (!tensor.data.empty()) return tensor;
  const Recipe& recipe = recipes_[static_cast<size_t>(&tensor - tensors_.data())];
  const size_t part_bytes = row_bytes(tensor.type, static_cast<size_t>(tensor.cols())) *
                            static_cast<size_t>(tensor.shape[1]);
  room.resize(tensor.bytes());
  std::byte* out = room.data();
  for (const Part& part : recipe.parts) {
    OCTAVO_CHECK_OK(read_part(tensor, recipe, part, out));
    out += part_bytes;
  }
  TensorView made = tensor;
  made.data = room;
  return made;
}

Result<void> HfModel::read_part(const TensorView& tensor, const Recipe& recipe, const Part& part,
                                std::byte* out) const {
  if (part.packed) {
    auto written = part.packed->write(tensor.type, recipe.permuted_heads ? hf_.head_dim : 0, out);
    if (written) return {};
    return fail(written.error().code, fmt::format("{}: {}", file(), written.error().message));
  }
  const TensorView& source = *part.plain.view;
  const int64_t cols = tensor.cols();
  const size_t from = row_bytes(source.type, static_cast<size_t>(cols));
  const size_t to = row_bytes(tensor.type, static_cast<size_t>(cols));
  std::vector<float> values(static_cast<size_t>(cols));
  if (recipe.permuted_heads && tensor.rank == 1) return read_permuted_bias(source, out);
  for (int64_t row = 0; row < tensor.shape[1]; ++row, out += to) {
    const int64_t at = recipe.permuted_heads ? hf_row_of(row, hf_.head_dim) : row;
    const std::byte* in = source.data.data() + static_cast<size_t>(at) * from;
    if (source.type == tensor.type && !recipe.plus_one) {
      std::memcpy(out, in, to);
      continue;
    }
    dequantize_row(source.type, in, values.data(), cols);
    if (recipe.plus_one)
      for (float& value : values) value += 1;
    const WeightFault fault = quantize_checked(tensor.type, values.data(), out, cols);
    if (fault != WeightFault::none)
      return weight_fault_error(file(), part.name, tensor.type, fault,
                                "choose --dtype bfloat16 or auto, and no --quantization");
  }
  return {};
}

Result<void> HfModel::read_permuted_bias(const TensorView& source, std::byte* out) const {
  std::vector<float> values(static_cast<size_t>(source.cols()));
  dequantize_row(source.type, source.data.data(), values.data(), source.cols());
  for (int64_t row = 0; row < source.cols(); ++row)
    std::memcpy(out + row * static_cast<int64_t>(sizeof(float)),
                &values[static_cast<size_t>(hf_row_of(row, hf_.head_dim))], sizeof(float));
  return {};
}

std::span<const int32_t> HfModel::input_order(const TensorView& tensor) const {
  const auto& parts = recipes_[static_cast<size_t>(&tensor - tensors_.data())].parts;
  if (parts.empty() || !parts[0].packed) return {};
  return parts[0].packed->order();
}

std::string HfModel::format() const {
  return fmt::format("safetensors, {} file{}", shards_.files().size(),
                     shards_.files().size() == 1 ? "" : "s");
}

uint64_t HfModel::size() const {
  uint64_t bytes = 0;
  for (const SafetensorsFile& file : shards_.files()) bytes += file.bytes().size();
  return bytes;
}

const TensorView* HfModel::find_tensor(std::string_view name) const {
  const auto i = index_.find(name);
  return i ? &tensors_[*i] : nullptr;
}

void HfModel::drop(const TensorView& tensor) const {
  for (const Part& part : recipes_[static_cast<size_t>(&tensor - tensors_.data())].parts)
    if (part.packed)
      part.packed->drop();
    else
      part.plain.file->drop(part.plain.view->data);
}

std::string HfModel::spelling(std::string_view name) const {
  const auto i = index_.find(name);
  if (i && !recipes_[*i].parts.empty()) return recipes_[*i].parts[0].name;
  return hf_name_of(*hf_.family, name);
}

Result<TokenizerSpec> HfModel::tokenizer() const { return read_hf_tokenizer(file()); }

std::vector<ModelFilePart> HfModel::parts() const {
  std::vector<ModelFilePart> parts = {
      {config_.identity(), config_.bytes(), config_.size(), config_.path()}};
  for (const SafetensorsFile& file : shards_.files())
    if (file.map())
      parts.push_back({file.map()->identity(), file.bytes(), file.data_offset(), file.file()});
  return parts;
}

std::vector<std::string> HfModel::notes() const {
  std::vector<std::string> notes = hf_.notes;
  notes.insert(notes.end(), shards_.notes().begin(), shards_.notes().end());
  if (num_of_images_ > 0)
    notes.push_back(
        fmt::format("{}: {} tensors of the part for images are not used: only text is read", file(),
                    num_of_images_));
  return notes;
}

std::string HfModel::conversion() const { return conversion_; }

}  // namespace octavo
