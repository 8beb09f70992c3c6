#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "base/address_space.h"
#include "base/free_memory.h"
#include "cli/commands.h"
#include "cli/generation_config.h"
#include "cli/given_template.h"
#include "cli/input.h"
#include "cli/lora_options.h"
#include "cli/model_loading.h"
#include "cli/sampling_options.h"
#include "cli/serve_command.h"
#include "cli/stop_signals.h"
#include "formats/quote.h"
#include "server/serve.h"
#include "text/answer_format.h"

namespace octavo::cli {
namespace {

constexpr size_t kMaxKeyFileBytes = 1 << 20;

std::vector<std::string> words_of(const OptionValues& options, std::string_view name) {
  return options.all<std::string>(name);
}

// As a header can carry it, so that a client can send it.
Result<void> check_keys(const std::vector<std::string>& keys) {
  for (const std::string& key : keys)
    if (key.empty() ||
        !std::all_of(key.begin(), key.end(), [](char c) { return c > ' ' && c < 127; }))
      return fail(ErrorCode::invalid_argument,
                  "an API key is empty or has a space or a character that is not ASCII; give "
                  "another");
  return {};
}

// Names are written in requests, logs and metrics.
Result<void> check_names(const std::vector<std::string>& names) {
  for (const std::string& name : names)
    if (name.empty() ||
        std::any_of(name.begin(), name.end(), [](unsigned char c) { return c <= ' '; }))
      return fail(ErrorCode::invalid_argument,
                  fmt::format("--served-model-name {} is empty or has a space", quote(name)));
  return {};
}

std::string trimmed(std::string_view line) {
  const size_t begin = line.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return "";
  return std::string(line.substr(begin, line.find_last_not_of(" \t\r") + 1 - begin));
}

// One a line; empty lines and those that begin with # are none.
Result<void> add_keys_of_file(std::vector<std::string>& keys, const std::string& path) {
  OCTAVO_TRY(const std::string text, read_text_file(path, kMaxKeyFileBytes));
  const size_t before = keys.size();
  for (size_t i = 0; i < text.size();) {
    const size_t end = std::min(text.find('\n', i), text.size());
    std::string line = trimmed(std::string_view(text).substr(i, end - i));
    if (!line.empty() && line[0] != '#') keys.push_back(std::move(line));
    i = end + 1;
  }
  if (keys.size() == before)
    return fail(ErrorCode::invalid_argument, fmt::format("'{}' holds no keys", path));
  return {};
}

Result<AccessOptions> read_access(const OptionValues& options) {
  AccessOptions access{.api_keys = words_of(options, "api_key"),
                       .admin_api_keys = words_of(options, "admin_api_key"),
                       .metrics_public = options.flag("metrics_public"),
                       .allowed_hosts = words_of(options, "allowed_hosts")};
  if (options.is_given("api_key_file"))
    OCTAVO_CHECK_OK(add_keys_of_file(access.api_keys, options.text("api_key_file")));
  OCTAVO_CHECK_OK(check_keys(access.api_keys));
  OCTAVO_CHECK_OK(check_keys(access.admin_api_keys));
  CorsOptions& cors = access.cors;
  cors.allowed_origins = words_of(options, "allowed_origins");
  if (options.is_given("allowed_methods"))
    cors.allowed_methods = words_of(options, "allowed_methods");
  if (options.is_given("allowed_headers"))
    cors.allowed_headers = words_of(options, "allowed_headers");
  cors.allow_credentials = options.flag("allow_credentials");
  const auto& origins = cors.allowed_origins;
  if (cors.allow_credentials && std::find(origins.begin(), origins.end(), "*") != origins.end())
    return fail(ErrorCode::invalid_argument,
                "--allow-credentials with --allowed-origins '*' would let every page act as its "
                "visitor; name the origins");
  return access;
}

// A part of what is left, since weights and cache take most of it.
size_t default_request_memory() {
  constexpr int64_t kLeast = int64_t{64} << 20, kMost = int64_t{2} << 30;
  int64_t room = free_memory_bytes().value_or(16 * kMost);
  if (const auto space = free_address_space_bytes()) room = std::min(room, *space);
  return static_cast<size_t>(std::clamp(room / 16, kLeast, kMost));
}

http::ServerLimits read_limits(const OptionValues& options) {
  const auto time = [&](std::string_view name) {
    const std::chrono::duration<double> seconds(options.get<double>(name));
    return std::chrono::duration_cast<std::chrono::milliseconds>(seconds);
  };
  const auto memory = options.get<int64_t>("request_memory_bytes");
  return {.max_body_bytes = static_cast<size_t>(options.integer("max_body_bytes")),
          .max_request_memory_bytes =
              memory > 0 ? static_cast<size_t>(memory) : default_request_memory(),
          .max_connections = options.integer("max_connections"),
          .header_timeout = time("header_timeout"),
          .body_timeout = time("body_timeout"),
          .idle_timeout = time("idle_timeout"),
          .write_timeout = time("write_timeout")};
}

// An IPv6 address as it stands in a URL.
std::string without_brackets(const std::string& host) {
  const bool has_brackets = host.starts_with('[') && host.ends_with(']');
  return has_brackets ? host.substr(1, host.size() - 2) : host;
}

// What was given and has no use.
void say_unused(const OptionValues& options, Terminal& terminal) {
  if (!options.is_given("uds")) return;
  for (const std::string_view name : {"host", "port"})
    if (options.is_given(name))
      terminal.say(
          fmt::format("octavo: warning: {} is given and has no use beside --uds: the server "
                      "listens on the Unix socket alone",
                      flag_of(name)));
}

Result<void> check_parsers(const ServeOptions& serve) {
  OCTAVO_CHECK_OK(find_reasoning_format(serve.reasoning_parser, ""));
  OCTAVO_CHECK_OK(find_tool_format(serve.tool_call_parser, ""));
  return {};
}

Result<ServeOptions> read_serve_options(const Invocation& invocation) {
  const OptionValues& options = invocation.options;
  if (options.integer("tensor_parallel_size") > 1)
    return fail(ErrorCode::unsupported,
                "--tensor-parallel-size may only be 1: a model cannot be split over several "
                "machines or devices yet");
  ServeOptions serve;
  serve.http.host = without_brackets(options.text("host"));
  serve.http.port = static_cast<uint16_t>(options.integer("port"));
  serve.http.uds = options.text("uds");
  serve.http.ssl_certfile = options.text("ssl_certfile");
  serve.http.ssl_keyfile = options.text("ssl_keyfile");
  serve.http.num_threads = options.integer("io_threads");
  serve.http.limits = read_limits(options);
  serve.served_model_names = words_of(options, "served_model_name");
  OCTAVO_CHECK_OK(check_names(serve.served_model_names));
  if (serve.served_model_names.empty()) serve.served_model_names = {invocation.positionals[0]};
  OCTAVO_TRY(serve.access, read_access(options));
  OCTAVO_TRY(serve.lora, read_lora_options(options));
  serve.seed = options.find<uint64_t>("seed");
  serve.max_logprobs = options.integer("max_logprobs");
  serve.trust_request_chat_template = options.flag("trust_request_chat_template");
  serve.strict_fields = options.flag("strict_fields");
  serve.reasoning_parser = options.text("reasoning_parser");
  serve.tool_call_parser = options.text("tool_call_parser");
  serve.generic_tools = options.flag("generic_tools");
  OCTAVO_CHECK_OK(check_parsers(serve));
  serve.max_queue_wait_s = options.get<double>("max_queue_wait");
  serve.shutdown_timeout_s = options.get<double>("shutdown_timeout");
  serve.stall_timeout_s = options.get<double>("stall_timeout");
  serve.sse_keep_alive_interval_s = options.get<double>("sse_keep_alive_interval");
  serve.log_prompts = options.flag("log_prompts");
  return serve;
}

LogOptions read_log(const OptionValues& options) {
  LogOptions log;
  const std::string level = options.text("log_level");
  constexpr std::array<std::string_view, 5> kNames = {"debug", "info", "warning", "error", "off"};
  for (size_t i = 0; i < kNames.size(); ++i)
    if (level == kNames[i]) log.level = static_cast<LogLevel>(i);
  log.format = options.text("log_format") == "json" ? LogFormat::json : LogFormat::text;
  return log;
}

bool is_loopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

// The model's chat template is replaced by one that was given.
Result<ServedModel> with_template(LoadedEngine loaded, const std::string& given) {
  ServedModel model{.loaded = std::move(loaded), .chat_template = given};
  if (given.empty()) model.chat_template = model.loaded.tokenizer->chat_template();
  OCTAVO_CHECK_OK(use_template(model.loaded, given));
  return model;
}

}  // namespace

Result<void> serve_model(const Invocation& invocation, const std::string& path, Terminal& terminal,
                         const LoadModel& load) {
  const auto start = std::chrono::steady_clock::now();
  const OptionValues& options = invocation.options;
  OCTAVO_CHECK_OK(check_engine_flags(options));
  OCTAVO_TRY(ServeOptions serve_options, read_serve_options(invocation));
  OCTAVO_TRY(const std::string chat_template, read_template(options.text("chat_template")));
  EngineOptions engine = read_engine_options(options);
  engine.model = path;
  engine.max_logprobs = serve_options.max_logprobs;
  if (serve_options.lora.enabled) engine.max_lora_rank = options.integer("max_lora_rank");
  OCTAVO_TRY(serve_options.default_params,
             generation_defaults(options.text("generation_config"), engine.model));
  if (!is_loopback(serve_options.http.host) && serve_options.http.uds.empty() &&
      serve_options.access.api_keys.empty())
    terminal.say(
        fmt::format("octavo: warning: everybody who reaches {} can use this server; "
                    "--api-key asks for a key",
                    serve_options.http.host));
  say_unused(options, terminal);
  const StopSignals signals({SIGINT, SIGTERM, SIGHUP});
  Log log(read_log(options));
  ServeHooks hooks;
  std::string url;
  hooks.load = [&](const EngineOptions& wired) -> Result<ServedModel> {
    OCTAVO_TRY(LoadedEngine loaded, load(wired));
    return with_template(std::move(loaded), chat_template);
  };
  hooks.on_listening = [&](const std::string& at) { url = at; };
  const std::string name = serve_options.served_model_names.front();
  hooks.on_ready = [&](const LoadedEngine& loaded) {
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    const std::string line = fmt::format(
        "{} is served at {} (contexts of {} tokens, ready in {:.2f} "
        "s); Ctrl-C stops it",
        name, url, loaded.max_model_len, took.count());
    if (options.text("log_format") == "json")
      log.say(LogLevel::info, line);
    else
      terminal.say("octavo: " + line);
  };
  return serve(std::move(serve_options), std::move(engine), log, hooks, signals.first(),
               signals.second());
}

Result<void> run_serve(const Invocation& invocation, Terminal& terminal) {
  OCTAVO_TRY(const std::string path, find_model(invocation.positionals[0], terminal));
  return serve_model(invocation, path, terminal, [&](const EngineOptions& options) {
    return load_with_progress(options, terminal);
  });
}

}  // namespace octavo::cli
