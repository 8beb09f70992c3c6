#include "server/service.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <iterator>
#include <utility>

#include "base/rng.h"
#include "base/version.h"
#include "engine/admission.h"
#include "formats/quote.h"
#include "llm/chat_prompt.h"
#include "server/api_answer.h"
#include "server/api_embeddings.h"
#include "server/api_tokenize.h"
#include "server/clock.h"
#include "server/service_parts.h"

namespace octavo {
namespace {

// Of the prompts' tokens and log-probabilities in an answer, and what one takes as JSON.
constexpr int64_t kMostRepeated = int64_t{1} << 20;
constexpr int64_t kRepeatedBytes = 300;

// An engine that has been stuck this many times the limit does not come back.
constexpr double kHopeless = 3;
constexpr int kNiceness = 5;  // of work on requests: those that are being answered go first

ApiError shutting_down() {
  return {.status = 503,
          .message = "the server is being shut down; try again later",
          .type = "service_unavailable",
          .code = "shutting_down",
          .retry_after_s = 5};
}

ApiError damaged_weights() {
  return {.status = 503,
          .message =
              "the weights in use are damaged and are made anew from the model's file; try "
              "again in a moment",
          .type = "server_error",
          .code = "weights_damaged",
          .retry_after_s = 2};
}

// Labels that tell dashboards how the cache is set up, with vLLM's names.
std::vector<std::pair<std::string, std::string>> cache_config(const EngineOptions& options,
                                                              int num_blocks, int max_model_len) {
  const int64_t num_tokens = int64_t{num_blocks} * options.block_size;
  return {{"block_size", std::to_string(options.block_size)},
          {"num_gpu_blocks", std::to_string(num_blocks)},
          {"kv_cache_size_tokens", std::to_string(num_tokens)},
          {"kv_cache_max_concurrency",
           fmt::format("{}", static_cast<double>(num_tokens) / std::max(max_model_len, 1))},
          {"cache_dtype", options.kv_cache_dtype},
          {"enable_prefix_caching", options.enable_prefix_caching ? "True" : "False"},
          {"gpu_memory_utilization", fmt::format("{}", options.gpu_memory_utilization)}};
}

// An echo gives back what was sent, which decoded ids need not be.
std::vector<std::optional<std::string>> texts_of(CompletionRequest& request) {
  std::vector<std::optional<std::string>> texts;
  if (!request.echo) return texts;
  for (PromptInput& input : request.prompts) {
    auto* text = std::get_if<std::string>(&input);
    texts.push_back(text ? std::optional(std::move(*text)) : std::nullopt);
  }
  return texts;
}

const nlohmann::ordered_json& messages_of(const ChatRequest& request) { return request.messages; }
const nlohmann::ordered_json& messages_of(const TokenizeRequest& request) {
  return *request.messages;
}

// The field that an error of rendering begins with.
std::string_view field_of(const Error& error) {
  for (const std::string_view field : {"tools", "continue_final_message", "chat_template_kwargs"})
    if (error.message.starts_with(field)) return field;
  return "messages";
}

// The list that an error of rules begins with or names.
std::string_view list_of(const Error& error) {
  for (const std::string_view field : {"logit_bias", "stop_token_ids", "allowed_token_ids"})
    if (error.message.find(field) != std::string::npos) return field;
  return "bad_words";
}

ApiError render_error(const Error& error) {
  ApiError api = param_error(error, field_of(error));
  if (api.param == "tools") api.code = "unsupported_parameter";
  return api;
}

}  // namespace

Service::Service(ServeOptions options, Log& log)
    : options_(std::move(options)),
      log_(log),
      access_(options_.access, options_.http.uds.empty() ? options_.http.host : ""),
      adapters_(options_.lora.max_loras, options_.served_model_names),
      workers_(std::make_unique<Workers>(options_.num_workers, kNiceness)),
      watchers_(std::make_unique<Workers>(1)) {}

Service::~Service() { close(); }

// --- life -----------------------------------------------------------------------------------

Result<void> Service::load_adapters(const LoadedEngine& loaded) {
  for (const LoraModule& module : options_.lora.modules) {
    const auto done = adapters_.load(module, false, [&](const std::string& path) {
      return load_adapter(path, loaded.config, loaded.model->limits().max_lora_rank);
    });
    if (!done)
      return fail(ErrorCode::invalid_argument,
                  fmt::format("--lora-modules {}: {}", quote(module.name), done.error().message));
  }
  return {};
}

const LoadedEngine& Service::set_ready(LoadedEngine loaded, EngineOptions options,
                                       std::string chat_template) {
  Serving& s = serving_;
  s.options = std::move(options);
  s.loaded = std::move(loaded);
  s.chat_template = std::move(chat_template);
  s.reasoning = find_reasoning_format(options_.reasoning_parser, s.chat_template).value_or(nullptr);
  s.tools = find_tool_format(options_.tool_call_parser, s.loaded.tool_template
                                                            ? s.loaded.tokenizer->tool_template()
                                                            : s.chat_template)
                .value_or(nullptr);
  int num_blocks = 0, num_speculative_tokens = 0;
  s.loaded.engine->inspect([&](EngineCore& core) {
    num_blocks = core.scheduler().pool().num_blocks();
    if (core.speculator()) num_speculative_tokens = core.speculator()->num_speculative_tokens();
  });
  s.metrics = std::make_unique<Metrics>(
      MetricsOptions{.model_name = options_.served_model_names.front(),
                     .max_model_len = s.loaded.max_model_len,
                     .cache_config = cache_config(s.options, num_blocks, s.loaded.max_model_len),
                     .bytes_per_block = s.loaded.bytes_per_block,
                     .draft_bytes_per_block = s.loaded.draft_bytes_per_block,
                     .isa = std::string(s.loaded.isa),
                     .num_speculative_tokens = num_speculative_tokens});
  s.loaded.engine->inspect([&](EngineCore& core) { s.metrics->on_state(core); });
  s.speculates = num_speculative_tokens > 0;
  s.gate = std::make_unique<AdmissionGate>(
      GateOptions{.max_queue_len = s.options.max_queue_len,
                  .max_queue_wait_s = options_.max_queue_wait_s,
                  .max_num_seqs = s.options.max_num_seqs,
                  .max_num_batched_tokens = s.options.max_num_batched_tokens,
                  .max_prefill_ratio = s.options.max_prefill_ratio});
  s.fill_in = find_fill_in_middle(*s.loaded.tokenizer);
  s.limits = {.vocab_size = static_cast<int>(s.loaded.tokenizer->vocab_size()),
              .max_model_len = s.loaded.max_model_len,
              .max_logprobs = options_.max_logprobs,
              .defaults = options_.default_params,
              .has_priorities = s.options.scheduling_policy == SchedulingPolicy::priority,
              .trust_request_chat_template = options_.trust_request_chat_template,
              .strict_fields = options_.strict_fields,
              .fills_in = s.fill_in.has_value(),
              .embedding_size = s.loaded.pooling.size,
              .matryoshka = s.loaded.pooling.matryoshka};
  s.context = std::make_unique<SessionContext>(
      SessionContext{.engine = *s.loaded.engine,
                     .metrics = *s.metrics,
                     .gate = *s.gate,
                     .workers = *workers_,
                     .log = log_,
                     .max_queue_wait_s = options_.max_queue_wait_s,
                     .sse_keep_alive_interval_s = options_.sse_keep_alive_interval_s});
  state_ = ServiceState::ready;
  return s.loaded;
}

void Service::on_step(const StepReport& report) {
  if (state_ == ServiceState::loading) return;
  serving_.metrics->on_step(report);
  serving_.gate->on_step(report.step->work, report.scheduler->num_waiting(),
                         report.scheduler->step_model());
}

void Service::on_idle(const EngineCore& core) {
  if (state_ == ServiceState::loading) return;
  serving_.metrics->on_state(core);
  serving_.gate->on_step({}, 0, core.scheduler().step_model());
}

void Service::begin_drain() {
  if (state_ == ServiceState::ready) state_ = ServiceState::draining;
}

bool Service::is_idle() const {
  const std::lock_guard lock(mutex_);
  return sessions_.empty() && num_working_ == 0;
}

std::vector<std::shared_ptr<Session>> Service::live_sessions() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<Session>> live;
  for (const auto& [id, weak] : sessions_)
    if (auto session = weak.lock()) live.push_back(std::move(session));
  return live;
}

