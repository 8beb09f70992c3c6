#include "bench/load_for_run.h"

#include <fmt/format.h>

#include <algorithm>

namespace octavo {
namespace {

int longest_request(const Workload& workload) {
  size_t longest = 1;
  for (const WorkloadRequest& request : workload)
    longest = std::max(
        longest, request.prompt_token_ids.size() + static_cast<size_t>(request.output_tokens));
  return static_cast<int>(longest);
}

}  // namespace

Result<ModelFacts> model_facts(const EngineOptions& options) {
  OCTAVO_TRY(const LoadedEngine loaded, load_engine(options));
  const auto vocabulary = static_cast<int>(loaded.tokenizer->vocab_size());
  // The first ids of a vocabulary are control tokens and single bytes.
  return ModelFacts{
      .tokens = {.first = vocabulary / 10, .last = vocabulary - 1},
      .max_model_len = loaded.max_model_len,
      .kv_bytes_per_block = static_cast<int64_t>(loaded.model->kv_layout().bytes_per_block())};
}

Result<void> check_lengths(const Workload& workload, int max_model_len) {
  const int longest = longest_request(workload);
  if (longest > max_model_len)
    return fail(ErrorCode::context_overflow,
                fmt::format("the longest request has {} tokens with its answer, and sequences may "
                            "have {}; ask for shorter ones with --synthetic, as in "
                            "requests=32,prompt=16-64,output=8-32, of kv-cache with --contexts",
                            longest, max_model_len));
  return {};
}

Result<LoadedEngine> load_for(EngineOptions options, const Workload& workload) {
  const int longest = longest_request(workload);
  if (options.max_model_len == 0) options.max_model_len = longest;
  if (longest > options.max_model_len)
    return fail(ErrorCode::context_overflow,
                fmt::format("the longest request has {} tokens with its answer, but max_model_len "
                            "is {}; make requests shorter or raise it",
                            longest, options.max_model_len));
  return load_engine(options);
}

std::map<std::string, std::string> settings_of(const EngineOptions& options) {
  const auto on_off = [](bool on) { return on ? "on" : "off"; };
  return {{"block_size", fmt::format("{}", options.block_size)},
          {"max_num_seqs", fmt::format("{}", options.max_num_seqs)},
          {"max_num_batched_tokens", fmt::format("{}", options.max_num_batched_tokens)},
          {"max_inter_token_ms", fmt::format("{:.3g}", options.max_inter_token_ms)},
          {"max_prefill_ratio", fmt::format("{:.3g}", options.max_prefill_ratio)},
          {"kv_cache", on_off(options.kv_cache)},
          {"pad_finished", on_off(options.pad_finished)},
          {"enable_prefix_caching", on_off(options.enable_prefix_caching)},
          {"shared_prefix_attention", on_off(options.shared_prefix_attention)},
          {"scheduling_mode", std::string(name(options.scheduling_mode))},
          {"scheduling_policy", std::string(name(options.scheduling_policy))},
          {"kv_layout", std::string(name(options.kv_layout))}};
}

}  // namespace octavo
