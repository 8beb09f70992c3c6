// Rows of the option table (cli/options.cc): a server under load and the requests that make it.
#pragma once

#include <array>

#include "cli/option_rows.h"

namespace octavo::cli::rows {

inline constexpr std::array<std::string_view, 2> kEndpoints = {"/v1/completions",
                                                               "/v1/chat/completions"};
inline constexpr std::array<std::string_view, 6> kDataSets = {
    "random", "shared-prefix", "multi-turn", "mixed", "jsonl", "trace"};
inline constexpr std::array<std::string_view, 2> kPromptFormats = {"words", "token-ids"};

inline constexpr std::array kLoadRows = {
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
    no_variable(
        list(OptionKind::integer_list, "max_concurrency", "LIST", 0, "0",
             "requests in flight at most, 0: no limit; of several, as in 1,2,4,8, a load of "
             "--num-prompts for each, and one page of all",
             V, kLoad)),
    no_variable(integer("repeat", 1, 100, "1",
                        "rounds over all loads; figures are medians over them", V, kLoad)),
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
    no_variable(
        shown_default(count(integer("prefix_len", 0, 1 << 24, "",
                                    "tokens that prompts begin with in common", V, kRequests)),
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
};

}  // namespace octavo::cli::rows
