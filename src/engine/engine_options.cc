#include "engine/engine_options.h"

namespace octavo {

SchedulerOptions scheduler_options(const EngineOptions& options) {
  return {.max_num_seqs = options.max_num_seqs,
          .max_num_batched_tokens = options.max_num_batched_tokens,
          .long_prefill_token_threshold = options.long_prefill_token_threshold,
          .policy = options.scheduling_policy,
          .mode = options.scheduling_mode,
          .pad_finished = options.pad_finished,
          .kv_layout = options.kv_layout,
          .max_model_len = options.max_model_len,
          .enable_prefix_caching = options.enable_prefix_caching,
          .prefix_cache_policy = options.prefix_cache_policy,
          .keep_kv = options.kv_cache,
          .max_waiting_s = options.max_waiting_s,
          .max_inter_token_s = options.max_inter_token_ms / 1000,
          .max_prefill_ratio = options.max_prefill_ratio};
}

}  // namespace octavo