void Service::cut_all() {
  const ApiError why = has_good_weights() ? shutting_down() : damaged_weights();
  cut_.request_stop();
  for (const auto& session : live_sessions()) session->fail(why);
}

void Service::close() {
  cut_.request_stop();
  workers_.reset();
  watchers_.reset();
  serving_.loaded.engine.reset();
}

// --- the watchdog ---------------------------------------------------------------------------

std::string Service::ailment() const {
  if (state_ == ServiceState::loading) return "";
  if (watchdog_.stalled_s() <= options_.stall_timeout_s) return "";
  return "the engine is stuck: " + engine_state();
}

std::string Service::engine_state() const {
  const Engine& engine = *serving_.loaded.engine;
  const Heartbeat& heartbeat = engine.heartbeat();
  return fmt::format("{}, {} requests wait", heartbeat.describe(), engine.num_unfinished());
}

bool Service::tick() {
  if (state_ == ServiceState::loading) return true;
  trim_memory();
  const double passed_s =
      watchdog_.look(steady_now_s(), serving_.loaded.engine->heartbeat().num_beats());
  for (const auto& session : live_sessions()) session->tick(passed_s);
  const std::string ailing = ailment();
  if (ailing.empty()) {
    if (std::exchange(told_stall_, false)) log_.say(LogLevel::warning, "the engine goes on");
    return true;
  }
  if (!std::exchange(told_stall_, true)) {
    log_.say(LogLevel::error, ailing);
    for (const auto& session : live_sessions())
      session->fail(
          {.status = 503, .message = ailing, .type = "server_error", .code = "engine_stalled"});
  }
  return watchdog_.stalled_s() <= kHopeless * options_.stall_timeout_s;
}

