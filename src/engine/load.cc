#include "engine/load.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "base/cores.h"
#include "base/free_memory.h"
#include "engine/check_tokens.h"
#include "engine/load_drafters.h"
#include "engine/packed_model.h"
#include "engine/sizing.h"
#include "formats/open_model.h"
#include "formats/quote.h"
#include "kernels/isa.h"
#include "kv/block_size.h"
#include "model/memory_estimate.h"
#include "text/template_probe.h"

namespace octavo {
namespace {

constexpr int kMaxThreads = 1024;

// More threads than cores wait for each other's turns; steps take many times as long.
void note_threads(LoadedEngine& engine, int asked, int threads) {
  if (asked > threads)
    engine.notes.push_back(fmt::format(
        "--threads {} is more than the cores this process may use; using {}", asked, threads));
}

// People give the flag that vLLM's guides have; with a GGUF file it asks for nothing.
void note_dtype(LoadedEngine& engine, const EngineOptions& options, const WeightTypes& types) {
  std::error_code error;
  if (types.matrices && !std::filesystem::is_directory(options.model, error))
    engine.notes.push_back(
        fmt::format("--dtype {} changes nothing: the weights of a GGUF file are used as they are",
                    options.dtype));
}

Result<ComputeType> compute_type(const std::string& dtype) {
  // float16 and bfloat16 say how weights are stored: formats/weight_types.h.
  if (dtype == "auto" || dtype == "float16" || dtype == "bfloat16") return ComputeType::automatic;
  if (dtype == "float32") return ComputeType::float32;
  return fail(ErrorCode::invalid_argument,
              fmt::format("dtype is '{}'; it may be auto, float32, float16 or bfloat16", dtype));
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

Result<TransformerOptions> transformer_options(const EngineOptions& options) {
  TransformerOptions out;
  OCTAVO_TRY(out.dtype, compute_type(options.dtype));
  OCTAVO_TRY(out.kv_cache_dtype, kv_cache_type(options.kv_cache_dtype, out.dtype));
  OCTAVO_CHECK_OK(check_block_size(options.block_size));
  out.block_size = options.block_size;
  out.max_num_batched_tokens = options.max_num_batched_tokens;
  out.reuse_steps = !options.enforce_eager;
  out.shared_prefix_attention = options.shared_prefix_attention;
  return out;
}

KvLayout kv_layout(const TransformerOptions& options, const ModelConfig& config) {
  return {.num_layers = config.num_kv_layers(),
          .num_kv_heads = config.num_kv_heads,
          .head_dim = config.head_dim,
          .block_size = options.block_size,
          .type = options.kv_cache_dtype};
}

// An encoder's K and V last for one step and are few: they need not be rounded.
void adapt_to_encoder(const EngineOptions& options, TransformerOptions& out) {
  if (options.kv_cache_dtype == "auto") out.kv_cache_dtype = KvType::f32;
}

// Of the whole sequences that one step of an encoder holds.
int encoder_blocks(const EngineOptions& options) {
  return static_cast<int>(blocks_for(options.max_num_batched_tokens, options.block_size)) +
         options.max_num_seqs;
}

Result<PoolingConfig> pooling_config(const EngineOptions& options, const ModelSource& file,
                                     const ModelConfig& config) {
  OCTAVO_TRY(PoolingConfig pooling, read_pooling_config(file, config));
  pooling.matryoshka |= options.matryoshka;
  if (options.pooling_type == "auto") return pooling;
  const auto type = pooling_from_name(options.pooling_type);
  if (!type)
    return fail(ErrorCode::invalid_argument,
                fmt::format("pooling_type is '{}'; it may be auto, mean, cls or last",
                            options.pooling_type));
  pooling.type = *type;
  return pooling;
}

// What the draft model takes beside the model.
struct DraftMemory {
  int64_t bytes_per_block = 0, weight_bytes = 0, activation_bytes = 0;
};

Result<DraftMemory> draft_memory(const EngineOptions& options, const TransformerOptions& model,
                                 const DraftSource& draft) {
  const KvLayout layout = kv_layout(model, draft.config);
  OCTAVO_CHECK_OK(validate(layout));
  OCTAVO_TRY(const int64_t weights, loaded_weight_bytes(*draft.file));
  return DraftMemory{static_cast<int64_t>(layout.bytes_per_block()), weights,
                     activation_bytes(draft.config, options.max_num_batched_tokens)};
}

Result<Sizing> size_cache(const EngineOptions& options, const KvLayout& layout,
                          const ModelConfig& config, const ModelSource& file,
                          const LoraAdapter* adapter, int max_lora_rank, const DraftMemory& draft) {
  OCTAVO_CHECK_OK(validate(layout));
  OCTAVO_TRY(const int64_t weights, loaded_weight_bytes(file));
  return size_kv_cache(
      {.max_model_len = options.max_model_len,
       .kv_cache_memory_bytes = options.kv_cache_memory_bytes,
       .gpu_memory_utilization = options.gpu_memory_utilization,
       .max_num_seqs = options.max_num_seqs,
       .context_length = config.context_length,
       .block_size = options.block_size,
       .bytes_per_block = static_cast<int64_t>(layout.bytes_per_block()),
       .draft_bytes_per_block = draft.bytes_per_block,
       .weight_bytes =
           weights + static_cast<int64_t>(adapter ? adapter->bytes() : 0) + draft.weight_bytes,
       .activation_bytes = draft.activation_bytes +
                           activation_bytes(config, options.max_num_batched_tokens, max_lora_rank),
       .available_bytes = free_memory_bytes()});
}

// With as many blocks as the model's cache, that a sequence which has room there has it here, too.
Result<PackedModel> load_draft_model(const DraftSource& draft, TransformerOptions options,
                                     const kernels::Ops& ops, ThreadPool& pool,
                                     const PackedModelOptions& packs) {
  options.max_model_len = std::min(options.max_model_len, draft.config.context_length);
  options.max_lora_rank = 0;
  return load_packed_model(*draft.file, draft.config, options, ops, pool, packs);
}

// Nothing if the source is empty or cannot be used; what is wrong goes to `error`.
std::optional<ChatTemplate> parse_template(const std::string& source, Tokenizer& tokenizer,
                                           std::optional<Error>& error) {
  if (source.empty()) return std::nullopt;
  auto parsed = ChatTemplate::parse(source);
  if (parsed) {
    end_turns_with(*parsed, tokenizer);
    return std::move(*parsed);
  }
  error = parsed.error();
  return std::nullopt;
}

Error no_default_template(const std::vector<std::string>& names) {
  std::vector<std::string> quoted;
  for (const std::string& name : names) quoted.push_back(quote(name));
  return {ErrorCode::unsupported,
          fmt::format("the model has the chat templates {} and none called 'default'; give the one "
                      "that is meant with --chat-template",
                      fmt::join(quoted, ", "))};
}

void load_chat_template(LoadedEngine& engine) {
  Tokenizer& tokenizer = *engine.tokenizer;
  std::optional<Error> no_tools;
  engine.chat_template =
      parse_template(tokenizer.chat_template(), tokenizer, engine.chat_template_error);
  engine.tool_template = parse_template(tokenizer.tool_template(), tokenizer, no_tools);
  if (tokenizer.chat_template().empty() && !tokenizer.template_names().empty())
    engine.chat_template_error = no_default_template(tokenizer.template_names());
  if (engine.chat_template_error)
    engine.notes.push_back(
        fmt::format("no chat without --chat-template: {}", engine.chat_template_error->message));
  if (no_tools)
    engine.notes.push_back(
        fmt::format("the chat template for tools cannot be used: {}", no_tools->message));
}

EngineCoreOptions core_options(const EngineOptions& options, const LoadedEngine& engine) {
  EngineCoreOptions out;
  out.scheduler = scheduler_options(options);
  out.scheduler.max_model_len = engine.max_model_len;
  out.pool = engine.pool.get();
  out.adapter = engine.adapter;
  out.max_logprobs = options.max_logprobs;
  out.on_step = options.on_step;
  out.on_idle = options.on_idle;
  if (engine.pack_job)
    out.check_weights = [job = engine.pack_job.get()](bool wait) {
      return wait ? job->verdict() : job->status();
    };
  return out;
}

Result<void> load_tokenizer(const ModelSource& file, LoadedEngine& engine) {
  OCTAVO_TRY(TokenizerSpec spec, file.tokenizer());
  for (std::string& note : spec.notes) engine.notes.push_back(std::move(note));
  OCTAVO_TRY(Tokenizer tokenizer, Tokenizer::create(std::move(spec)));
  engine.tokenizer = std::make_unique<Tokenizer>(std::move(tokenizer));
  load_chat_template(engine);
  OCTAVO_TRY(std::string note,
             check_tokens(file.file(), *engine.tokenizer, engine.config.vocab_size,
                          engine.chat_template ? &*engine.chat_template : nullptr));
  if (!note.empty()) engine.notes.push_back(std::move(note));
  engine.tokenizer->forget_ends_from(TokenId{engine.config.vocab_size});
  if (engine.tokenizer->eog().empty() && !engine.config.architecture->encoder)
    engine.notes.emplace_back(
        "no token ends an answer, by the model's files, the names of its tokens or its chat "
        "template: answers go on to their limit");
  return {};
}

}  // namespace

Result<LoadedEngine> load_model(const EngineOptions& options) {
  LoadedEngine engine;
  OCTAVO_TRY(const SpeculativeConfig speculation,
             parse_speculative_config(options.speculative_config));
  OCTAVO_TRY(const kernels::Ops* ops, kernels::select_isa_from_environment());
  OCTAVO_TRY(const int threads, thread_count(options.threads));
  OCTAVO_TRY(const WeightTypes types, weight_types(options.dtype, options.quantization));
  OCTAVO_TRY(const std::unique_ptr<ModelSource> source, open_model(options.model, types));
  const ModelSource& file = *source;
  for (std::string& note : file.notes()) engine.notes.push_back(std::move(note));
  note_dtype(engine, options, types);
  OCTAVO_TRY(engine.config, read_model_config(file));
  OCTAVO_TRY(TransformerOptions model_options, transformer_options(options));
  OCTAVO_TRY(engine.pooling, pooling_config(options, file, engine.config));
  const bool is_encoder = engine.config.architecture->encoder;
  if (is_encoder) adapt_to_encoder(options, model_options);
  if (is_encoder && !speculation.methods.empty())
    return fail(ErrorCode::invalid_argument,
                "--speculative-config: this model is an encoder and writes nothing that could be "
                "guessed; leave it out");
  if (speculation.uses(DraftMethod::early_exit)) {
    OCTAVO_TRY(engine.early_exit, early_exit_options(speculation, options.pack_folder, file,
                                                     is_encoder ? 0 : engine.config.num_layers));
  }
  const KvLayout layout = kv_layout(model_options, engine.config);
  if (!options.lora.empty()) {
    OCTAVO_TRY(engine.adapter, load_adapter(options.lora, engine.config, kMaxLoraRank));
  }
  model_options.max_lora_rank =
      std::max(options.max_lora_rank, engine.adapter ? engine.adapter->rank() : 0);
  OCTAVO_CHECK_OK(load_tokenizer(file, engine));
  DraftSource draft;
  DraftMemory beside;
  if (speculation.uses(DraftMethod::draft_model)) {
    OCTAVO_TRY(draft, open_draft_model(speculation.model, options, *engine.tokenizer));
    OCTAVO_TRY(beside, draft_memory(options, model_options, draft));
  }
  OCTAVO_TRY(const Sizing sizing,
             size_cache(options, layout, engine.config, file, engine.adapter.get(),
                        model_options.max_lora_rank, beside));
  engine.bytes_per_block = static_cast<int64_t>(layout.bytes_per_block());
  engine.draft_bytes_per_block = beside.bytes_per_block;
  model_options.num_blocks =
      is_encoder ? std::min(sizing.num_blocks, encoder_blocks(options)) : sizing.num_blocks;
  engine.max_model_len = sizing.max_model_len;
  model_options.max_model_len = sizing.max_model_len;
  if (!sizing.note.empty()) engine.notes.push_back(sizing.note);

  OCTAVO_TRY(engine.pool, ThreadPool::create(threads));
  PackedModelOptions packs{.folder = options.pack_folder,
                           .on_progress = options.on_progress,
                           .stop = options.stop_loading};
  OCTAVO_TRY(PackedModel loaded,
             load_packed_model(file, engine.config, model_options, *ops, *engine.pool, packs));
  if (!loaded.note.empty()) engine.notes.push_back(loaded.note);
  engine.pack = std::move(loaded.pack);
  engine.model = std::move(loaded.model);
  engine.pack_job = std::move(loaded.pack_job);
  if (draft.file) {
    packs.on_progress = {};
    OCTAVO_TRY(engine.draft, load_draft_model(draft, model_options, *ops, *engine.pool, packs));
  }
  engine.isa = ops->isa;
  note_threads(engine, options.threads, threads);
  return engine;
}

Result<LoadedEngine> load_engine(const EngineOptions& options) {
  OCTAVO_TRY(LoadedEngine engine, load_model(options));
  OCTAVO_TRY(engine.engine, make_engine(engine, options));
  return engine;
}

Result<void> use_chat_template(LoadedEngine& loaded, ChatTemplate chat_template) {
  end_turns_with(chat_template, *loaded.tokenizer);
  const int num_rows = loaded.config.vocab_size;
  OCTAVO_CHECK_OK(check_tokens("chat_template", *loaded.tokenizer, num_rows, &chat_template));
  loaded.tokenizer->forget_ends_from(TokenId{num_rows});
  loaded.chat_template = std::move(chat_template);
  loaded.tool_template.reset();
  loaded.chat_template_error.reset();
  return {};
}

Result<std::shared_ptr<const LoraAdapter>> load_adapter(const std::string& path,
                                                        const ModelConfig& config, int max_rank) {
  OCTAVO_TRY(const LoraFile file, LoraFile::open(path, config.architecture->name));
  return LoraAdapter::load(file, config, max_rank);
}

DraftingModels drafting_models(const LoadedEngine& loaded) {
  return {.model = *loaded.model,
          .draft_model = loaded.draft.model.get(),
          .early_exit = loaded.early_exit};
}

Result<std::unique_ptr<Engine>> make_engine(const LoadedEngine& loaded,
                                            const EngineOptions& options) {
  OCTAVO_TRY(const SpeculativeConfig config, parse_speculative_config(options.speculative_config));
  DraftingModels models = drafting_models(loaded);
  models.enable_prefix_caching = options.enable_prefix_caching;
  OCTAVO_TRY(auto speculator,
             make_speculator(config, models, static_cast<int>(loaded.tokenizer->vocab_size())));
  return make_engine(loaded, options, std::move(speculator));
}

Result<std::unique_ptr<Engine>> make_engine(const LoadedEngine& loaded,
                                            const EngineOptions& options,
                                            std::unique_ptr<Speculator> speculator) {
  EngineCoreOptions core = core_options(options, loaded);
  core.speculator = std::move(speculator);
  return Engine::create(*loaded.model, *loaded.tokenizer, std::move(core), options.max_queue_len);
}

}  // namespace octavo
