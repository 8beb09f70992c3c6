// What an engine is made from. Names are those of the flags, the environment and vLLM.
#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>

#include "engine/engine_core.h"
#include "kv/prefix_tree.h"
#include "sched/plan.h"
#include "sched/scheduler.h"

namespace octavo {

struct EngineOptions {
  std::string model = {};               // path of a GGUF file or a folder, or a short name
  std::string dtype = "auto";           // auto | float32 | float16 | bfloat16
  std::string quantization = "none";    // none | int8 | int4: of a folder's weights, at load
  std::string kv_cache_dtype = "auto";  // auto | float32 | float16 | bfloat16 | int8
  int threads = 0;                      // 0: the cores this process may use
  int block_size = 32;

  std::string pooling_type = "auto";  // auto (as the model says) | mean | cls | last: of embeddings
  bool matryoshka = false;            // embeddings may be cut though the model does not say so

  int max_model_len = 0;  // tokens of prompt and answer; 0: what fits
  double gpu_memory_utilization =
      0.9;                            // share of the device's memory; of a CPU's, what is available
  int64_t kv_cache_memory_bytes = 0;  // 0: what is left of that share
  int max_num_seqs = 64;              // sequences that run at once
  int max_num_batched_tokens = 512;   // of one step; at least max_num_seqs
  int long_prefill_token_threshold = 0;  // of one prompt in a step; 0: no limit
  int max_logprobs = kMaxLogprobs;       // that a request may ask for; kNoLogprobsCap: any
  int max_queue_len = 16384;             // requests that are not finished, at most

  SchedulingPolicy scheduling_policy = SchedulingPolicy::fcfs;
  SchedulingMode scheduling_mode = SchedulingMode::continuous;
  KvCacheLayout kv_layout = KvCacheLayout::paged;
  double max_waiting_s = 30;      // who waits longer goes first, whatever the policy
  double max_inter_token_ms = 0;  // prompts are cut so that others wait no longer; 0: no limit
  double max_prefill_ratio = 1;   // of a step, times what running answers take; 0: no limit
  bool enable_prefix_caching = true;
  EvictionPolicy prefix_cache_policy = EvictionPolicy::lru;
  bool shared_prefix_attention = true;  // blocks that several sequences share are read once

  std::string lora = {};  // path of an adapter, for all requests that name none
  int max_lora_rank = 0;  // of adapters that requests may bring; 0: they may bring none
  std::string speculative_config = {};  // JSON, see spec/speculative_config.h; empty: none

  bool kv_cache = true;        // false: every token is computed with its whole context
  bool pad_finished = true;    // static batches compute finished sequences to the end
  bool enforce_eager = false;  // no step is recorded for reuse
  std::string pack_folder =
      {};  // of pack files (engine/pack_cache.h); empty: none is used or written
  std::function<void(double)> on_progress = {};  // 0..1 while weights load; may be empty
  std::stop_token stop_loading = {};             // looked at from tensor to tensor
  // For measurements, on the engine's thread: after each step, and when nothing is left to do.
  std::function<void(const StepReport&)> on_step = {};
  std::function<void(const EngineCore&)> on_idle = {};
};

// What of them is the scheduler's.
SchedulerOptions scheduler_options(const EngineOptions& options);

}  // namespace octavo