// --- requests -------------------------------------------------------------------------------

ApiError Service::not_ready() const {
  if (!has_good_weights()) return damaged_weights();
  if (state_ == ServiceState::draining) return shutting_down();
  return {.status = 503,
          .message = fmt::format("the model is being loaded ({:.0f} %); try again in a moment",
                                 100 * progress_.load()),
          .type = "service_unavailable",
          .code = "model_loading",
          .retry_after_s = 1};
}

std::optional<ApiError> Service::check_generates() const {
  if (!serving_.loaded.pooling.is_all) return std::nullopt;
  return ApiError{
      .message = std::string(kEncoderWritesNoText), .param = "model", .code = "unsupported"};
}

ApiError Service::stopped() const {
  if (cut_.stop_requested()) return shutting_down();
  return {.status = kClientGone, .message = "the client went away"};
}

ApiError Service::refusal(const Error& error, std::string_view param) const {
  return error.code == ErrorCode::cancelled ? stopped() : param_error(error, param);
}

// Made once for all prompts, which then share them.
ApiResult<std::shared_ptr<const AnswerRules>> Service::rules_of(GenerationRequest& request) const {
  auto rules = serving_.loaded.engine->take_rules(request.params);
  if (!rules) return tl::make_unexpected(param_error(rules.error(), list_of(rules.error())));
  return std::move(*rules);
}

// Truncation is asked for, never done in silence.
ApiResult<Request> Service::finish_prompt(GenerationRequest& request,
                                          std::vector<TokenId> ids) const {
  if (const auto keep = request.truncate_prompt_tokens) {
    const auto most = static_cast<size_t>(*keep < 0 ? serving_.limits.max_model_len : *keep);
    if (ids.size() > most) ids.erase(ids.begin(), ids.end() - static_cast<long>(most));
  }
  SamplingParams params = request.params;
  const int room = serving_.limits.max_model_len - static_cast<int>(ids.size());
  if (request.max_tokens_is_default)
    params.max_tokens = std::max({std::min(*params.max_tokens, room), params.min_tokens, 1});
  return Request{.prompt_token_ids = std::move(ids),
                 .params = std::move(params),
                 .priority = request.priority,
                 .cache_salt = request.cache_salt,
                 .num_speculative_tokens = request.num_speculative_tokens};
}

