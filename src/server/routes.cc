// Which path is answered by whom, and the answers that need no model.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/rng.h"
#include "base/version.h"
#include "formats/quote.h"
#include "http/content_coding.h"
#include "server/api_tokenize.h"
#include "server/clock.h"
#include "server/home_page.h"
#include "server/openapi.h"
#include "server/service.h"
#include "server/service_parts.h"

namespace octavo {

using Json = nlohmann::ordered_json;

struct Service::Route {
  std::string_view method, path;
  RouteAccess access;
  Answer answer;
  bool needs_model = true;  // else it is answered while loading and draining too
  bool is_quiet = false;    // asked by machines all the time: logged at debug
  bool has_rest = false;    // more of the path may follow
  bool is_lengthy = false;  // work that takes long whatever the body is
};

const std::vector<Service::Route>& Service::routes() {
  // Work that a request brings along is for the workers. What watches the server shares no thread
  // with it.
  static const std::vector<Route> table = {
      {"POST", "/v1/chat/completions", RouteAccess::key, &Service::post_chat},
      {"POST", "/v1/completions", RouteAccess::key, &Service::post_completions},
      {"POST", "/v1/embeddings", RouteAccess::key, &Service::post_embeddings},
      {"GET", "/v1/models", RouteAccess::key, &Service::get_models, false},
      {"GET", "/v1/models/", RouteAccess::key, &Service::get_model, false, false, true},
      {"GET", "/v1/requests", RouteAccess::admin, &Service::get_requests},
      {"POST", "/v1/load_lora_adapter", RouteAccess::admin, &Service::post_load_adapter, true,
       false, false, true},
      {"POST", "/v1/unload_lora_adapter", RouteAccess::admin, &Service::post_unload_adapter},
      {"POST", "/tokenize", RouteAccess::key, &Service::post_tokenize},
      {"POST", "/detokenize", RouteAccess::key, &Service::post_detokenize},
      {"GET", "/tokenizer_info", RouteAccess::key, Watching{&Service::get_tokenizer_info}},
      {"GET", "/metrics", RouteAccess::metrics, Watching{&Service::get_metrics}, false, true},
      {"GET", "/load", RouteAccess::key, &Service::get_load, false, true},
      {"GET", "/health", RouteAccess::open, &Service::get_health, false, true},
      {"GET", "/ready", RouteAccess::open, &Service::get_ready, false, true},
      {"GET", "/version", RouteAccess::key, &Service::get_version, false},
      {"GET", "/openapi.json", RouteAccess::key, Watching{&Service::get_openapi}, false},
      {"GET", "/", RouteAccess::key, &Service::get_home, false},
  };
  return table;
}

namespace {

constexpr size_t kMaxRequestId = 128;
constexpr size_t kLargeBodyBytes = 64 << 10;  // takes a few milliseconds to work on

bool is_id_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) ||
         std::string_view("-_.:").find(c) != std::string_view::npos;
}

std::string lower_without_spaces(std::string text) {
  std::erase_if(text, [](char c) { return c == ' ' || c == '\t'; });
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

// Why the body of a request cannot be read, or nothing.
std::string refused_media(const http::Request& request) {
  const std::string* coding = http::find_header(request.headers, "content-encoding");
  if (coding && !http::content_coding(*coding))
    return fmt::format("the body may be compressed by one of {}, and Content-Encoding says {}",
                       http::kContentCodings, quote(*coding));
  const std::string* header = http::find_header(request.headers, "content-type");
  const std::string type = header ? lower_without_spaces(*header) : "";
  if (type.substr(0, type.find(';')) != "application/json")
    return "the body must be JSON; send the header Content-Type: application/json";
  constexpr std::string_view kCharset = ";charset=";
  const size_t charset = type.find(kCharset);
  if (charset == std::string::npos) return "";
  const std::string_view name = std::string_view(type).substr(charset + kCharset.size());
  return name.starts_with("utf-8") || name.starts_with("\"utf-8\"")
             ? ""
             : fmt::format("the body must be UTF-8, and Content-Type says {}", *header);
}

bool matches_method(std::string_view asked, std::string_view method) {
  return asked == method || (asked == "HEAD" && method == "GET");
}

}  // namespace

std::string request_id_of(const http::Request& request, const std::string& in_body) {
  const auto is_decent = [](const std::string& id) {
    return !id.empty() && id.size() <= kMaxRequestId &&
           std::all_of(id.begin(), id.end(), is_id_character);
  };
  const std::string* given = http::find_header(request.headers, "x-request-id");
  if (given && is_decent(*given)) return *given;
  return is_decent(in_body) ? in_body : fmt::format("{:016x}", fresh_seed());
}

