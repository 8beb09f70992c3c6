// Rows of the option table (cli/options.cc): a server, who may call it and what it logs.
#pragma once

#include <array>

#include "cli/option_rows.h"
#include "model/lora.h"

namespace octavo::cli::rows {

inline constexpr std::array<std::string_view, 5> kLogLevels = {"debug", "info", "warning", "error",
                                                               "off"};
inline constexpr std::array<std::string_view, 2> kLogFormats = {"text", "json"};

inline constexpr std::array kServerRows = {
    no_variable(
        text("model", "MODEL", "another way to give MODEL, as vLLM once had it", X, kServer)),
    words(shown_default(text("served_model_name", "NAME...",
                             "what clients call the model; the first is its main name", X, kServer),
                        "MODEL")),
    flag("enable_lora", "let requests have LoRA adapters; --lora-modules does as well", X, kServer),
    words(
        text("lora_modules", "NAME=PATH...",
             "adapters to load, PEFT folders or GGUF files; clients ask for them by NAME as their "
             "model",
             X, kServer)),
    integer("max_loras", 1, 4096, "16", "adapters that are loaded at once", X, kServer),
    integer("max_lora_rank", 1, kMaxLoraRank, "16", "rank of an adapter at most", X, kServer),
    flag("allow_runtime_lora_updating",
         "let holders of an admin key load and unload adapters while the server runs", X, kServer),
    not_empty(text("host", "HOST", "address or name to listen on; 0.0.0.0: all of this machine's",
                   X, kServer, "127.0.0.1")),
    integer("port", 0, 65535, "8000", "port to listen on; 0: any free one", X, kServer),
    not_empty(text("uds", "PATH", "listen on a Unix socket instead", X, kServer)),
    not_empty(text("ssl_certfile", "FILE", "certificate chain (PEM): serve https", X, kServer)),
    not_empty(text("ssl_keyfile", "FILE", "its private key", X, kServer)),
    not_empty(words(
        shown_default(text("api_key", "KEY...",
                           "keys of which every route but /health and /ready asks one", X, kServer),
                      "none"))),
    not_empty(
        text("api_key_file", "FILE", "more of them, one a line; # begins a comment", X, kServer)),
    not_empty(words(shown_default(
        text("admin_api_key", "KEY...", "keys that open /v1/requests and adapters", X, kServer),
        "none"))),
    flag("metrics_public", "let everybody read /metrics", X, kServer),
    words(text("allowed_hosts", "NAME...",
               "what clients may call this server, beside its own names; *: anything", X, kServer)),
    words(shown_default(
        text("allowed_origins", "ORIGIN...",
             "web pages that may call the server, as in https://example.com; *: any", X, kServer),
        "none")),
    words(shown_default(
        text("allowed_methods", "METHOD...", "methods that such pages may use", X, kServer),
        "GET POST OPTIONS")),
    words(shown_default(
        text("allowed_headers", "HEADER...", "headers that such pages may send", X, kServer), "*")),
    flag("allow_credentials", "let such pages send credentials", X, kServer),
    text("reasoning_parser", "NAME",
         "how answers mark reasoning, as vLLM names it; auto: as the chat template shows, none", X,
         kServer, "auto"),
    text("tool_call_parser", "NAME",
         "how answers call tools: hermes, llama3_json, mistral; auto, none", X, kServer, "auto"),
    flag(
        "generic_tools",
        "refuse tools, and conversations in which some were called, where the chat template has no "
        "place for them, instead of telling the model in the system's message",
        X, kServer, "on"),
    flag("enable_auto_tool_choice", "as vLLM has it; tools are served without it, too", X, kServer),
    flag("trust_request_chat_template", "let requests bring a chat_template of their own", X,
         kServer),
    flag("strict_fields",
         "refuse requests with fields that are not known, which are otherwise ignored", X, kServer),
    text("generation_config", "auto|none|PATH",
         "defaults of requests: the model's, none (vllm is the same), or those of a "
         "generation_config.json or the folder that has one",
         X, kServer, "auto"),
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
    count(integer("max_body_bytes", 1024, kMaxInt, "33554432", "size of a request at most", X,
                  kServer)),
    or_word(count(integer("request_memory_bytes", 1 << 20, kMaxBytes, "auto",
                          "memory that requests may take together until their tokens are with the "
                          "engine; auto: a sixteenth of what is free, 64 MiB to 2 GiB",
                          X, kServer)),
            "auto"),
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
};

}  // namespace octavo::cli::rows
