#include "engine/load.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/cores.h"
#include "formats/gguf.h"
#include "formats/gguf_tokenizer.h"
#include "kernels/isa.h"
#include "kv/block_size.h"

namespace octavo {
namespace {

constexpr int kMaxThreads = 1024;

// More threads than cores wait for each other's turns; steps take many times as long.
void note_threads(LoadedEngine& engine, int asked, int threads) {
  if (asked > threads)
    engine.notes.push_back(fmt::format(
        "--threads {} is more than the cores this process may use; using {}", asked, threads));
}

Result<ComputeType> compute_type(const std::string& dtype) {
  if (dtype == "auto") return ComputeType::automatic;
  if (dtype == "float32") return ComputeType::float32;
  return fail(ErrorCode::invalid_argument,
              fmt::format("dtype is '{}'; it may be auto or float32", dtype));
}

Result<KvType> kv_cache_type(const std::string& name, ComputeType compute) {
  if (name == "auto") return compute == ComputeType::float32 ? KvType::f32 : KvType::f16;
  if (const auto type = kv_type_from_name(name)) return *type;
  return fail(ErrorCode::invalid_argument,
              fmt::format("kv_cache_dtype is '{}'; it may be auto, float32, float16, bfloat16 or "
                          "int8",
                          name));
}

Result<int> thread_count(int asked) {
  if (asked < 0 || asked > kMaxThreads)
    return fail(ErrorCode::invalid_argument,
                fmt::format("threads is {}; it must be 0 (all cores) to {}", asked, kMaxThreads));
  const int cores = available_cores();
  return asked == 0 ? cores : std::min(asked, cores);
}

Result<TransformerOptions> transformer_options(const EngineOptions& options,
                                               const ModelConfig& config) {
  TransformerOptions out;
  OCTAVO_TRY(out.dtype, compute_type(options.dtype));
  OCTAVO_TRY(out.kv_cache_dtype, kv_cache_type(options.kv_cache_dtype, out.dtype));
  OCTAVO_CHECK_OK(check_block_size(options.block_size));
  out.block_size = options.block_size;
  // Address space for whole contexts; the system gives memory as blocks are written.
  const int64_t blocks =
      blocks_for(config.context_length, options.block_size) * options.max_num_seqs;
  if (blocks > BlockPool::kMaxBlocks)
    return fail(ErrorCode::resource_exhausted,
                fmt::format("{} sequences of {} tokens need more than {} KV blocks",
                            options.max_num_seqs, config.context_length, BlockPool::kMaxBlocks));
  out.num_blocks = static_cast<int>(blocks);
  out.max_num_batched_tokens = options.max_num_batched_tokens;
  out.reuse_steps = !options.enforce_eager;
  return out;
}

void load_chat_template(LoadedEngine& engine) {
  if (engine.tokenizer->chat_template().empty()) return;
  auto parsed = ChatTemplate::parse(engine.tokenizer->chat_template());
  if (parsed)
    engine.chat_template = std::move(*parsed);
  else
    engine.chat_template_error = parsed.error();
}

// The place of the model's pack, or nullptr; the pack itself goes to engine.pack. Whatever is wrong
// with it, the model can be loaded without.
std::shared_ptr<const PackCache> open_pack(LoadedEngine& engine, const std::string& folder,
                                           const GgufFile& file) {
  if (folder.empty()) return nullptr;
  const auto refuse = [&](const Error& error) {
    if (error.code == ErrorCode::invalid_argument)
      engine.notes.push_back(fmt::format(
          "{}, so weights are not kept there for the next start; --no-pack-cache says that this is "
          "meant",
          error.message));
    return nullptr;
  };
  auto cache = PackCache::open(folder, file);
  if (!cache) return refuse(cache.error());
  auto pack = cache->find(file);
  if (!pack) return refuse(pack.error());
  engine.pack = std::move(*pack);
  return std::make_shared<const PackCache>(std::move(*cache));
}

GeneratorOptions generator_options(const EngineOptions& options, const LoadedEngine& engine) {
  GeneratorOptions out{.kv_cache = options.kv_cache, .pool = engine.pool.get()};
  if (engine.pack_job)
    out.check_weights = [job = engine.pack_job.get()](bool wait) {
      return wait ? job->verdict() : job->status();
    };
  return out;
}

}  // namespace

Result<LoadedEngine> load_engine(const EngineOptions& options) {
  LoadedEngine engine;
  OCTAVO_TRY(const kernels::Ops* ops, kernels::select_isa_from_environment());
  OCTAVO_TRY(const int threads, thread_count(options.threads));
  OCTAVO_TRY(const GgufFile file, GgufFile::open(options.model));
  OCTAVO_TRY(engine.config, read_model_config(file));
  OCTAVO_TRY(const TransformerOptions model_options, transformer_options(options, engine.config));
  OCTAVO_TRY(TokenizerSpec spec, read_tokenizer_spec(file));
  OCTAVO_TRY(Tokenizer tokenizer, Tokenizer::create(std::move(spec)));
  engine.tokenizer = std::make_unique<Tokenizer>(std::move(tokenizer));
  load_chat_template(engine);

  OCTAVO_TRY(engine.pool, ThreadPool::create(threads));
  const auto packs = open_pack(engine, options.pack_folder, file);
  OCTAVO_TRY(ModelWeights weights, load_weights(file, engine.config, *engine.pool,
                                                options.on_progress, engine.pack.get()));
  std::vector<PackedTensor> tensors = std::move(weights.tensors);
  OCTAVO_TRY(engine.model, Transformer::create(engine.config, std::move(weights), *ops,
                                               *engine.pool, model_options));
  if (packs)
    engine.pack_job = engine.pack ? PackJob::check(packs, *engine.pack)
                                  : PackJob::write(packs, std::move(tensors));
  OCTAVO_TRY(engine.generator, Generator::create(*engine.model, *engine.tokenizer,
                                                 generator_options(options, engine)));
  engine.isa = ops->isa;
  note_threads(engine, options.threads, threads);
  return engine;
}

}  // namespace octavo