ApiError param_error(const Error& error, std::string_view param) {
  ApiError api = to_api_error(error);
  if (api.status == 400) api.param = param;
  return api;
}

RequestLine line_of(const http::Request& request, std::string request_id) {
  return {.request_id = std::move(request_id),
          .remote_address = request.remote_address,
          .method = request.method,
          .path = request.path};
}

// --- on the way in --------------------------------------------------------------------------

std::optional<ApiError> Service::check(const http::Request& request, const Route*& route) const {
  route = nullptr;
  std::vector<std::string_view> allowed;
  for (const Route& candidate : routes()) {
    const bool same = candidate.has_rest ? request.path.starts_with(candidate.path) &&
                                               request.path.size() > candidate.path.size()
                                         : request.path == candidate.path;
    if (!same) continue;
    allowed.push_back(candidate.method);
    if (matches_method(request.method, candidate.method)) route = &candidate;
  }
  if (auto error = access_.check(request, route ? route->access : RouteAccess::key)) return error;
  if (allowed.empty())
    return ApiError{
        .status = 404,
        .message = fmt::format("there is nothing at {}; GET / says what there is", request.path),
        .code = "not_found"};
  if (!route)
    return ApiError{.status = 405,
                    .message = fmt::format("{} takes {}, not {}", request.path,
                                           fmt::join(allowed, ", "), request.method),
                    .code = "method_not_allowed",
                    .allow = fmt::format("{}", fmt::join(allowed, ", "))};
  if (const std::string why = route->method == "POST" ? refused_media(request) : ""; !why.empty())
    return ApiError{.status = 415, .message = why, .code = "unsupported_media_type"};
  if (route->needs_model && (state_ != ServiceState::ready || !has_good_weights()))
    return not_ready();
  if (const std::string ailing = route->needs_model ? ailment() : ""; !ailing.empty())
    return ApiError{.status = 503,
                    .message = ailing,
                    .type = "server_error",
                    .code = "engine_stalled",
                    .retry_after_s = 10};
  return std::nullopt;
}

void Service::count_refusal(const ApiError& error) const {
  if (error.status == 503 && state_ == ServiceState::draining)
    serving_.metrics->on_rejection("draining");
}

std::optional<http::Response> Service::check_head(const http::Request& head) const {
  if (head.method != "POST") return std::nullopt;  // what has no body costs nothing to read
  const Route* route = nullptr;
  const auto error = check(head, route);
  if (!error) return std::nullopt;
  count_refusal(*error);
  http::Response response = to_response(*error);
  std::string id = request_id_of(head);
  for (http::Header& header : headers_of(head, id)) response.headers.push_back(std::move(header));
  RequestLine line = line_of(head, std::move(id));
  line.status = response.status;
  line.error = error->message;
  note(head, std::move(line));
  return response;
}

http::Response Service::fault(int status, const std::string& why) {
  return to_response({.status = status,
                      .message = why,
                      .type = status >= 500 ? "server_error" : "invalid_request_error",
                      .code = status == 413   ? "request_too_large"
                              : status == 408 ? "request_timeout"
                              : status == 503 ? "server_busy"
                                              : ""});
}

void Service::handle(std::shared_ptr<http::Exchange> exchange) {
  const http::Request& request = exchange->request();
  if (request.method == "OPTIONS" && http::find_header(request.headers, "origin")) {
    http::Response response = access_.preflight(request);
    const bool allowed = !response.headers.empty();
    if (!allowed)
      return respond(exchange, ApiError{.status = 403,
                                        .message = "pages of other origins may not call this "
                                                   "server; --allowed-origins adds origins",
                                        .type = "permission_error",
                                        .code = "origin_not_allowed"});
    return exchange->respond(std::move(response));
  }
  const Route* route = nullptr;
  if (const auto error = check(request, route)) {
    count_refusal(*error);
    return respond(exchange, *error);
  }
  if (const auto* answer = std::get_if<AtOnce>(&route->answer)) return (this->**answer)(exchange);
  if (const auto* watching = std::get_if<Watching>(&route->answer))
    return watchers_->post([this, exchange = std::move(exchange), answer = watching->answer] {
      (this->*answer)(exchange);
    });
  work_on(*route, std::move(exchange));
}

