#include "cli/sampling_options.h"

#include <limits>

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
  engine.kv_cache_dtype = options.text("kv_cache_dtype");
  engine.threads = options.integer("threads");
  engine.enforce_eager = options.flag("enforce_eager");
  engine.block_size = options.integer("block_size");
  engine.max_num_batched_tokens = options.integer("max_num_batched_tokens");
  if (options.flag("pack_cache")) engine.pack_folder = packs_folder();
  if (options.has("kv_cache")) engine.kv_cache = options.text("kv_cache") == "on";
  return engine;
}

}  // namespace octavo::cli