// Encoded once for all prompts. Of more than the context holds nothing could be repeated.
void Service::add_prediction(const GenerationRequest& request, std::span<Request> prompts,
                             const std::stop_token& stop) const {
  if (!serving_.speculates || request.prediction.empty()) return;
  auto ids = serving_.loaded.tokenizer->encode(
      request.prediction, {.parse_special = false, .add_special = false, .stop = stop});
  if (!ids) return;  // what no token says is not repeated
  ids->resize(std::min(ids->size(), static_cast<size_t>(serving_.limits.max_model_len)));
  const auto shared = std::make_shared<const std::vector<TokenId>>(std::move(*ids));
  for (Request& prompt : prompts) prompt.prediction = shared;
}

ApiResult<std::vector<TokenId>> Service::ids_of(PromptInput& input,
                                                const CompletionRequest& request,
                                                const std::stop_token& stop) const {
  const auto* text = std::get_if<std::string>(&input);
  if (!text) return std::move(std::get<std::vector<TokenId>>(input));
  auto ids = serving_.loaded.tokenizer->encode(*text, {.parse_special = request.parse_special,
                                                       .add_special = request.add_special_tokens,
                                                       .stop = stop});
  if (!ids) return tl::make_unexpected(refusal(ids.error(), "prompt"));
  return std::move(*ids);
}

// Texts that something follows become ids, with the marks that say so.
ApiResult<void> Service::add_suffix(CompletionRequest& request, const std::stop_token& stop) const {
  if (request.suffix.empty()) return {};
  const Tokenizer& tokenizer = *serving_.loaded.tokenizer;
  const FillInMiddle& marks = *serving_.fill_in;
  const auto suffix = tokenizer.encode(request.suffix, {.stop = stop});
  if (!suffix) return tl::make_unexpected(refusal(suffix.error(), "suffix"));
  const bool has_bos = std::exchange(request.add_special_tokens, false) && tokenizer.adds_bos();
  for (PromptInput& input : request.prompts) {
    OCTAVO_TRY(const std::vector<TokenId> prefix, ids_of(input, request, stop));
    // Now, since there may be a thousand prompts, each with the suffix.
    const auto length = static_cast<int64_t>(prefix.size() + suffix->size());
    if (const auto checked = check_prompt_length(length, serving_.limits.max_model_len); !checked)
      return tl::make_unexpected(param_error(checked.error(), "suffix"));
    std::vector<TokenId> ids = prompt_between(marks, prefix, *suffix);
    if (has_bos) ids.insert(ids.begin(), *tokenizer.bos());
    input = std::move(ids);
  }
  auto& ends = request.params.stop_token_ids;
  ends.insert(ends.end(), marks.ends.begin(), marks.ends.end());
  return {};
}

ApiResult<std::vector<Request>> Service::prompts_of(CompletionRequest& request,
                                                    const std::stop_token& stop) const {
  OCTAVO_CHECK_OK(add_suffix(request, stop));
  OCTAVO_TRY(const auto rules, rules_of(request));
  std::vector<Request> prompts;
  for (PromptInput& input : request.prompts) {
    OCTAVO_TRY(std::vector<TokenId> ids, ids_of(input, request, stop));
    auto prompt = finish_prompt(request, std::move(ids));
    if (!prompt) return tl::make_unexpected(prompt.error());
    prompt->rules = rules;
    prompts.push_back(std::move(*prompt));
  }
  return prompts;
}

template <class ApiRequest>
ApiResult<ChatPrompt> Service::render(ApiRequest& request, const std::stop_token& stop) const {
  TemplateExtras extras{.kwargs = std::move(request.chat_template_kwargs),
                        .stop = stop,
                        .tools = std::move(request.tools),
                        .conversation = {.tool_format = serving_.tools,
                                         .reads_answers = true,
                                         .generic_tools = options_.generic_tools &&
                                                          options_.tool_call_parser != "none"},
                        .add_special_tokens = request.add_special_tokens};
  std::optional<ChatTemplate> own;
  if (request.chat_template) {
    auto parsed = ChatTemplate::parse(*request.chat_template);
    if (!parsed) return tl::make_unexpected(param_error(parsed.error(), "chat_template"));
    own = std::move(*parsed);
    extras.chat_template = &*own;
  }
  auto rendered = render_chat(serving_.loaded, messages_of(request), request.chat, extras);
  if (!rendered)
    return tl::make_unexpected(stop.stop_requested() ? stopped() : render_error(rendered.error()));
  std::move(rendered->warnings.begin(), rendered->warnings.end(),
            std::back_inserter(request.warnings));
  return std::move(*rendered);
}

