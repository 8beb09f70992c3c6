#include "model/kv_facts.h"

#include <fmt/format.h>

#include <string_view>

#include "model/model_config.h"

namespace octavo {
namespace {

// Files of some families give a window but not which layers have it: every N-th layer sees
// everything. 0: none does.
int window_pattern(std::string_view family) {
  const Architecture* known = find_architecture(family);
  if (known) return known->window_pattern;
  return family == "gemma2" ? 2 : 0;
}

constexpr uint64_t kMaxCount = 1 << 22;

class Reader {
 public:
  Reader(const ModelSource& file, std::string family) : file_(file), family_(std::move(family)) {}

  std::string key(std::string_view name) const { return fmt::format("{}.{}", family_, name); }

  Result<std::optional<int>> find(std::string_view name) const {
    OCTAVO_TRY(const auto layers, file_.find_u64(key("block_count")));
    OCTAVO_TRY(const auto value, file_.find_layers_u64(key(name), layers.value_or(0)));
    if (!value) return std::nullopt;
    if (*value < 1 || *value > kMaxCount)
      return file_.error(*file_.find(key(name)), fmt::format("is {}", *value));
    return static_cast<int>(*value);
  }

  bool is_zero(std::string_view name) const {
    const auto value = file_.get_u64(key(name));
    return value && *value == 0;
  }

  Result<int> get(std::string_view name) const {
    OCTAVO_TRY(const std::optional<int> value, find(name));
    if (value) return *value;
    return fail(ErrorCode::corrupt_file,
                fmt::format("{}: key '{}' is missing", file_.file(), key(name)));
  }

 private:
  const ModelSource& file_;
  std::string family_;
};

Result<std::vector<int>> read_windows(const Reader& reader, const std::string& family, int layers) {
  if (reader.is_zero("attention.sliding_window")) return std::vector<int>{};
  OCTAVO_TRY(const std::optional<int> window, reader.find("attention.sliding_window"));
  if (!window) return std::vector<int>{};
  OCTAVO_TRY(const std::optional<int> every, reader.find("attention.sliding_window_pattern"));
  return layer_windows(layers, *window, every.value_or(window_pattern(family)));
}

}  // namespace

Result<KvFacts> read_kv_facts(const ModelSource& file) {
  OCTAVO_TRY(const std::string_view family, file.get_string("general.architecture"));
  KvFacts facts{.family = std::string(family), .shape = {}, .context_length = {}};
  const Reader reader(file, facts.family);
  OCTAVO_TRY(facts.shape.num_layers, reader.get("block_count"));
  OCTAVO_TRY(facts.shape.num_heads, reader.get("attention.head_count"));
  OCTAVO_TRY(const auto kv_heads, reader.find("attention.head_count_kv"));
  facts.shape.num_kv_heads = kv_heads.value_or(facts.shape.num_heads);
  OCTAVO_TRY(const int hidden, reader.get("embedding_length"));
  OCTAVO_TRY(const auto key_length, reader.find("attention.key_length"));
  OCTAVO_TRY(const auto value_length, reader.find("attention.value_length"));
  facts.shape.head_dim = key_length.value_or(hidden / facts.shape.num_heads);
  if (value_length.value_or(facts.shape.head_dim) != facts.shape.head_dim)
    return fail(ErrorCode::unsupported,
                fmt::format("{}: keys of {} and values of {} dims are not supported", file.file(),
                            facts.shape.head_dim, *value_length));
  OCTAVO_TRY(facts.shape.windows, read_windows(reader, facts.family, facts.shape.num_layers));
  OCTAVO_TRY(const auto context, reader.find("context_length"));
  if (context) facts.context_length = *context;
  return facts;
}

}  // namespace octavo
