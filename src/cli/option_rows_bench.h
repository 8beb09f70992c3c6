// Rows of the option table (cli/options.cc): what offline benchmarks measure.
#pragma once

#include <array>

#include "cli/option_rows.h"

namespace octavo::cli::rows {

inline constexpr std::array kBenchRows = {
    no_variable(text("perplexity", "FILE",
                     "how well the model predicts this, before and after: text, or JSON as "
                     "`perplexity` takes it",
                     Q, kMeasure)),
    shown_default(count(integer("seq_len", 1, 1e12, "", "tokens of each sequence", E, kMeasure)),
                  "the model's context"),
    integer("batch_size", 1, 1e9, "1", "sequences held at once", E, kMeasure),
    above_lowest(
        real("memory", 0, 100000, "", "GiB for the KV cache: how many sequences fit", E, kMeasure)),
    count(integer("context", 2, kMaxInt, "512", "tokens of one window of a text", P | Q, kMeasure)),
    shown_default(count(list(OptionKind::integer_list, "contexts", "LIST", 1, "",
                             "of kv-cache: context lengths to measure at", K, kMeasure)),
                  "64,128,256,512; with --full 1024, too"),
    count(integer("gen_tokens", 2, 1024, "5", "tokens to generate at each; the first is not timed",
                  K, kMeasure)),
    integer("runs", 1, 100, "3", "runs of which the median is reported", N, kMeasure),
    no_variable(text("text", "FILE",
                     "what drafts are tried on: text of the kind that the model is to write; "
                     "without it a little of everything",
                     N, kMeasure)),
    integer("places", 16, 4096, "256", "places of the text at which they are tried", N, kMeasure),
    no_variable(
        count(integer("gen_tokens", 2, 1024, "64",
                      "tokens to generate after each of three places of it, to measure what "
                      "drafts bring",
                      N, kMeasure))),
    count(integer("prompt_tokens", 1, kMaxInt, "512", "tokens of the prompt that is read", L,
                  kMeasure)),
    no_variable(count(integer("gen_tokens", 1, kMaxInt, "128",
                              "tokens that each sequence generates", L, kMeasure))),
    count(list(OptionKind::integer_list, "depth", "LIST", 0, "0",
               "tokens that each sequence has in its cache beforehand", L, kMeasure)),
    no_variable(list(OptionKind::integer_list, "batch_size", "LIST", 1, "1",
                     "sequences that generate together", L, kMeasure)),
    count(integer("shared_prefix", 0, kMaxInt, "0",
                  "of these, so many first tokens lie in the same blocks for all sequences", L,
                  kMeasure)),
    integer("repeat", 1, 100, "3", "passes of which the median is reported", L, kMeasure),
    no_variable(
        shown_default(integer("repeat", 1, 100, "",
                              "rounds over all settings, in turns; figures are medians, and "
                              "what is no difference beyond noise is said to be none",
                              K | U, kMeasure),
                      "5, or as many as 45 s hold; with --full 5")),
    no_variable(shown_default(integer("repeat", 1, 100, "",
                                      "sets of made-up requests, each from the next seed; figures "
                                      "are medians over them",
                                      S, kMeasure),
                              "5 with --compare-policies, else 1")),
    no_variable(flag("full", "requests that take minutes, not seconds, and no limit of time", K | U,
                     kMeasure)),
    no_variable(text("tasks", "LIST", "what is answered: copy, code, chat, random", Y, kMeasure,
                     "copy,code,chat,random")),
    no_variable(list(OptionKind::integer_list, "batch_size", "LIST", 1, "1,4,16",
                     "prompts that are answered together", Y, kMeasure)),
    no_variable(
        count(integer("output_len", 2, kMaxInt, "96", "tokens of an answer at most", Y, kMeasure))),
    no_variable(integer("num_prompts", 1, 1000, "8", "prompts of a task at most", Y, kMeasure)),
    no_variable(
        integer("repeat", 1, 100, "3", "rounds of which the median is reported", Y, kMeasure)),
    no_variable(flag("ignore_eos", "go on after the model's end-of-answer tokens", Y, kMeasure)),
    no_variable(text("synthetic_acceptance", "LIST",
                     "measure guesses too that come true so often, as in 0.6,0.8: known ones, made "
                     "wrong by chance; each costs what it costs --draft-model to make one",
                     Y, kMeasure)),
    text("synthetic", "SPEC",
         "requests to make up, as in requests=200,prompt=64-512,output=16-128,rate=5,shared=512; a "
         "wrong key is answered with all there are",
         M, kMeasure),
    text("trace", "FILE",
         "requests that were recorded, a JSON object per line with arrival_s, prompt_tokens and "
         "output_tokens; of estimate: propose limits that suit them",
         M | E, kMeasure),
    shown_default(integer("max_concurrency", 0, kMaxInt, "",
                          "requests in flight at most; 0: as they arrive", K | S, kMeasure),
                  "0; prefix: 4, in full --max-num-seqs"),
    shown_default(
        list(OptionKind::integer_list, "max_concurrency", "LIST", 0, "",
             "requests in flight at most, 0: as they arrive; of several, as in 1,2,4,8, a "
             "run for each",
             U, kMeasure),
        "0"),
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
};

}  // namespace octavo::cli::rows