// How the answer will be taken apart.
void Service::set_format(ChatRequest& request, const TextSpan& end_of_prompt) const {
  AnswerFormat& format = request.format;
  format.reasoning = serving_.reasoning;
  if (format.reasoning)
    format.begins_in_reasoning = begins_in_reasoning(*format.reasoning, end_of_prompt);
  for (const std::string_view marker : markers_of(format.reasoning, format.tools))
    if (const auto id = serving_.loaded.tokenizer->find_control(marker))
      request.shown_control_tokens.push_back(*id);
}

ApiResult<Request> Service::prompt_of(ChatRequest& request, const std::stop_token& stop) const {
  OCTAVO_TRY(const auto rules, rules_of(request));
  auto rendered = render(request, stop);
  if (!rendered) return tl::make_unexpected(rendered.error());
  request.format.tools = rendered->tool_format;
  request.format.parallel_calls = request.parallel_tool_calls;
  set_format(request, rendered->end);
  auto prompt = finish_prompt(request, std::move(rendered->ids));
  if (!prompt) return prompt;
  prompt->rules = rules;
  prompt->shown_control_tokens = request.shown_control_tokens;
  return prompt;
}

// A completion's choices each repeat the prompt, as far as that is asked for.
std::optional<ApiError> Service::check_repeated(const GenerationRequest& request,
                                                std::span<const Request> prompts) const {
  const auto of_token = [](std::optional<int> logprobs, int64_t all) -> int64_t {
    return !logprobs ? 0 : 1 + (*logprobs < 0 ? all : *logprobs);
  };
  const int64_t vocabulary = serving_.loaded.tokenizer->vocab_size();
  int64_t values = 0;
  for (const Request& prompt : prompts) {
    const int64_t each = request.echo + request.return_token_ids +
                         of_token(prompt.params.prompt_logprobs, vocabulary);
    values += each * prompt.params.n * std::ssize(prompt.prompt_token_ids);
  }
  const auto budget = static_cast<int64_t>(options_.http.limits.max_request_memory_bytes);
  if (values <= std::max(kMostRepeated, budget / kRepeatedBytes)) return std::nullopt;
  return ApiError{
      .status = 413,
      .message = fmt::format(
          "the answer would repeat {} tokens and log-probabilities of prompts, once for "
          "each choice, more than --request-memory-bytes allows; ask for fewer choices "
          "(n), or without prompt_logprobs, echo and return_token_ids",
          values),
      .param = "n",
      .code = "request_too_large"};
}

template <class ApiRequest>
void Service::start(const Exchange& exchange, ApiRequest& request, std::vector<Request> prompts,
                    std::string_view id_prefix,
                    std::vector<std::optional<std::string>> prompt_texts) {
  if (options_.seed && !request.params.seed)
    for (Request& prompt : prompts) prompt.params.seed = options_.seed;
  const std::string request_id = request_id_of(exchange->request(), request.request_id);
  AnswerHead head{.id = fmt::format("{}-{}", id_prefix, request_id),
                  .created = std::time(nullptr),
                  .model = *request.model,
                  .system_fingerprint = fmt::format("octavo-{}-{}", version(), serving_.loaded.isa),
                  .call_seed = fresh_seed()};
  SessionRequest session{.prompts = std::move(prompts),
                         .prompt_texts = std::move(prompt_texts),
                         .writer = make_answer_writer(request, *serving_.loaded.tokenizer, head),
                         .headers = headers_of(exchange->request(), request_id),
                         .stream = request.stream,
                         .include_usage = request.include_usage,
                         .continuous_usage_stats = request.continuous_usage_stats,
                         .line = line_of(exchange->request(), request_id)};
  add_warnings_header(request.warnings, session.headers);
  session.line.warnings = request.warnings;
  if (options_.log_prompts) session.line.prompt = exchange->request().body;
  int64_t id = 0;
  {
    const std::lock_guard lock(mutex_);
    id = next_session_++;
    sessions_.emplace(id, std::weak_ptr<Session>());
  }
  const auto forget = [this, id] {
    const std::lock_guard lock(mutex_);
    sessions_.erase(id);
  };
  std::shared_ptr<Session> started;
  try {
    started = Session::start(*serving_.context, exchange, std::move(session), forget);
  } catch (...) {
    forget();
    throw;
  }
  {
    const std::lock_guard lock(mutex_);
    // It may have ended already.
    if (const auto found = sessions_.find(id); found != sessions_.end()) found->second = started;
  }
  // cut_all() does not see it before.
  if (cut_.stop_requested()) started->fail(shutting_down());
}

