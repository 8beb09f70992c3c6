#include <array>

#include "cli/options.h"

namespace octavo::cli {
namespace {

constexpr Positional kModel = {
    "MODEL",
    "a GGUF file (of a model in several, any of them), a Hugging Face folder, a short name "
    "(smollm2-135m), or ORG/NAME or ORG/NAME:FILE.gguf on a hub, which is fetched if it is not "
    "here"};
constexpr std::array kModelOnly = {kModel};
constexpr std::array kPullPositionals = {
    Positional{"MODEL",
               "ORG/NAME, or ORG/NAME:FILE.gguf where it has several models in GGUF; of one in "
               "several files all are fetched"}};
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
constexpr std::array kQuantizePositionals = {Positional{"IN", kModel.help},
                                             Positional{"OUT", "the GGUF file to write"}};
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
        "its defaults), priority, cache_salt, num_speculative_tokens, custom_id, id and, beside "
        "messages, "
        "add_generation_prompt and continue_final_message. Its result is a line of --output, "
        "in the order of the input: line (its number), input_hash, custom_id and id, and "
        "what --json prints; or error, with code and message: a bad line fails alone, and "
        "the exit code is that of the first that failed. A run that was interrupted goes on "
        "where it stopped when it is started again. On a terminal a bar shows how far it "
        "is, elsewhere a line on standard error now and then (--quiet: none).\n\n"
        "If the first line of FILE has url and body, all are taken for lines of OpenAI's batches: "
        "custom_id, method (POST), url (/v1/chat/completions, /v1/completions or /v1/embeddings) "
        "and body, which is answered as `octavo serve` would. Results then have OpenAI's shape: "
        "id, custom_id, response with status_code, request_id and body, and error, for a line "
        "that is no request. Flags are the defaults of what a body does not say."},
    CommandSpec{
        Command::chat, "chat", kModelOnly, "Holds a conversation in the terminal.",
        "Ctrl-C stops an answer or drops what is typed; at an empty prompt Ctrl-C, Ctrl-D or "
        "/exit ends the program. /help lists the other commands. Lines are edited with the "
        "usual keys, Up and Ctrl-R find earlier ones of this run, and ~/.editrc is read. "
        "Each line is a message; Alt-Enter begins a new line of it, pasted text keeps "
        "its lines, and what stands between two \"\"\" is one message. In a pipe only the "
        "answers are printed. When the context is full, the oldest "
        "turns are dropped, never the system message, and a note says so. What was read "
        "before is in the cache "
        "and is not read again. Room is kept for "
        "an answer of --max-tokens, or "
        "without it of 512 tokens or a quarter of the context, whichever is less."},
    CommandSpec{Command::tokenize, "tokenize", kModelOnly,
                "Turns text on standard input into token ids, or back.",
                "Prints the ids as one JSON array. Only the vocabulary is read: a file without "
                "tensors will do."},
    CommandSpec{
        Command::inspect, "inspect", kModelOnly, "Shows what a model file holds.",
        "Metadata, tensors, files if they are several, chat templates, the tokens that end an "
        "answer and why, and the memory that weights and KV cache take. "
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
                "Prompts are random tokens, answers have the length they are given. All settings "
                "run in turns, in several rounds of seconds (with --full, of minutes). The answer "
                "comes first, with the lowest and highest ratio of a round; what is no difference "
                "beyond noise is said to be none. A table and a page of plots (--html) show "
                "throughput, latencies and the use of the KV cache.\n\n"
                "batching: static batches, padded or not, and continuous ones. paging: whole "
                "contexts reserved side by side, and blocks, in the same memory. prefix: the "
                "prefix cache off and on. shared-attention: a shared prefix read by each sequence, "
                "and once for all. chunking: streams being written when a long prompt arrives, "
                "unchunked, over budgets of tokens and of time. scheduling-policy, block-size, "
                "max-num-seqs, "
                "max-num-batched-tokens: their values. kv-cache: for each of --contexts, greedy "
                "tokens are generated after a prompt of that length with and without the cache; "
                "times are those of one token.\n\n"
                "TTFT is the time to the first token from arrival, TPOT the time per token after "
                "it, ITL a single gap, E2EL the time to the last token."},
    CommandSpec{Command::bench_throughput, "bench throughput", kModelOnly,
                "Measures how fast many requests are served, offline.",
                "Requests come from --synthetic or --trace, else 64 prompts of 32 to 512 tokens "
                "with answers of 16 to 128; of several --max-concurrency without --full, 16 of 16 "
                "to 64 with 8 to 24. All are handed over at once, or --max-concurrency at a "
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
    CommandSpec{
        Command::bench_speculative, "bench speculative", kModelOnly,
        "Measures what guessing tokens ahead gains, by task and batch size.",
        "The same prompts are answered without guesses and with each way of guessing, in turns; "
        "the table has medians over the rounds. A batch is kept full: where an answer ends, the "
        "next "
        "begins. speed-up: tokens per second of the steps of full batches that read "
        "no prompt, over those without guesses in the same round. true: guesses that came true, of "
        "those that were verified. tok/guess: tokens that a step gave where a guess was verified, "
        "the sure one included. tok/step: tokens of a sequence in a step. drafting: share of the "
        "time in which guesses were made. same answers: token for token as without guesses; if "
        "they are not, the command fails.\n\n"
        "copy: answers repeat what is in the prompt. code: source files are gone on with. chat: "
        "questions are answered, by way of the model's chat template. These are greedy. random: "
        "random tokens, gone on with by tokens drawn at temperature 1, among which hardly anything "
        "comes true. Whether prompts have the effect they are meant for depends on the model: a "
        "weak one repeats itself in chats, too."},
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
                "second, at first more often, where it has them. A request that fails is counted "
                "by how it failed; one that was turned away with status 429 is counted apart. If "
                "none is answered, or Ctrl-C ends the run, the result is shown and kept all the "
                "same, and the exit code is that of the failure.\n\n"
                "random: prompts with nothing in common. shared-prefix: they begin alike. "
                "multi-turn: conversations, in which each message follows the answer to the one "
                "before. mixed: short and long. jsonl: lines of --dataset-path with prompt, "
                "prompt_token_ids or messages, and output_tokens. trace: times and lengths that "
                "somebody recorded.\n\n"
                "TTFT is the time to the first token from sending the request, TPOT the time per "
                "token after it, ITL a single gap, E2EL the time to the last token. Good requests "
                "are those within all bounds of --goodput; an answer of one token has no TPOT and "
                "ITL and is within theirs. Times are those at which text arrives: tokens that a "
                "server sends together have no time between them."},
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
        "Of a repository without GGUF files its folder is fetched: config.json, the tokenizer's "
        "files and the weights in safetensors, one file or shards. A folder that cannot be used is "
        "refused before its weights come, and one that is not whole yet is no model.\n\n"
        "HF_ENDPOINT is the hub (https://huggingface.co), HF_TOKEN a token for models that are not "
        "given to everybody; it goes to that host alone, never where it redirects to. "
        "SSL_CERT_FILE names the "
        "certificates to trust, instead of the system's."},
    CommandSpec{
        Command::quantize, "quantize", kQuantizePositionals,
        "Writes a model, of a GGUF file or a Hugging Face folder, in a smaller type as a GGUF "
        "file.",
        "Matrices get the type, norms and routers of experts stay as they are. Where rows are no "
        "whole number of the type's blocks, one with smaller blocks is taken, and said. Unless "
        "--pure, output heads, and embeddings that serve as such, get q6_k (q8_0 of q8_0), and "
        "q4_k and q5_k are llama.cpp's mixtures Q4_K_M and Q5_K_M. Roundings are those of its "
        "reference, bit for bit. One tensor is in memory at a time. A table shows what "
        "became of each type's tensors: the error is the root of the mean square of what rounding "
        "changed, over that of the values."},
    CommandSpec{
        Command::embed, "embed", kModelOnly, "Makes embeddings of texts.",
        "Each line of --input is a text, and gets a line of JSON: index, prompt_tokens and "
        "embedding, in the order of the lines, or error. Many are computed together, and no "
        "embedding depends on that. Any model makes embeddings; good ones are made by "
        "models that were trained for it."},
    CommandSpec{
        Command::tune_early_exit, "tune early-exit", kModelOnly,
        "Finds the layers that a model can skip when it drafts for itself.",
        "With the method early_exit of --speculative-config a model guesses its next tokens with "
        "some of its layers skipped, and then verifies them. Which layers is found here: one after "
        "the other is skipped, each time the one that promises most by how often the rest agrees "
        "with the whole model on a text, and by how long layers take. A line of the table says for "
        "how many places the rest is sure enough to draft (a probability \"from\" which it is), "
        "how "
        "many of these drafts come true, how many drafts in a step are best, and the speed that "
        "follows; it is too hopeful where one failed guess follows another. Then answers are "
        "generated with drafts and without, in turns, and it says plainly whether it pays. The "
        "result is kept for the model in any case; the search takes some minutes."},
    CommandSpec{Command::help_markdown, "help-markdown", {}, "Prints docs/flags.md.", "", true},
};

}  // namespace

std::span<const CommandSpec> commands() { return kCommands; }

}  // namespace octavo::cli
