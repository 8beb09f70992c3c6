#include "model/pooling_config.h"

#include <fmt/format.h>

#include "model/config_reader.h"

namespace octavo {
namespace {

// GGUF's numbers. 0 is none: such a file says nothing.
constexpr PoolingType kTypes[] = {PoolingType::mean, PoolingType::cls, PoolingType::last};

}  // namespace

Result<PoolingConfig> read_pooling_config(const ModelSource& file, const ModelConfig& config) {
  const ConfigReader reader(file, config.architecture->name);
  PoolingConfig out;
  out.size = config.hidden_size;
  out.is_all = config.architecture->encoder;
  if (out.is_all) out.type = PoolingType::mean;
  OCTAVO_TRY(const auto type, file.find_u64(reader.key("pooling_type")));
  if (type.value_or(0) > std::size(kTypes))
    return reader.error("pooling_type",
                        fmt::format("is {}; mean (1), first token (2) and last token (3) are "
                                    "supported",
                                    *type),
                        ErrorCode::unsupported);
  if (type.value_or(0) > 0) out.type = kTypes[*type - 1];
  OCTAVO_TRY(const auto normalize, file.find_bool(reader.key("pooling_normalize")));
  out.normalize = normalize.value_or(true);
  OCTAVO_TRY(const auto matryoshka, file.find_bool(reader.key("matryoshka")));
  out.matryoshka = matryoshka.value_or(false);
  return out;
}

}  // namespace octavo