// Nobody works for a client that has gone: what waits is dropped, and what runs is asked to end.
void Service::work_on(const Route& route, Exchange exchange) {
  std::stop_source stop;
  exchange->on_disconnect([stop]() mutable { stop.request_stop(); });
  ++num_working_;
  const std::shared_ptr<std::atomic<int>> working(&num_working_,
                                                  [](std::atomic<int>* count) { --*count; });
  // How large a compressed body is shows only once it is read.
  const http::Request& request = exchange->request();
  const bool is_lengthy = route.is_lengthy || request.body.size() > kLargeBodyBytes ||
                          http::find_header(request.headers, "content-encoding");
  workers_->post(
      [this, exchange = std::move(exchange), answer = std::get<Work>(route.answer), stop,
       working]() mutable {
        const std::stop_callback on_cut(cut_.get_token(), [&] { stop.request_stop(); });
        if (stop.stop_requested())
          respond(exchange, stopped());
        else
          work(exchange, answer, stop.get_token());
      },
      is_lengthy ? Workers::Length::lengthy : Workers::Length::brief);
}

// --- on the way out -------------------------------------------------------------------------

http::Headers Service::headers_of(const http::Request& request,
                                  const std::string& request_id) const {
  http::Headers headers = access_.cors_headers(request);
  headers.push_back({"X-Request-Id", request_id});
  return headers;
}

// In the log and in the metrics.
void Service::note(const http::Request& request, RequestLine line) const {
  line.seconds = steady_now_s() - request.received_s;
  const Route* route = nullptr;
  for (const Route& candidate : routes())
    if (request.path == candidate.path ||
        (candidate.has_rest && request.path.starts_with(candidate.path)))
      route = &candidate;
  // A probe is answered with 503 while the server comes and goes, as it should be.
  const bool is_expected =
      line.status < 400 || (line.status == 503 && state_ != ServiceState::ready);
  line.is_quiet = route && route->is_quiet && is_expected;
  if (state_ != ServiceState::loading)
    serving_.metrics->on_http(route ? route->path : "other", line.status, line.seconds);
  log_.request(line);
}

void Service::respond(const Exchange& exchange, http::Response response, std::string error,
                      ApiWarnings warnings) {
  const http::Request& request = exchange->request();
  std::string id = request_id_of(request);
  for (http::Header& header : headers_of(request, id))
    response.headers.push_back(std::move(header));
  add_warnings_header(warnings, response.headers);
  RequestLine line = line_of(request, std::move(id));
  line.status = response.status;
  line.error = std::move(error);
  line.warnings = std::move(warnings);
  note(request, std::move(line));
  // Who has gone gets none: the exchange is dropped, which cuts the connection.
  if (response.status != kClientGone) exchange->respond(std::move(response));
}

void Service::respond(const Exchange& exchange, const ApiError& error) {
  http::Response response = to_response(error);
  if (state_ == ServiceState::draining) response.close = true;
  respond(exchange, std::move(response), error.message);
}

void Service::respond_json(const Exchange& exchange, std::string json, ApiWarnings warnings) {
  respond(exchange, http::Response{.headers = {}, .body = std::move(json)}, {},
          std::move(warnings));
}

// --- answers --------------------------------------------------------------------------------

namespace {

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json model_card(const std::string& id, const std::string& main, bool is_adapter,
                const Serving* serving) {
  Json card = {{"id", id},     {"object", "model"}, {"created", 0}, {"owned_by", "octavo"},
               {"root", main}, {"parent", nullptr}};
  if (is_adapter) {
    card["root"] = id;
    card["parent"] = main;
  }
  if (!serving) return card;
  card["max_model_len"] = serving->loaded.max_model_len;
  card["meta"] = {{"n_ctx_train", serving->loaded.config.context_length},
                  {"n_vocab", serving->limits.vocab_size},
                  {"n_embd", serving->loaded.config.hidden_size}};
  return card;
}

Json requests_json(std::span<const LiveRequest> requests,
                   const std::map<int64_t, std::string>& names) {
  Json list = Json::array();
  for (const LiveRequest& live : requests) {
    const auto name = names.find(raw(live.id));
    list.push_back({{"request_id", name == names.end() ? "" : name->second},
                    {"state", live.num_running == 0             ? "waiting"
                              : live.num_generation_tokens == 0 ? "prefill"
                                                                : "running"},
                    {"prompt_tokens", live.num_prompt_tokens},
                    {"cached_tokens", live.num_cached_tokens},
                    {"completion_tokens", live.num_generation_tokens},
                    {"blocks", live.num_blocks},
                    {"preemptions", live.num_preemptions},
                    {"age_s", live.age_s}});
  }
  return list;
}

}  // namespace

void Service::get_home(const Exchange& exchange) {
  respond(
      exchange,
      http::Response{
          .content_type = "text/html; charset=utf-8",
          .headers = {{"Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'"}},
          .body = home_page(options_.served_model_names, exchange->request(), access_.has_keys())});
}

