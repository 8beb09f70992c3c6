#include "cli/options.h"

#include <array>
#include <limits>

namespace octavo::cli {
namespace {

constexpr Positional kModel = {"MODEL",
                               "a GGUF file, a short name (smollm2-135m), or ORG/NAME or "
                               "ORG/NAME:FILE.gguf on a hub, which is fetched if it is not here"};
constexpr std::array kModelOnly = {kModel};
constexpr std::array kPullPositionals = {
    Positional{"MODEL", "ORG/NAME, or ORG/NAME:FILE.gguf where it has several files"}};
constexpr std::array kEstimatePositionals = {
    Positional{"MODEL", "a GGUF file, a short name, or a Hugging Face config.json"}};
constexpr std::array kPerplexityPositionals = {
    kModel,
    Positional{"FILE",
               "text, or JSON (a name that ends in .json) with `windows`, lists of token ids"}};
constexpr std::array kComparePositionals = {
    kModel,
    Positional{"WHAT",
               "kv-cache, batching, paging, prefix, shared-attention, chunking, scheduling-policy, "
               "block-size, max-num-seqs or max-num-batched-tokens"}};

constexpr std::array kServePositionals = {
    Positional{"URL",
               "the server: http://127.0.0.1:8000 unless another is given, https://HOST or "
               "unix:/PATH",
               true}};
constexpr std::array kDiffPositionals = {
    Positional{"A", "a result as --output wrote it, the baseline"},
    Positional{"B", "the result to compare with it"}};

constexpr std::array kCommands = {
    CommandSpec{
        Command::generate, "generate", kModelOnly, "Generates text after a prompt.",
        "The prompt is given by exactly one of --prompt and --prompt-token-ids, or many of them by "
        "--input. Text is "
        "used as it is, after the BOS "
        "token where the model's file asks for one; with --chat it is the user's message "
        "in a conversation, "
        "rendered by the model's chat template, to which nothing is added. The answer "
        "streams to standard output. On a terminal, a line "
        "of figures follows on standard error; in a pipe there is nothing but the text. "
        "Ctrl-C ends the answer. "
        "With --input each line of FILE is an object with one of prompt, prompt_token_ids "
        "and messages, and may have sampling_params (names as in the flags below, which are "
        "its defaults), priority, cache_salt, custom_id, id and, beside messages, "
        "add_generation_prompt and continue_final_message. Its result is a line of --output, "
        "in the order of the input: line (its number), input_hash, custom_id and id, and "
        "what --json prints; or error, with code and message: a bad line fails alone, and "
        "the exit code is that of the first that failed. A run that was interrupted goes on "
        "where it stopped when it is started again. On a terminal a bar shows how far it "
        "is."},
    CommandSpec{Command::chat, "chat", kModelOnly, "Holds a conversation in the terminal.",
                "Ctrl-C stops an answer; Ctrl-C at the prompt, Ctrl-D or /exit ends the program; "
                "/clear forgets the "
                "conversation. Each line is a message, in a pipe too, where only the answers are "
                "printed. When the context is full, the oldest "
                "turns are dropped, never the system message, and a note says so. What was read "
                "before is in the cache "
                "and is not read again. Room is kept for "
                "an answer of --max-tokens, or "
                "without it of 512 tokens or a quarter of the context, whichever is less."},
    CommandSpec{Command::tokenize, "tokenize", kModelOnly,
                "Turns text on standard input into token ids, or back.",
                "Prints the ids as one JSON array. Only the vocabulary is read: a file without "
                "tensors will do."},
    CommandSpec{Command::inspect, "inspect", kModelOnly, "Shows what a model file holds.",
                "Metadata, tensors, chat template, and the memory that weights and KV cache take. "
                "No weights are loaded."},
    CommandSpec{Command::estimate, "estimate", kEstimatePositionals,
                "Computes the memory of a KV cache, and of the model that uses it.",
                "Bytes of the cache are 2 x layers x batch size x length x KV heads x head size x "
                "bytes per "
                "element, rounded up to whole blocks. Weights are counted as they lie in memory, "
                "activations are the buffers of one step; both are known of GGUF files that this "
                "program runs. Lines of a trace have prompt_tokens (or prompt_token_ids, "
                "input_length) and output_tokens (or output_length); the memory is that of "
                "--memory, else --gpu-memory-utilization of what is available, less weights and "
                "activations."},
    CommandSpec{Command::perplexity, "perplexity", kPerplexityPositionals,
                "Measures how well a model predicts a text.",
                "Text is tokenised plainly and cut into windows of --context tokens, each scored "
                "on its own from its second token on; "
                "a last, shorter window counts if it has two tokens. Where the model's file asks "
                "for a BOS token, each window starts with one. "
                "Windows from JSON are used as they are."},
    CommandSpec{Command::bench_compare, "bench compare", kComparePositionals,
                "Compares ways of doing the same work.",
                "The same requests run with the technique and with its baseline, on engines of "
                "their own; each has its own requests unless --synthetic or --trace gives others. "
                "Prompts are random tokens, answers have the length they are given. A table and a "
                "page of plots (--html) show throughput, latencies and the use of the KV cache.\n\n"
                "batching: static batches, padded or not, and continuous ones. paging: whole "
                "contexts reserved side by side, and blocks, in the same memory. prefix: the "
                "prefix cache off and on. shared-attention: a shared prefix read by each sequence, "
                "and once for all. chunking: eight streams when a long prompt arrives, unchunked, "
                "over budgets of tokens and of time. scheduling-policy, block-size, max-num-seqs, "
                "max-num-batched-tokens: their values. kv-cache: for each of --contexts, greedy "
                "tokens are generated after a prompt of that length with and without the cache; "
                "times are medians, from the first generated token to the last.\n\n"
                "TTFT is the time to the first token from arrival, TPOT the time per token after "
                "it, ITL a single gap, E2EL the time to the last token."},
    CommandSpec{Command::bench_throughput, "bench throughput", kModelOnly,
                "Measures how fast many requests are served, offline.",
                "Requests come from --synthetic or --trace, else 64 prompts of 32 to 512 tokens "
                "with answers of 16 to 128. All are handed over at once, or --max-concurrency at a "
                "time, or as they arrive where they have times."},
    CommandSpec{
        Command::bench_latency, "bench latency", kModelOnly,
        "Measures how fast a model reads and generates, beside what the machine can do.",
        "At each depth, tokens that a sequence has in its cache already, one sequence reads a "
        "prompt "
        "of --prompt-tokens and, for each batch size, so many sequences generate --gen-tokens "
        "each. "
        "Every sequence has a cache of its own, but for --shared-prefix; nothing is sampled. The "
        "machine's limits are "
        "measured in the same run, on the same threads: reading memory, multiplying 8-bit numbers "
        "and floats. Combinations that do not fit the model's context or the memory are left out, "
        "and named."},
    CommandSpec{Command::serve, "serve", kModelOnly, "Serves a model to clients of OpenAI's API.",
                "Listens at once and answers 503 until the model is loaded. GET / says how to call "
                "it, /openapi.json describes it, /metrics is for Prometheus. Ctrl-C or SIGTERM "
                "ends it: what is on its way is finished, for --shutdown-timeout seconds, and new "
                "requests are refused; a second time ends it at once.\n\n"
                "Requests of all clients are computed together, and no answer depends on that. "
                "Flags that take several words need MODEL before them."},
    CommandSpec{Command::bench_serve, "bench serve", kServePositionals,
                "Measures a running server under load, whichever has OpenAI's API.",
                "Streams answers to many requests at once and notes when each token came. "
                "Requests are made up (--dataset), or come from a file. They are sent all at once, "
                "at a rate, in bursts, or so many at a time. Tokens are counted by the server's "
                "usage, else by events. Its memory, CPU and KV cache are read from /metrics each "
                "second, where it has them. A request that fails is counted by how it failed; one "
                "that was turned away with status 429 is counted apart.\n\n"
                "random: prompts with nothing in common. shared-prefix: they begin alike. "
                "multi-turn: conversations, in which each message follows the answer to the one "
                "before. mixed: short and long. jsonl: lines of --dataset-path with prompt, "
                "prompt_token_ids or messages, and output_tokens. trace: times and lengths that "
                "somebody recorded.\n\n"
                "TTFT is the time to the first token from sending the request, TPOT the time per "
                "token after it, ITL a single gap, E2EL the time to the last token. Good requests "
                "are those within all bounds of --goodput."},
    CommandSpec{Command::bench_diff, "bench diff", kDiffPositionals,
                "Compares two results of benchmarks.",
                "Runs of the same name are set beside each other; of results with one run each, "
                "these two, whatever their names."},
    CommandSpec{Command::simulate,
                "simulate",
                {},
                "Tries scheduling policies and limits on requests, in simulated time.",
                "The scheduler, the KV pool and the prefix tree are the engine's own; only the "
                "model is replaced by how long it would take. A step takes what --step-cost says, "
                "or what --calibrate finds out of a model in a few seconds. Figures are those of "
                "the benchmarks. Of each answer only the length is known, and no prompt contains "
                "one."},
    CommandSpec{
        Command::pull, "pull", kPullPositionals, "Fetches a model from a Hugging Face hub.",
        "The file is kept in the cache folder, under hub/, and its path is printed; every command "
        "that takes MODEL then finds it by the same name. A transfer that was cut goes on where it "
        "stopped, also in the next run, and what came is checked against the hub's SHA-256. A file "
        "that is there and whole is not fetched again.\n\n"
        "HF_ENDPOINT is the hub (https://huggingface.co), HF_TOKEN a token for models that are not "
        "given to everybody; it goes to that host alone, never where it redirects to."},
    CommandSpec{Command::help_markdown, "help-markdown", {}, "Prints docs/flags.md.", "", true},
};

constexpr uint32_t G = bit(Command::generate), C = bit(Command::chat), T = bit(Command::tokenize),
                   I = bit(Command::inspect), E = bit(Command::estimate),
                   P = bit(Command::perplexity), K = bit(Command::bench_compare),
                   L = bit(Command::bench_latency), U = bit(Command::bench_throughput),
                   S = bit(Command::simulate), X = bit(Command::serve),
                   V = bit(Command::bench_serve), D = bit(Command::bench_diff), B = K | L | U | S,
                   M = K | U | S;

constexpr double kMaxInt = std::numeric_limits<int32_t>::max();
constexpr double kMaxBytes = 1e15;
constexpr double kMaxDouble = std::numeric_limits<double>::max();

constexpr std::array<std::string_view, 2> kDTypes = {"auto", "float32"};
constexpr std::array<std::string_view, 5> kKvDTypes = {"auto", "float32", "float16", "bfloat16",
                                                       "int8"};
constexpr std::array<std::string_view, 5> kBlockSizeChoices = {"16", "32", "64", "128", "256"};
constexpr std::array<std::string_view, 2> kOnOff = {"on", "off"};
constexpr std::array<std::string_view, 4> kPolicies = {"fcfs", "priority", "shortest-prefill-first",
                                                       "longest-prefix-match"};
constexpr std::array<std::string_view, 2> kEndpoints = {"/v1/completions", "/v1/chat/completions"};
constexpr std::array<std::string_view, 6> kDataSets = {"random", "shared-prefix", "multi-turn",
                                                       "mixed",  "jsonl",         "trace"};
constexpr std::array<std::string_view, 5> kLogLevels = {"debug", "info", "warning", "error", "off"};
constexpr std::array<std::string_view, 2> kLogFormats = {"text", "json"};
constexpr std::array<std::string_view, 2> kPromptFormats = {"words", "token-ids"};
constexpr std::array<std::string_view, 2> kModes = {"continuous", "static"};
constexpr std::array<std::string_view, 2> kLayouts = {"paged", "contiguous"};
constexpr std::array<std::string_view, 2> kEvictions = {"lru", "lfu"};

constexpr std::string_view kInput = "Input", kSampling = "Sampling", kEnd = "End of the answer",
                           kShown = "What is printed", kEngine = "Engine",
                           kMemory = "Memory of the engine", kScheduling = "Many at once",
                           kMeasure = "Measurement", kServer = "The server", kLoad = "Load",
                           kRequests = "Requests", kSettings = "Settings";

constexpr OptionSpec flag(std::string_view name, std::string_view help, uint32_t commands,
                          std::string_view group, std::string_view default_text = "off") {
  OptionSpec spec{name, OptionKind::flag, "", default_text, help};
  spec.commands = commands;
  spec.group = group;
  return spec;
}

constexpr OptionSpec number(OptionKind kind, std::string_view name, double lowest, double highest,
                            std::string_view default_text, std::string_view help, uint32_t commands,
                            std::string_view group) {
  OptionSpec spec{name, kind, "N", default_text, help, lowest, highest};
  spec.commands = commands;
  spec.group = group;
  return spec;
}

constexpr OptionSpec integer(std::string_view name, double lowest, double highest,
                             std::string_view default_text, std::string_view help,
                             uint32_t commands, std::string_view group) {
  return number(OptionKind::integer, name, lowest, highest, default_text, help, commands, group);
}

constexpr OptionSpec real(std::string_view name, double lowest, double highest,
                          std::string_view default_text, std::string_view help, uint32_t commands,
                          std::string_view group) {
  OptionSpec spec =
      number(OptionKind::number, name, lowest, highest, default_text, help, commands, group);
  spec.metavar = "X";
  return spec;
}

constexpr OptionSpec text(std::string_view name, std::string_view metavar, std::string_view help,
                          uint32_t commands, std::string_view group,
                          std::string_view default_text = "") {
  OptionSpec spec{name, OptionKind::text, metavar, default_text, help};
  spec.commands = commands;
  spec.group = group;
  return spec;
}

constexpr OptionSpec choice(std::string_view name, std::span<const std::string_view> choices,
                            std::string_view metavar, std::string_view default_text,
                            std::string_view help, uint32_t commands, std::string_view group) {
  OptionSpec spec{name, OptionKind::choice, metavar, default_text, help};
  spec.choices = choices;
  spec.commands = commands;
  spec.group = group;
  return spec;
}

constexpr OptionSpec list(OptionKind kind, std::string_view name, std::string_view metavar,
                          double lowest, std::string_view default_text, std::string_view help,
                          uint32_t commands, std::string_view group) {
  OptionSpec spec{name, kind, metavar, default_text, help, lowest, kMaxInt};
  spec.commands = commands;
  spec.group = group;
  return spec;
}

constexpr OptionSpec shown_default(OptionSpec spec, std::string_view text) {
  spec.default_shown = text;
  return spec;
}
constexpr OptionSpec repeatable(OptionSpec spec) {
  spec.repeatable = true;
  return spec;
}
constexpr OptionSpec above_lowest(OptionSpec spec) {
  spec.above_lowest = true;
  return spec;
}
// For what belongs to one request and would surprise if it came from the environment.
constexpr OptionSpec no_variable(OptionSpec spec) {
  spec.has_variable = false;
  return spec;
}
constexpr OptionSpec words(OptionSpec spec) {
  spec.takes_words = true;
  spec.repeatable = true;
  return spec;
}
constexpr OptionSpec or_word(OptionSpec spec, std::string_view word_for_zero) {
  spec.word_for_zero = word_for_zero;
  return spec;
}
constexpr OptionSpec of_kind(OptionSpec spec, OptionKind kind) {
  spec.kind = kind;
  return spec;
}

constexpr std::array kOptions = {
    no_variable(text("prompt", "TEXT",
                     "the text to go on from; - reads it from standard input, as it is", G,
                     kInput)),
    no_variable(list(OptionKind::integer_list, "prompt_token_ids", "IDS", 0, "",
                     "the prompt as token ids, 1,2,3; nothing is added to them", G, kInput)),
    no_variable(text("input", "FILE",
                     "many prompts: JSON lines with prompt, prompt_token_ids or messages; - reads "
                     "standard input",
                     G, kInput)),
    shown_default(no_variable(text("output", "FILE",
                                   "where their results go, a line for each; what is there already "
                                   "is not computed again",
                                   G, kInput)),
                  "-, standard output"),
    no_variable(flag("overwrite", "drop what is in the output file", G, kInput)),
    no_variable(flag("chat", "the prompt is a user's message; the model's chat template is applied",
                     G, kInput)),
    no_variable(text("system", "TEXT", "the system message of the conversation", G | C, kInput)),
    no_variable(
        flag("decode", "standard input is a JSON array of ids, the output its text", T, kInput)),
    no_variable(flag("parse_special", "control tokens spelled out in the text become those tokens",
                     T, kInput)),
    no_variable(flag("add_special", "add the BOS and EOS tokens that the model's file asks for", T,
                     kInput)),

    shown_default(real("temperature", 0, kMaxDouble, "",
                       "0 takes the most probable token; higher is more varied", G | C, kSampling),
                  "the model's, else 0.7"),
    shown_default(above_lowest(real("top_p", 0, 1, "",
                                    "only the most probable tokens that make up this share", G | C,
                                    kSampling)),
                  "the model's, else 0.95"),
    integer("top_k", -1, kMaxInt, "0", "only this many of the most probable tokens; 0 or -1: all",
            G | C, kSampling),
    real("min_p", 0, 1, "0", "only tokens at least this probable, relative to the most probable",
         G | C, kSampling),
    shown_default(
        of_kind(integer("seed", 0, 0, "", "the same seed, prompt and flags give the same answer",
                        G | C, kSampling),
                OptionKind::seed),
        "a fresh one, which is reported"),
    repeatable(text("bad_words", "TEXT", "a word that is not written", G | C, kSampling)),
    list(OptionKind::integer_list, "allowed_token_ids", "IDS", 0, "", "no other tokens are drawn",
         G | C, kSampling),
    integer("n", 1, kMaxChoices, "1", "answers to the prompt", G, kSampling),
    real("presence_penalty", -2, 2, "0", "subtracted from the logit of each token generated before",
         G | C, kSampling),
    real("frequency_penalty", -2, 2, "0", "the same, for each time it was generated", G | C,
         kSampling),
    above_lowest(real(
        "repetition_penalty", 0, kMaxDouble, "1",
        "divides the positive logit of each token of prompt and answer, multiplies a negative one",
        G | C, kSampling)),
    repeatable(list(OptionKind::logit_bias, "logit_bias", "ID=BIAS", 0, "",
                    "added to the logit of a token", G | C, kSampling)),

    shown_default(integer("max_tokens", 0, kMaxInt, "", "tokens of an answer at most", G | C, kEnd),
                  "to the end of the context"),
    integer("min_tokens", 0, kMaxInt, "0", "tokens before the answer may end", G | C, kEnd),
    repeatable(text("stop", "TEXT", "text that ends the answer", G | C, kEnd)),
    list(OptionKind::integer_list, "stop_token_ids", "IDS", 0, "", "token ids that end the answer",
         G | C, kEnd),
    flag("ignore_eos", "go on after the model's end-of-answer tokens", G | C, kEnd),
    flag("include_stop_str_in_output", "keep the stop text in the answer", G | C, kEnd),

    flag("skip_special_tokens", "keep control tokens in the answer's text", G, kShown, "on"),
    no_variable(shown_default(
        integer("logprobs", 0, kMaxLogprobs, "",
                "log-probabilities of this many tokens at each place of the answer; with --json", G,
                kShown),
        "none")),
    no_variable(
        shown_default(integer("prompt_logprobs", 0, kMaxLogprobs, "",
                              "the same at each place of the prompt; with --json", G, kShown),
                      "none")),
    flag("json", "print one JSON object", G | I | E | P | B | V | D, kShown),

    choice("dtype", kDTypes, "TYPE", "auto",
           "type of computation; auto: int8 activations for quantised weights; float32: exact and "
           "slower",
           G | X | C | P | B, kEngine),
    choice("kv_cache_dtype", kKvDTypes, "TYPE", "auto",
           "auto: float32 with --dtype float32, else float16", G | X | C | E | P | B, kEngine),
    choice("kv_cache", kOnOff, "on|off", "on", "off computes the whole sequence again at each step",
           G | C, kEngine),
    integer("threads", 0, 1024, "0", "at most the cores this process may use; 0: all of them",
            G | X | C | P | B, kEngine),
    flag("enforce_eager", "plan every step anew instead of reusing recorded ones",
         G | X | C | P | B, kEngine),
    of_kind(choice("block_size", kBlockSizeChoices, "N", "32",
                   "tokens of one block of the KV cache", G | X | C | E | P | B, kEngine),
            OptionKind::integer),
    integer("max_num_batched_tokens", 1, 65536, "512",
            "tokens of one forward; a longer prompt is cut into chunks", G | X | C | E | P | B,
            kEngine),
    flag("pack_cache",
         "neither use nor write files of repacked weights, which make the next start faster; they "
         "lie in octavo/packs of the cache folder, 32 GiB of them at most",
         G | X | C | P | B, kEngine, "on"),

    or_word(integer("max_model_len", 0, kMaxInt, "auto",
                    "tokens of a prompt and its answer at most; auto: the model's context, or as "
                    "much of it as fits",
                    G | X | C | M, kMemory),
            "auto"),
    above_lowest(real("gpu_memory_utilization", 0, 1, "0.9",
                      "share of the device's memory to use, on a CPU of the memory that is "
                      "available",
                      G | X | C | E | M, kMemory)),
    or_word(integer("kv_cache_memory_bytes", 0, kMaxBytes, "auto",
                    "size of the KV cache; auto: what is left of that share, or all that can be "
                    "used",
                    G | X | C | M, kMemory),
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
    integer("long_prefill_token_threshold", 0, kMaxInt, "0",
            "tokens of one prompt in a step at most; 0: no limit", G | X | M, kScheduling),
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

    shown_default(integer("seq_len", 1, 1e12, "", "tokens of each sequence", E, kMeasure),
                  "the model's context"),
    integer("batch_size", 1, 1e9, "1", "sequences held at once", E, kMeasure),
    above_lowest(
        real("memory", 0, 100000, "", "GiB for the KV cache: how many sequences fit", E, kMeasure)),
    integer("context", 2, kMaxInt, "512", "tokens of one window of a text", P, kMeasure),
    list(OptionKind::integer_list, "contexts", "LIST", 1, "64,128,256,512,1024",
         "context lengths to measure at", K, kMeasure),
    integer("gen_tokens", 2, 1024, "5", "tokens to generate at each; the first is not timed", K,
            kMeasure),
    integer("runs", 1, 100, "3", "runs of which the median is reported", K, kMeasure),
    integer("prompt_tokens", 1, kMaxInt, "512", "tokens of the prompt that is read", L, kMeasure),
    no_variable(integer("gen_tokens", 1, kMaxInt, "128", "tokens that each sequence generates", L,
                        kMeasure)),
    list(OptionKind::integer_list, "depth", "LIST", 0, "0",
         "tokens that each sequence has in its cache beforehand", L, kMeasure),
    no_variable(list(OptionKind::integer_list, "batch_size", "LIST", 1, "1",
                     "sequences that generate together", L, kMeasure)),
    integer("shared_prefix", 0, kMaxInt, "0",
            "of these, so many first tokens lie in the same blocks for all sequences", L, kMeasure),
    integer("repeat", 1, 100, "3", "passes of which the median is reported", L, kMeasure),
    no_variable(integer("repeat", 1, 100, "1",
                        "rounds over all settings; the run with the median throughput is shown",
                        K | U, kMeasure)),
    text("synthetic", "SPEC",
         "requests to make up, as in requests=200,prompt=64-512,output=16-128,rate=5,shared=512; a "
         "wrong key is answered with all there are",
         M, kMeasure),
    text("trace", "FILE",
         "requests that were recorded, a JSON object per line with arrival_s, prompt_tokens and "
         "output_tokens; of estimate: propose limits that suit them",
         M | E, kMeasure),
    shown_default(integer("max_concurrency", 0, kMaxInt, "",
                          "requests in flight at most; 0: as they arrive", M, kMeasure),
                  "0; prefix: --max-num-seqs"),
    above_lowest(real("cost_per_hour", 0, kMaxDouble, "",
                      "of the machine, in any currency: adds the cost per million tokens", M | V,
                      kMeasure)),
    no_variable(text("step_cost", "LIST",
                     "how long a step takes, in ms, as five numbers: for itself, and for each "
                     "prefill token, KV token read, sequence that generates, and pair of a prefill "
                     "token and a position that it sees; 5,0.3,0.0005,0.4,0.00001",
                     S, kMeasure)),
    no_variable(text("calibrate", "MODEL", "take the cost of a step from this model", S, kMeasure)),
    shown_default(integer("num_blocks", 1, 1 << 24, "", "blocks of the KV cache", S, kMeasure),
                  "the model's, else what --max-num-seqs of the longest need"),
    no_variable(flag("compare_policies", "one run for each scheduling policy", S, kMeasure)),
    no_variable(text("run", "NAME", "compare only the runs of this name", D, kMeasure)),

    words(
        shown_default(text("served_model_name", "NAME...",
                           "names of the model for clients; the first is its main one", X, kServer),
                      "MODEL")),
    text("host", "HOST", "address or name to listen on; 0.0.0.0: all of this machine's", X, kServer,
         "127.0.0.1"),
    integer("port", 0, 65535, "8000", "port to listen on; 0: any free one", X, kServer),
    text("uds", "PATH", "listen on a Unix socket instead", X, kServer),
    text("ssl_certfile", "FILE", "certificate chain (PEM): serve https", X, kServer),
    text("ssl_keyfile", "FILE", "its private key", X, kServer),
    words(
        shown_default(text("api_key", "KEY...",
                           "keys of which every route but /health and /ready asks one", X, kServer),
                      "none")),
    text("api_key_file", "FILE", "more of them, one a line", X, kServer),
    words(shown_default(text("admin_api_key", "KEY...", "keys that open /v1/requests", X, kServer),
                        "none")),
    flag("metrics_public", "let everybody read /metrics", X, kServer),
    words(text("allowed_hosts", "NAME...", "names of this server that clients may use; *: any", X,
               kServer)),
    words(shown_default(text("allowed_origins", "ORIGIN...",
                             "web pages that may call the server; *: any", X, kServer),
                        "none")),
    words(shown_default(text("allowed_methods", "METHOD...", "what they may do", X, kServer),
                        "GET POST OPTIONS")),
    words(
        shown_default(text("allowed_headers", "HEADER...", "what they may send", X, kServer), "*")),
    flag("allow_credentials", "let them send credentials", X, kServer),
    text("chat_template", "FILE", "a chat template, or a file of one, in place of the model's", X,
         kServer),
    flag("trust_request_chat_template", "let requests bring a chat_template of their own", X,
         kServer),
    text("generation_config", "auto|none|FILE",
         "defaults of requests: the model's, none, or those of a generation_config.json", X,
         kServer, "auto"),
    shown_default(of_kind(integer("seed", 0, 0, "", "seed of requests that name none", X, kServer),
                          OptionKind::seed),
                  "a fresh one each, which the answer reports"),
    integer("max_logprobs", -1, kMaxInt, "20", "logprobs that a request may ask for; -1: any", X,
            kServer),
    real("max_queue_wait", 0, 1e6, "0",
         "seconds: a request that would wait longer is refused with 429; 0: no limit", X, kServer),
    real("shutdown_timeout", 0, 1e6, "30",
         "seconds that answers on their way may take when the server is asked to stop", X, kServer),
    real("stall_timeout", 2, 1e6, "60",
         "seconds without a sign of the engine's thread until /health says so; after three times "
         "that the program ends with 1",
         X, kServer),
    real("sse_keep_alive_interval", 0, 3600, "15",
         "seconds between comments in a stream that has nothing to say; 0: none", X, kServer),
    integer("max_body_bytes", 1024, kMaxInt, "33554432", "size of a request at most", X, kServer),
    integer("max_connections", 1, 1 << 20, "16384", "clients that are connected at once", X,
            kServer),
    real("header_timeout", 0.1, 1e6, "15", "seconds for the headers of a request to arrive", X,
         kServer),
    real("body_timeout", 0.1, 1e6, "60", "seconds for its body to arrive", X, kServer),
    real("idle_timeout", 0.1, 1e6, "75", "seconds that a connection is kept between two requests",
         X, kServer),
    real("write_timeout", 0.1, 1e6, "30",
         "seconds until a client that takes none of its answer is cut", X, kServer),
    integer("io_threads", 1, 64, "1", "threads that talk to clients", X, kServer),
    integer("tensor_parallel_size", 1, 1024, "1", "only 1 so far", X, kServer),
    choice("log_level", kLogLevels, "LEVEL", "info", "what is logged: debug tells of probes too", X,
           kServer),
    choice("log_format", kLogFormats, "TYPE", "text", "of the lines on standard error", X, kServer),
    flag("log_prompts", "write the bodies of requests into the log", X, kServer),

    no_variable(shown_default(text("model", "ID", "its id for the server", V, kServer),
                              "the first that the server lists")),
    no_variable(choice("endpoint", kEndpoints, "PATH", "/v1/completions",
                       "what is asked; of chat each prompt is a user's message", V, kServer)),
    shown_default(text("api_key", "KEY", "sent as a bearer token", V, kServer),
                  "of the variable OPENAI_API_KEY, if it is set"),
    flag("verify_tls", "take any certificate of an https server", V, kServer, "on"),
    flag("keep_alive", "open a connection for each request", V, kServer, "on"),
    flag("server_metrics", "do not read /metrics", V, kServer, "on"),
    real("request_timeout_s", 0, 1e6, "3600", "seconds until a request is given up; 0: never", V,
         kServer),

    no_variable(
        integer("num_prompts", 1, 1e6, "100", "requests to send; of a file: at most", V, kLoad)),
    no_variable(integer("max_concurrency", 0, kMaxInt, "0",
                        "requests in flight at most; 0: no limit", V, kLoad)),
    no_variable(shown_default(
        text("request_rate", "X|inf", "requests per second; inf: all at once", V, kLoad), "inf")),
    no_variable(
        above_lowest(real("burstiness", 0, 1000, "1",
                          "1: Poisson arrivals; less: in bursts; more: more evenly", V, kLoad))),
    no_variable(text("ramp_up", "SPEC",
                     "a rate that changes: linear:START:END or exponential:START:END", V, kLoad)),
    no_variable(
        integer("num_warmups", 0, 1000, "1", "short requests before the clock starts", V, kLoad)),
    no_variable(words(text("goodput", "MEASURE:MS...",
                           "bounds that make a request a good one, as in ttft:500 tpot:50; others "
                           "are itl and e2el",
                           V, kLoad))),

    no_variable(choice("dataset", kDataSets, "NAME", "random", "what is asked", V, kRequests)),
    no_variable(text("dataset_path", "FILE", "of jsonl and trace", V, kRequests)),
    no_variable(shown_default(text("input_len", "LENGTHS",
                                   "tokens of a prompt: N, LOW-HIGH, SHARE%:LOW-HIGH+... or "
                                   "lognormal:MEAN:MAX",
                                   V, kRequests),
                              "512; shared-prefix: 64 after the prefix; multi-turn: 32-128; mixed: "
                              "80%:32-256+20%:1024-2048")),
    no_variable(
        shown_default(text("output_len", "LENGTHS", "tokens of an answer at most", V, kRequests),
                      "128; shared-prefix: 64; multi-turn: 32-128; mixed: "
                      "80%:16-64+20%:128-256; jsonl: what a line says")),
    no_variable(shown_default(integer("prefix_len", 0, 1 << 24, "",
                                      "tokens that prompts begin with in common", V, kRequests),
                              "0; shared-prefix: 512")),
    no_variable(integer("prefix_groups", 1, 1e6, "1", "groups of prompts, each with its own prefix",
                        V, kRequests)),
    no_variable(
        integer("turns", 1, 1000, "4", "messages of a multi-turn conversation", V, kRequests)),
    no_variable(choice("prompt_format", kPromptFormats, "TYPE", "words",
                       "how made-up prompts are sent; a word is about one token", V, kRequests)),
    no_variable(shown_default(
        text("token_id_range", "LOW-HIGH", "ids that made-up prompts have", V, kRequests),
        "1000-31999")),
    no_variable(shown_default(of_kind(integer("seed", 0, 0, "",
                                              "the same seed makes up the same requests, which a "
                                              "server may then find in its cache",
                                              V, kRequests),
                                      OptionKind::seed),
                              "a fresh one, which is reported")),
    no_variable(real("temperature", 0, 100, "0", "of the requests", V, kRequests)),
    no_variable(flag("ignore_eos",
                     "let answers end before their length, as those of jsonl do by themselves", V,
                     kRequests, "on")),
    no_variable(text("extra_body", "JSON",
                     "an object whose members are added to each request; null takes one away", V,
                     kRequests)),

    no_variable(shown_default(text("label", "NAME", "of this run, in tables", V, kShown),
                              "the server's address")),
    no_variable(text("output", "FILE", "keep the result as JSON", M | V | D, kShown)),
    no_variable(shown_default(
        text("html", "FILE", "a page of plots; none: no page", M | V | D, kShown),
        "octavo-bench-WHAT.html; of throughput, serve and diff, and with --json: none")),
    text("config", "FILE",
         "settings in TOML, named as the flags are, with _ or -: top_p = 0.9; flags and the "
         "environment win",
         G | X | C | P | B, kSettings),
};

}  // namespace

std::span<const CommandSpec> commands() { return kCommands; }
std::span<const OptionSpec> options() { return kOptions; }

std::vector<const OptionSpec*> options_of(Command command) {
  std::vector<const OptionSpec*> found;
  for (const OptionSpec& spec : kOptions)
    if (spec.commands & bit(command)) found.push_back(&spec);
  return found;
}

}  // namespace octavo::cli
