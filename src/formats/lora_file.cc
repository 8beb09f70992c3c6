#include "formats/lora_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>

#include "base/file_map.h"
#include "formats/gguf.h"
#include "formats/hf_families.h"
#include "formats/peft_config.h"
#include "formats/quote.h"
#include "formats/safetensors.h"

namespace octavo {

class LoraFile::Source {
 public:
  std::optional<SafetensorsFile> safetensors;
  std::optional<GgufFile> gguf;
};

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPeftPrefix = "base_model.model.";
constexpr std::string_view kWeight = ".weight";

tl::unexpected<Error> tensor_error(const std::string& file, std::string_view tensor,
                                   std::string_view why, ErrorCode code = ErrorCode::unsupported) {
  return fail(code, fmt::format("{}: tensor {} {}", file, quote(tensor), why));
}

std::string_view without(std::string_view text, std::string_view end) {
  return text.substr(0, text.size() - end.size());
}

// Which half of a pair a tensor is, and of what.
struct Half {
  std::string_view matrix;
  bool is_a;
};

std::optional<Half> half_of(std::string_view name, std::string_view a, std::string_view b) {
  if (name.ends_with(a)) return Half{without(name, a), true};
  if (name.ends_with(b)) return Half{without(name, b), false};
  return std::nullopt;
}

// Halves come in any order.
class Pairs {
 public:
  explicit Pairs(const std::string& file) : file_(file) {}

  Result<void> add(std::string target, std::string_view name, bool is_a, const TensorView& tensor) {
    if (tensor.rank != 2)
      return tensor_error(file_, tensor.name,
                          fmt::format("has {} dimensions; 2 are expected", tensor.rank),
                          ErrorCode::corrupt_file);
    LoraPair& pair = pairs_[target];
    const TensorView*& half = is_a ? pair.a : pair.b;
    if (half)
      return tensor_error(file_, tensor.name,
                          fmt::format("changes the same as {}", quote(half->name)));
    pair.target = std::move(target);
    pair.name = name;
    half = &tensor;
    return {};
  }

  Result<std::vector<LoraPair>> take() {
    std::vector<LoraPair> out;
    for (auto& [target, pair] : pairs_) {
      if (!pair.a || !pair.b)
        return tensor_error(
            file_, (pair.a ? pair.a : pair.b)->name,
            fmt::format("has no counterpart: matrix {} is missing", pair.a ? 'B' : 'A'),
            ErrorCode::corrupt_file);
      if (pair.a->rows() != pair.b->cols())
        return tensor_error(file_, pair.b->name,
                            fmt::format("has {} columns, but {} has {} rows", pair.b->cols(),
                                        quote(pair.a->name), pair.a->rows()),
                            ErrorCode::corrupt_file);
      out.push_back(std::move(pair));
    }
    if (out.empty())
      return fail(ErrorCode::corrupt_file,
                  fmt::format("{}: there are no LoRA matrices in it", file_));
    return out;
  }

 private:
  const std::string& file_;
  std::map<std::string, LoraPair> pairs_;  // by target
};

// --- PEFT -------------------------------------------------------------------------------------

const HfFamily* family_of(std::string_view architecture) {
  const auto families = hf_families();
  const auto it = std::ranges::find(families, architecture, &HfFamily::architecture);
  return it == families.end() ? nullptr : &*it;
}

std::string_view why_not(std::string_view name) {
  if (name.find("lora_magnitude_vector") != name.npos)
    return "is of a DoRA adapter, which scales every row of the matrix as well; only plain LoRA "
           "can "
           "be used";
  if (name.find("lora_embedding") != name.npos)
    return "changes the embedding, which cannot be used";
  if (name.ends_with(".lora_B.bias")) return "is a bias, which cannot be used";
  return "is not of a LoRA adapter; whole modules (modules_to_save) and biases cannot be used";
}

// GGUF's name of the matrix of a module.
Result<std::string> target_of(const HfFamily& family, std::string_view module,
                              const std::string& file, std::string_view tensor) {
  const auto found = gguf_name_of(family, fmt::format("{}{}", module, kWeight));
  if (!found || found->ignored || !found->name.ends_with(kWeight))
    return tensor_error(file, tensor,
                        fmt::format("changes {}, which models of the family {} do not have",
                                    quote(module), family.model_type));
  if (found->expert) return tensor_error(file, tensor, "changes an expert, which cannot be used");
  return std::string(without(found->name, kWeight));
}

Result<void> add_peft_tensor(Pairs& pairs, const HfFamily& family, const TensorView& tensor,
                             const std::string& file) {
  std::string_view name = tensor.name;
  const auto half = half_of(name, ".lora_A.weight", ".lora_B.weight");
  if (!half || !name.starts_with(kPeftPrefix) || half->matrix.size() < kPeftPrefix.size())
    return tensor_error(file, name, why_not(name));
  const std::string_view module = half->matrix.substr(kPeftPrefix.size());
  OCTAVO_TRY(std::string target, target_of(family, module, file, name));
  return pairs.add(std::move(target), module, half->is_a, tensor);
}

bool is_query_or_key(std::string_view target) {
  return target.ends_with(".attn_q") || target.ends_with(".attn_k");
}

// A folder that was saved in the older form, which is a program in itself, says so.
Result<SafetensorsFile> open_peft_tensors(const std::string& folder) {
  auto file = SafetensorsFile::open(folder + "/adapter_model.safetensors");
  std::error_code error;
  if (!file && file.error().code == ErrorCode::not_found &&
      fs::exists(folder + "/adapter_model.bin", error))
    return fail(ErrorCode::unsupported,
                fmt::format("{}/adapter_model.bin is a Python pickle, which can run programs; save "
                            "the adapter as safetensors",
                            folder));
  return file;
}

// --- GGUF -------------------------------------------------------------------------------------

Result<void> check_text(const GgufFile& file, std::string_view key, std::string_view wanted,
                        std::string_view why) {
  OCTAVO_TRY(const std::string_view value, file.get_string(key));
  if (value == wanted) return {};
  return file.error(*file.find(key), fmt::format("is {}; {}", quote(value), why),
                    ErrorCode::unsupported);
}

Result<void> check_keys(const GgufFile& file, std::string_view architecture) {
  OCTAVO_CHECK_OK(check_text(file, "general.type", "adapter", "an adapter's is 'adapter'"));
  OCTAVO_CHECK_OK(check_text(file, "adapter.type", "lora", "only 'lora' can be used"));
  OCTAVO_CHECK_OK(check_text(file, "general.architecture", architecture,
                             fmt::format("the model's is {}", quote(architecture))));
  for (const GgufEntry& entry : file.metadata())
    if (entry.key.starts_with("adapter.") && entry.key != "adapter.type" &&
        entry.key != "adapter.lora.alpha")
      return file.error(entry, "is set, and this program does not know it", ErrorCode::unsupported);
  return {};
}

Result<double> alpha_of(const GgufFile& file) {
  OCTAVO_TRY(const float alpha, file.get_f32("adapter.lora.alpha"));
  if (alpha != 0) return alpha;
  return file.error(*file.find("adapter.lora.alpha"),
                    "is 0, which programs understand in different ways", ErrorCode::unsupported);
}

Result<void> add_gguf_tensor(Pairs& pairs, const TensorView& tensor, const std::string& file) {
  const auto half = half_of(tensor.name, ".weight.lora_a", ".weight.lora_b");
  if (!half) return tensor_error(file, tensor.name, "is not of a LoRA adapter");
  if (half->matrix.ends_with("_exps"))
    return tensor_error(file, tensor.name, "changes experts, which cannot be used");
  return pairs.add(std::string(half->matrix), half->matrix, half->is_a, tensor);
}

}  // namespace

