// What an operator decides about a server. Names are those of the flags.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/sampling_params.h"
#include "http/server.h"

namespace octavo {

struct CorsOptions {
  std::vector<std::string> allowed_origins = {};  // none: other origins are refused; "*": any
  std::vector<std::string> allowed_methods = {"GET", "POST", "OPTIONS"};
  std::vector<std::string> allowed_headers = {"*"};
  bool allow_credentials = false;
};

struct AccessOptions {
  std::vector<std::string> api_keys = {};        // none: no key is asked for
  std::vector<std::string> admin_api_keys = {};  // of /v1/requests and adapters
  bool metrics_public = false;                   // /metrics needs no key
  std::vector<std::string> allowed_hosts = {};   // beside those that are always allowed; "*": any
  CorsOptions cors = {};
};

// A LoRA adapter: the name that clients ask for, and its PEFT folder or GGUF file.
struct LoraModule {
  std::string name;
  std::string path;
};

struct LoraOptions {
  bool enabled = false;                  // EngineOptions::max_lora_rank is then above 0
  std::vector<LoraModule> modules = {};  // loaded at the start
  int max_loras = 16;                    // loaded at once
  bool allow_runtime_updating = false;   // over the API
};

struct ServeOptions {
  http::ServerOptions http = {};  // handler, on_head and on_fault are the service's
  std::vector<std::string> served_model_names = {};  // not empty; the first is its main name
  AccessOptions access = {};
  LoraOptions lora = {};

  SamplingParams default_params = {};  // of fields that a request does not name
  std::optional<uint64_t> seed = {};   // of requests that name none; unset: a fresh one each
  int max_logprobs = kMaxLogprobs;
  bool trust_request_chat_template = false;
  bool strict_fields = false;  // fields of requests that are not known are refused
  // Names of text/answer_format.h, auto or none.
  std::string reasoning_parser = "auto", tool_call_parser = "auto";
  bool generic_tools = true;  // as in ConversationOptions; not with the tool_call_parser none

  double max_queue_wait_s = 0;     // 0: no limit
  double shutdown_timeout_s = 30;  // for answers on their way when the server is asked to stop
  double stall_timeout_s = 60;     // without a sign of the engine's thread while work waits
  double sse_keep_alive_interval_s = 15;  // 0: no comments in streams
  int num_workers = 2;
  bool log_prompts = false;
};

}  // namespace octavo
