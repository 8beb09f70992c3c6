// Rows of the option table (cli/options.cc): a prompt, how its answer is drawn and ends.
#pragma once

#include <array>

#include "cli/option_rows.h"

namespace octavo::cli::rows {

inline constexpr std::array<std::string_view, 11> kQuantizeTypes = {
    "q8_0", "q6_k", "q5_k", "q4_k", "q5_1", "q5_0", "q4_1", "q4_0", "f16", "bf16", "f32"};

inline constexpr std::array kGenerationRows = {
    shown_default(no_variable(choice("type", kQuantizeTypes, "TYPE", "",
                                     "of the matrices; has to be given", Q, kInput)),
                  "none"),
    no_variable(flag("pure", "the same type for all matrices, whatever they are", Q, kInput)),
    no_variable(
        count(integer("max_shard_size", 0, kMaxBytes, "0",
                      "bytes of tensors that a file has at most; more are written as several "
                      "files, NAME-00001-of-00003.gguf and so on; 0: one file",
                      Q, kInput))),
    no_variable(flag("overwrite", "replace OUT if it is there", Q, kInput)),
    no_variable(text("prompt", "TEXT",
                     "the text to go on from; - reads it from standard input, as it is", G,
                     kInput)),
    no_variable(list(OptionKind::integer_list, "prompt_token_ids", "IDS", 0, "",
                     "the prompt as token ids, 1,2,3; nothing is added to them", G, kInput)),
    no_variable(text("input", "FILE",
                     "many prompts: JSON lines with prompt, prompt_token_ids or messages, or those "
                     "of OpenAI's batches; - reads standard input",
                     G, kInput)),
    shown_default(no_variable(text("input", "FILE", "texts, one a line", A, kInput, "-")),
                  "-, standard input"),
    no_variable(integer("dimensions", 0, kMaxInt, "0",
                        "only the first so many numbers, normalised again; 0: all", A, kInput)),
    shown_default(no_variable(flag("normalize", "leave the length as it comes", A, kInput, "on")),
                  "as the model is made for"),
    shown_default(no_variable(text("output", "FILE",
                                   "where their results go, a line for each; what is there already "
                                   "is not computed again",
                                   G, kInput)),
                  "-, standard output"),
    no_variable(flag("overwrite", "drop what is in the output file", G, kInput)),
    no_variable(words(shown_default(
        text(
            "served_model_name", "NAME...",
            "what lines of --input in OpenAI's form may call the model; the first is its main name",
            G, kInput),
        "MODEL"))),
    no_variable(flag("chat", "the prompt is a user's message; the model's chat template is applied",
                     G, kInput)),
    text("chat_template", "TEMPLATE",
         "in place of the model's chat template: a file, the template itself, or a built-in one: "
         "alpaca, chatml, gemma, granite, llama2, llama3, mistral, olmo2, phi3, vicuna, zephyr",
         G | C | X, kInput),
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

    shown_default(
        count(integer("max_tokens", 0, kMaxInt, "", "tokens of an answer at most", G | C, kEnd)),
        "to the end of the context"),
    count(integer("min_tokens", 0, kMaxInt, "0", "tokens before the answer may end", G | C, kEnd)),
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
    no_variable(flag("quiet", "say nothing of progress and figures on standard error", G, kShown)),
    flag("json", "print one JSON object", G | I | E | P | B | V | D | Q | N, kShown),
};

}  // namespace octavo::cli::rows