Result<LoraFile> LoraFile::from_peft(std::string_view config, std::shared_ptr<const Source> source,
                                     const std::string& name, std::string_view architecture) {
  const HfFamily* family = family_of(architecture);
  if (!family)
    return fail(
        ErrorCode::unsupported,
        fmt::format("{}: what Hugging Face calls the matrices of the architecture {} is not "
                    "known; convert the adapter to GGUF",
                    name, quote(architecture)));
  OCTAVO_TRY(const PeftConfig peft, parse_peft_config(config, name + "/adapter_config.json"));
  Pairs halves(name);
  for (const TensorView& tensor : source->safetensors->tensors())
    OCTAVO_CHECK_OK(add_peft_tensor(halves, *family, tensor, name));
  OCTAVO_TRY(std::vector<LoraPair> pairs, halves.take());
  for (LoraPair& pair : pairs) {
    OCTAVO_TRY(const PeftConfig::Size size, peft.size_of(pair.name));
    if (pair.a->rows() != size.rank)
      return tensor_error(name, pair.a->name,
                          fmt::format("has {} rows, but its rank by adapter_config.json is {}",
                                      pair.a->rows(), size.rank),
                          ErrorCode::corrupt_file);
    pair.scale = size.scale;
    pair.hf_rows = family->permuted_qk && is_query_or_key(pair.target);
  }
  return LoraFile(name, std::move(source), std::move(pairs));
}

Result<LoraFile> LoraFile::from_gguf(std::shared_ptr<const Source> source, const std::string& name,
                                     std::string_view architecture) {
  const GgufFile& file = *source->gguf;
  OCTAVO_CHECK_OK(check_keys(file, architecture));
  OCTAVO_TRY(const double alpha, alpha_of(file));
  Pairs halves(name);
  for (const TensorView& tensor : file.tensors())
    OCTAVO_CHECK_OK(add_gguf_tensor(halves, tensor, name));
  OCTAVO_TRY(std::vector<LoraPair> pairs, halves.take());
  for (LoraPair& pair : pairs)
    pair.scale = static_cast<float>(alpha / static_cast<double>(pair.a->rows()));
  return LoraFile(name, std::move(source), std::move(pairs));
}

Result<LoraFile> LoraFile::open(const std::string& path, std::string_view architecture) {
  std::error_code error;
  auto source = std::make_shared<Source>();
  if (!fs::is_directory(path, error)) {
    OCTAVO_TRY(source->gguf, GgufFile::open(path));
    return from_gguf(std::move(source), path, architecture);
  }
  OCTAVO_TRY(const FileMap config, FileMap::open(path + "/adapter_config.json"));
  const std::string_view text(reinterpret_cast<const char*>(config.bytes().data()), config.size());
  OCTAVO_TRY(source->safetensors, open_peft_tensors(path));
  return from_peft(text, std::move(source), path, architecture);
}

Result<LoraFile> LoraFile::parse_peft(std::string_view config, std::span<const std::byte> tensors,
                                      const std::string& name, std::string_view architecture) {
  auto source = std::make_shared<Source>();
  OCTAVO_TRY(source->safetensors, SafetensorsFile::parse(tensors, name));
  return from_peft(config, std::move(source), name, architecture);
}

Result<LoraFile> LoraFile::parse_gguf(std::span<const std::byte> bytes, const std::string& name,
                                      std::string_view architecture) {
  auto source = std::make_shared<Source>();
  OCTAVO_TRY(source->gguf, GgufFile::parse(bytes, name));
  return from_gguf(std::move(source), name, architecture);
}

}  // namespace octavo