// Alive: the engine's thread shows that it runs, or the model is still being loaded (503, as
// nothing can be asked yet).
void Service::get_health(const Exchange& exchange) {
  if (state_ == ServiceState::loading)
    return respond(
        exchange,
        http::Response{.status = 503,
                       .headers = {{"Retry-After", "1"}},
                       .body = dump({{"status", "loading"}, {"progress", progress_.load()}})});
  if (const std::string ailing = ailment(); !ailing.empty())
    return respond(exchange,
                   http::Response{.status = 503,
                                  .headers = {},
                                  .body = dump({{"status", "stalled"}, {"reason", ailing}})});
  respond_json(exchange, dump({{"status", "ok"}}));
}

void Service::get_ready(const Exchange& exchange) {
  const auto refuse = [&](const char* status) {
    respond(exchange,
            http::Response{.status = 503, .headers = {}, .body = dump({{"status", status}})});
  };
  if (!has_good_weights()) return refuse("damaged");
  if (state_ == ServiceState::draining) return refuse("draining");
  get_health(exchange);
}

void Service::get_version(const Exchange& exchange) {
  respond_json(exchange,
               dump({{"version", std::string(version())}, {"commit", std::string(commit())}}));
}

void Service::get_models(const Exchange& exchange) {
  Json list = Json::array();
  const Serving* serving = state_ == ServiceState::loading ? nullptr : &serving_;
  for (const std::string& name : options_.served_model_names)
    list.push_back(model_card(name, options_.served_model_names.front(), false, serving));
  for (const std::string& name : adapters_.names())
    list.push_back(model_card(name, options_.served_model_names.front(), true, serving));
  respond_json(exchange, dump({{"object", "list"}, {"data", list}}));
}

void Service::get_model(const Exchange& exchange) {
  std::optional<std::string> id = http::decoded_name(
      std::string_view(exchange->request().path).substr(std::string_view("/v1/models/").size()));
  const auto adapter = adapters_.resolve(id);
  if (!adapter) return respond(exchange, adapter.error());
  const Serving* serving = state_ == ServiceState::loading ? nullptr : &serving_;
  respond_json(exchange, dump(model_card(*id, options_.served_model_names.front(),
                                         *adapter != nullptr, serving)));
}

void Service::get_tokenizer_info(const Exchange& exchange) {
  respond_json(exchange,
               tokenizer_info_answer(*serving_.loaded.tokenizer, serving_.limits.max_model_len,
                                     serving_.chat_template));
}

void Service::get_metrics(const Exchange& exchange) {
  if (state_ == ServiceState::loading) return respond(exchange, not_ready());
  const Engine& engine = *serving_.loaded.engine;
  const HttpFigures http = http_figures();
  respond(
      exchange,
      http::Response{.content_type = "text/plain; version=0.0.4; charset=utf-8",
                     .headers = {},
                     .body = serving_.metrics->text(
                         {.heartbeat_age_s = engine.heartbeat().age_s(),
                          .num_connections = http.num_connections,
                          .num_open_requests = engine.num_unfinished(),
                          .max_queue_len = serving_.options.max_queue_len,
                          .request_memory_bytes = http.request_memory_bytes,
                          .max_request_memory_bytes = options_.http.limits.max_request_memory_bytes,
                          .num_dropped_log_lines = log_.num_dropped()})});
}

void Service::get_load(const Exchange& exchange) {
  if (state_ == ServiceState::loading) return respond(exchange, not_ready());
  const AdmissionGate& gate = *serving_.gate;
  respond_json(exchange, dump({{"server_load", gate.num_open()},
                               {"waiting", gate.num_waiting()},
                               {"expected_wait_s", gate.expected_wait_s(0)}}));
}

void Service::get_requests(const Exchange& exchange) {
  std::map<int64_t, std::string> names;
  for (const auto& session : live_sessions())
    for (const RequestId id : session->engine_ids()) names[raw(id)] = session->request_id();
  serving_.loaded.engine->post([this, exchange, names = std::move(names)](EngineCore& core) {
    exchange->post([this, exchange, names, requests = core.live_requests()] {
      respond_json(exchange, dump({{"object", "list"}, {"data", requests_json(requests, names)}}));
    });
  });
}

void Service::get_openapi(const Exchange& exchange) {
  const bool is_loading = state_ == ServiceState::loading;
  respond_json(exchange, openapi_json({.limits = is_loading ? ApiLimits{} : serving_.limits,
                                       .needs_key = access_.has_keys(),
                                       .needs_key_for_metrics =
                                           access_.has_keys() && !options_.access.metrics_public}));
}

}  // namespace octavo
