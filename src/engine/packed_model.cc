#include "engine/packed_model.h"

#include <fmt/format.h>

#include <utility>

namespace octavo {
namespace {

// The place of the model's pack, or nullptr; the pack itself goes to out.pack.
std::shared_ptr<const PackCache> open_pack(PackedModel& out, const std::string& folder,
                                           const ModelSource& file) {
  if (folder.empty()) return nullptr;
  const auto refuse = [&](const Error& error) {
    if (error.code == ErrorCode::invalid_argument)
      out.note = fmt::format(
          "{}, so weights are not kept there for the next start; --no-pack-cache says that this is "
          "meant",
          error.message);
    return nullptr;
  };
  auto cache = PackCache::open(folder, file);
  if (!cache) return refuse(cache.error());
  auto pack = cache->find(file);
  if (!pack) return refuse(pack.error());
  out.pack = std::move(*pack);
  return std::make_shared<const PackCache>(std::move(*cache));
}

}  // namespace

Result<PackedModel> load_packed_model(const ModelSource& file, const ModelConfig& config,
                                      const TransformerOptions& transformer,
                                      const kernels::Ops& ops, ThreadPool& pool,
                                      const PackedModelOptions& options) {
  PackedModel out;
  const auto packs = open_pack(out, options.folder, file);
  OCTAVO_TRY(ModelWeights weights,
             load_weights(file, config, pool, options.on_progress, out.pack.get(), options.stop));
  std::vector<PackedTensor> tensors = std::move(weights.tensors);
  OCTAVO_TRY(out.model, Transformer::create(config, std::move(weights), ops, pool, transformer));
  if (packs)
    out.pack_job =
        out.pack ? PackJob::check(packs, *out.pack) : PackJob::write(packs, std::move(tensors));
  return out;
}

}  // namespace octavo
