// Rows of the option table (cli/options.cc): the engine, its memory and what it schedules.
#pragma once

#include <array>

#include "cli/option_rows.h"

namespace octavo::cli::rows {

inline constexpr std::array<std::string_view, 4> kDTypes = {"auto", "float32", "float16",
                                                            "bfloat16"};
inline constexpr std::array<std::string_view, 3> kQuantizations = {"none", "int8", "int4"};
inline constexpr std::array<std::string_view, 5> kKvDTypes = {"auto", "float32", "float16",
                                                              "bfloat16", "int8"};
inline constexpr std::array<std::string_view, 5> kBlockSizeChoices = {"16", "32", "64", "128",
                                                                      "256"};
inline constexpr std::array<std::string_view, 4> kPoolings = {"auto", "mean", "cls", "last"};
inline constexpr std::array<std::string_view, 2> kOnOff = {"on", "off"};
inline constexpr std::array<std::string_view, 4> kPolicies = {
    "fcfs", "priority", "shortest-prefill-first", "longest-prefix-match"};
inline constexpr std::array<std::string_view, 2> kModes = {"continuous", "static"};
inline constexpr std::array<std::string_view, 2> kLayouts = {"paged", "contiguous"};
inline constexpr std::array<std::string_view, 2> kEvictions = {"lru", "lfu"};

inline constexpr std::array kEngineRows = {
    choice(
        "dtype", kDTypes, "TYPE", "auto",
        "type of computation; auto: int8 activations for quantised weights; float32: exact and "
        "slower; float16 and bfloat16: as auto, with the weights of a safetensors folder rounded "
        "to it (those of a GGUF file stay as they are)",
        G | A | X | C | P | B | N, kEngine),
    choice("quantization", kQuantizations, "TYPE", "none",
           "round the matrices of a safetensors folder at load: int8 to blocks as of q8_0, int4 of "
           "q4_0",
           G | A | X | C | P | B | N, kEngine),
    choice("kv_cache_dtype", kKvDTypes, "TYPE", "auto",
           "auto: float32 with --dtype float32, else float16", G | A | X | C | E | P | B, kEngine),
    choice(
        "pooling_type", kPoolings, "TYPE", "auto",
        "how embeddings are made of the tokens' hidden states; auto: as the model says, else the "
        "last token's, of encoders the mean",
        X | A, kEngine),
    flag("matryoshka", "embeddings may be cut to fewer dimensions though the model does not say so",
         X | A, kEngine),
    choice("kv_cache", kOnOff, "on|off", "on", "off computes the whole sequence again at each step",
           G | C, kEngine),
    integer("threads", 0, 1024, "0", "at most the cores this process may use; 0: all of them",
            G | A | X | C | P | B | Q | N, kEngine),
    text("lora", "PATH", "LoRA adapter for the whole run: a PEFT folder or a GGUF file", G | C | P,
         kEngine),
    flag("enforce_eager", "plan every step anew instead of reusing recorded ones",
         G | A | X | C | P | B, kEngine),
    of_kind(choice("block_size", kBlockSizeChoices, "N", "32",
                   "tokens of one block of the KV cache", G | A | X | C | E | P | B, kEngine),
            OptionKind::integer),
    count(integer("max_num_batched_tokens", 1, 65536, "512",
                  "tokens of one forward; a longer prompt is cut into chunks",
                  G | A | X | C | E | P | B, kEngine)),
    text("speculative_config", "JSON",
         "guess tokens ahead and verify them together, which changes no answer: "
         "'{\"method\": \"ngram\", \"num_speculative_tokens\": 5}'; methods: ngram, suffix, "
         "draft_model (with \"model\"), early_exit (octavo tune)",
         G | X | C, kEngine),
    no_variable(shown_default(
        repeatable(text("speculative_config", "JSON", "a way of guessing to measure", Y, kEngine)),
        "ngram and suffix, of 8 tokens, and draft_model if there is one")),
    no_variable(text("draft_model", "MODEL",
                     "a smaller model with the same vocabulary, which guesses", Y, kEngine)),
    flag("pack_cache",
         "neither use nor write files of repacked weights, which make the next start faster; they "
         "lie in octavo/packs of the cache folder, 32 GiB of them at most",
         G | A | X | C | P | B | N, kEngine, "on"),

    or_word(
        count(integer("max_model_len", 1, kMaxInt, "auto",
                      "tokens of a prompt and its answer at most; auto: the model's context, or as "
                      "much of it as fits",
                      G | X | C | M, kMemory)),
        "auto"),
    above_lowest(real("gpu_memory_utilization", 0, 1, "0.9",
                      "share of the device's memory to use, on a CPU of the memory that is "
                      "available",
                      G | X | C | E | M, kMemory)),
    or_word(
        count(integer("kv_cache_memory_bytes", 1, kMaxBytes, "auto",
                      "size of the KV cache; auto: what is left of that share, or all that can be "
                      "used",
                      G | X | C | M, kMemory)),
        "auto"),
    flag("enable_prefix_caching",
         "do not keep K and V for later prompts that begin with the same tokens", G | X | C | M,
         kMemory, "on"),
    flag("shared_prefix_attention",
         "let each sequence read for itself the blocks that several share, for comparison",
         G | X | C | M, kMemory, "on"),
    choice("prefix_cache_policy", kEvictions, "TYPE", "lru",
           "what of it goes first: the least recently or the least often used", G | X | C | M,
           kMemory),
    choice("kv_layout", kLayouts, "TYPE", "paged",
           "contiguous: each sequence holds --max-model-len tokens in one piece, for comparison",
           G | X | M, kMemory),

    shown_default(integer("max_num_seqs", 1, 65536, "",
                          "sequences that run at once; no more than --max-num-batched-tokens",
                          G | X | M, kScheduling),
                  "64; for one prompt, its --n"),
    count(integer("long_prefill_token_threshold", 0, kMaxInt, "0",
                  "tokens of one prompt in a step at most; 0: no limit", G | X | M, kScheduling)),
    choice("scheduling_policy", kPolicies, "TYPE", "fcfs",
           "who is next; priority: the lower number", G | X | M, kScheduling),
    choice("scheduling_mode", kModes, "TYPE", "continuous",
           "static: a batch runs to the end of its longest answer before the next begins, for "
           "comparison",
           G | X | M, kScheduling),
    real("max_waiting_s", 0, kMaxDouble, "30",
         "seconds after which a request goes first, whatever the policy", G | X | M, kScheduling),
    real("max_inter_token_ms", 0, kMaxDouble, "0",
         "prompts are cut so that running answers are predicted to wait no longer for a token; 0: "
         "no limit",
         G | X | M, kScheduling),
    real("max_prefill_ratio", 0, kMaxDouble, "1",
         "while answers run, prompts get at most so many times the time that these take of a step; "
         "more where there is more than one prompt for four answers; 0: no limit",
         G | X | M, kScheduling),
    integer("max_queue_len", 1, kMaxInt, "16384", "requests that wait or run at most", G | X,
            kScheduling),
};

}  // namespace octavo::cli::rows
