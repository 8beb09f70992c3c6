#include "cli/sampling_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>

namespace octavo::cli {
namespace {

constexpr int kAnyVocabulary = std::numeric_limits<int>::max();

std::vector<TokenId> to_token_ids(const std::vector<int64_t>& numbers) {
  std::vector<TokenId> ids;
  for (const int64_t number : numbers) ids.push_back(TokenId{static_cast<int32_t>(number)});
  return ids;
}

std::optional<int> find_int(const OptionValues& options, std::string_view name) {
  const auto value = options.find<int64_t>(name);
  return value ? std::optional(static_cast<int>(*value)) : std::nullopt;
}

void read_ends(SamplingParams& params, const OptionValues& options) {
  params.max_tokens = find_int(options, "max_tokens");
  params.min_tokens = options.integer("min_tokens");
  params.stop = options.all<std::string>("stop");
  params.stop_token_ids = to_token_ids(
      options.find<std::vector<int64_t>>("stop_token_ids").value_or(std::vector<int64_t>()));
  params.ignore_eos = options.flag("ignore_eos");
  params.include_stop_str_in_output = options.flag("include_stop_str_in_output");
}

// What one answer in a terminal has no use for.
void read_outputs(SamplingParams& params, const OptionValues& options) {
  params.n = options.integer("n");
  params.skip_special_tokens = options.flag("skip_special_tokens");
  params.logprobs = find_int(options, "logprobs");
  params.prompt_logprobs = find_int(options, "prompt_logprobs");
}

template <class Enum>
Enum read_enum(const OptionValues& options, std::string_view name,
               std::initializer_list<std::pair<std::string_view, Enum>> words) {
  const std::string given = options.text(name);
  for (const auto& [word, value] : words)
    if (word == given) return value;
  throw std::logic_error("no value for " + given);  // a row of the table without one here
}

void read_memory(EngineOptions& engine, const OptionValues& options) {
  engine.max_model_len = options.integer("max_model_len");
  engine.gpu_memory_utilization = options.get<double>("gpu_memory_utilization");
  engine.kv_cache_memory_bytes = options.get<int64_t>("kv_cache_memory_bytes");
  engine.enable_prefix_caching = options.flag("enable_prefix_caching");
  engine.shared_prefix_attention = options.flag("shared_prefix_attention");
  engine.prefix_cache_policy = read_enum<EvictionPolicy>(
      options, "prefix_cache_policy", {{"lru", EvictionPolicy::lru}, {"lfu", EvictionPolicy::lfu}});
}

void read_scheduling(EngineOptions& engine, const OptionValues& options) {
  engine.max_num_seqs = find_int(options, "max_num_seqs").value_or(engine.max_num_seqs);
  engine.long_prefill_token_threshold = options.integer("long_prefill_token_threshold");
  if (options.has("max_queue_len")) engine.max_queue_len = options.integer("max_queue_len");
  engine.max_waiting_s = options.get<double>("max_waiting_s");
  engine.max_inter_token_ms = options.get<double>("max_inter_token_ms");
  engine.max_prefill_ratio = options.get<double>("max_prefill_ratio");
  engine.scheduling_policy = read_enum<SchedulingPolicy>(
      options, "scheduling_policy",
      {{"fcfs", SchedulingPolicy::fcfs},
       {"priority", SchedulingPolicy::priority},
       {"shortest-prefill-first", SchedulingPolicy::shortest_prefill_first},
       {"longest-prefix-match", SchedulingPolicy::longest_prefix_match}});
  engine.scheduling_mode = read_enum<SchedulingMode>(
      options, "scheduling_mode",
      {{"continuous", SchedulingMode::continuous}, {"static", SchedulingMode::static_batch}});
  engine.kv_layout = read_enum<KvCacheLayout>(
      options, "kv_layout",
      {{"paged", KvCacheLayout::paged}, {"contiguous", KvCacheLayout::contiguous}});
}

}  // namespace

Result<SamplingParams> read_sampling_params(const OptionValues& options) {
  SamplingParams params;
  params.temperature = options.find<double>("temperature").value_or(params.temperature);
  params.top_p = options.find<double>("top_p").value_or(params.top_p);
  params.top_k = options.integer("top_k");
  params.min_p = options.get<double>("min_p");
  params.seed = options.find<uint64_t>("seed");
  params.presence_penalty = options.get<double>("presence_penalty");
  params.frequency_penalty = options.get<double>("frequency_penalty");
  params.repetition_penalty = options.get<double>("repetition_penalty");
  for (const auto& biases : options.all<std::vector<LogitBias>>("logit_bias"))
    params.logit_bias.insert(params.logit_bias.end(), biases.begin(), biases.end());
  params.bad_words = options.all<std::string>("bad_words");
  params.allowed_token_ids = to_token_ids(
      options.find<std::vector<int64_t>>("allowed_token_ids").value_or(std::vector<int64_t>()));
  read_ends(params, options);
  if (options.command() == Command::generate) read_outputs(params, options);
  OCTAVO_CHECK_OK(validate(params, kAnyVocabulary));
  return params;
}

void use_model_defaults(SamplingParams& params, const OptionValues& options,
                        const CatalogEntry* known) {
  if (!options.is_given("temperature"))
    params.temperature = known ? known->temperature : kDefaultTemperature;
  if (!options.is_given("top_p")) params.top_p = known ? known->top_p : kDefaultTopP;
}

EngineOptions read_engine_options(const OptionValues& options) {
  EngineOptions engine;
  engine.dtype = options.text("dtype");
  engine.quantization = options.text("quantization");
  if (options.has("speculative_config"))
    engine.speculative_config = options.text("speculative_config");
  engine.kv_cache_dtype = options.text("kv_cache_dtype");
  if (options.has("pooling_type")) {
    engine.pooling_type = options.text("pooling_type");
    engine.matryoshka = options.flag("matryoshka");
  }
  engine.threads = options.integer("threads");
  engine.enforce_eager = options.flag("enforce_eager");
  engine.block_size = options.integer("block_size");
  engine.max_num_batched_tokens = options.integer("max_num_batched_tokens");
  if (options.flag("pack_cache")) engine.pack_folder = packs_folder();
  if (options.has("lora")) engine.lora = options.text("lora");
  if (options.has("kv_cache")) engine.kv_cache = options.text("kv_cache") == "on";
  if (options.has("max_model_len")) read_memory(engine, options);
  engine.max_num_seqs = std::min(engine.max_num_seqs, engine.max_num_batched_tokens);
  if (options.has("max_num_seqs")) read_scheduling(engine, options);
  return engine;
}

Result<void> check_engine_flags(const OptionValues& options) {
  const auto refuse = [](std::string message) {
    return fail(ErrorCode::invalid_argument, std::move(message));
  };
  if (options.text("kv_layout") == "contiguous" && options.is_given("enable_prefix_caching") &&
      options.flag("enable_prefix_caching"))
    return refuse(
        "--enable-prefix-caching needs --kv-layout paged: contiguous sequences share nothing");
  const auto seqs = options.find<int64_t>("max_num_seqs");
  const int64_t tokens = options.get<int64_t>("max_num_batched_tokens");
  if (seqs && *seqs > tokens)
    return refuse(
        fmt::format("--max-num-seqs is {} and --max-num-batched-tokens {}: each running sequence "
                    "needs a token of every step; lower the first or raise the second",
                    *seqs, tokens));
  return {};
}

}  // namespace octavo::cli