void Service::post_completions(const Exchange& exchange, const std::stop_token& stop) {
  auto request = parse_completion_request(exchange->request().body, serving_.limits);
  if (!request) return respond(exchange, request.error());
  auto adapter = adapters_.resolve(request->model);
  if (!adapter) return respond(exchange, adapter.error());
  if (const auto error = check_generates()) return respond(exchange, *error);
  auto prompts = prompts_of(*request, stop);
  if (!prompts) return respond(exchange, prompts.error());
  if (const auto error = check_repeated(*request, *prompts)) return respond(exchange, *error);
  for (Request& prompt : *prompts) prompt.adapter = *adapter;
  add_prediction(*request, *prompts, stop);
  start(exchange, *request, std::move(*prompts), "cmpl", texts_of(*request));
}

void Service::post_chat(const Exchange& exchange, const std::stop_token& stop) {
  auto request = parse_chat_request(exchange->request().body, serving_.limits);
  if (!request) return respond(exchange, request.error());
  auto adapter = adapters_.resolve(request->model);
  if (!adapter) return respond(exchange, adapter.error());
  if (const auto error = check_generates()) return respond(exchange, *error);
  auto prompt = prompt_of(*request, stop);
  if (!prompt) return respond(exchange, prompt.error());
  prompt->adapter = *adapter;
  add_prediction(*request, {&*prompt, 1}, stop);
  std::vector<Request> prompts;
  prompts.push_back(std::move(*prompt));
  start(exchange, *request, std::move(prompts), "chatcmpl");
}

void Service::post_embeddings(const Exchange& exchange, const std::stop_token& stop) {
  auto request = parse_embedding_request(exchange->request().body, serving_.limits);
  if (!request) return respond(exchange, request.error());
  auto adapter = adapters_.resolve(request->model);
  if (!adapter) return respond(exchange, adapter.error());
  auto requests = embedding_requests(*request, serving_.loaded.pooling, *serving_.loaded.tokenizer,
                                     serving_.limits.max_model_len, stop);
  if (stop.stop_requested()) return respond(exchange, stopped());
  if (!requests) return respond(exchange, requests.error());
  for (Request& prompt : *requests) prompt.adapter = *adapter;
  start(exchange, *request, std::move(*requests), "embd");
}

void Service::post_tokenize(const Exchange& exchange, const std::stop_token& stop) {
  auto request = parse_tokenize_request(exchange->request().body, serving_.limits);
  if (!request) return respond(exchange, request.error());
  if (auto found = adapters_.resolve(request->model); !found)
    return respond(exchange, found.error());
  const Tokenizer& tokenizer = *serving_.loaded.tokenizer;
  std::vector<TokenId> ids;
  if (request->messages) {
    auto rendered = render(*request, stop);
    if (!rendered) return respond(exchange, rendered.error());
    ids = std::move(rendered->ids);
  } else {
    auto encoded = tokenize_text(*request, tokenizer, stop);
    if (stop.stop_requested()) return respond(exchange, stopped());
    if (!encoded) return respond(exchange, encoded.error());
    ids = std::move(*encoded);
  }
  respond_json(exchange, tokenize_answer(*request, ids, tokenizer, serving_.limits.max_model_len),
               std::move(request->warnings));
}

void Service::post_detokenize(const Exchange& exchange, const std::stop_token&) {
  auto request = parse_detokenize_request(exchange->request().body, serving_.limits);
  if (!request) return respond(exchange, request.error());
  if (auto found = adapters_.resolve(request->model); !found)
    return respond(exchange, found.error());
  respond_json(exchange, detokenize_answer(*request, *serving_.loaded.tokenizer),
               std::move(request->warnings));
}

}  // namespace octavo
