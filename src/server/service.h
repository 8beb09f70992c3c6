// What is served: the model and its state, and who answers which route.
//
// Life: loading (503) -> ready -> draining (503 for what is new) -> gone. A service outlives the
// HTTP server that calls it, or the server is destroyed first.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <variant>
#include <vector>

#include "engine/load.h"
#include "http/exchange.h"
#include "http/server.h"
#include "llm/chat_prompt.h"
#include "server/access.h"
#include "server/adapters.h"
#include "server/admission_gate.h"
#include "server/api_request.h"
#include "server/metrics.h"
#include "server/reading_turns.h"
#include "server/request_log.h"
#include "server/serve_options.h"
#include "server/session.h"
#include "server/watchdog.h"
#include "server/workers.h"
#include "text/fill_in_middle.h"

namespace octavo {

// The model and what belongs to it.
struct Serving {
  std::unique_ptr<Metrics> metrics;
  std::unique_ptr<AdmissionGate> gate;
  std::string chat_template;  // its source; empty: none
  const ReasoningFormat* reasoning = nullptr;
  const ToolFormat* tools = nullptr;  // nullptr: not known
  LoadedEngine loaded;
  ApiLimits limits;
  EngineOptions options;
  std::unique_ptr<SessionContext> context;
  bool speculates = false;              // tokens are guessed
  std::optional<FillInMiddle> fill_in;  // how a suffix is told; unset: the model knows of none
};

enum class ServiceState : uint8_t { loading, ready, draining };

class Service {
 public:
  Service(ServeOptions options, Log& log);
  ~Service();

  // For http::ServerOptions.
  void handle(std::shared_ptr<http::Exchange> exchange);
  std::optional<http::Response> check_head(const http::Request& head) const;
  static http::Response fault(int status, const std::string& why);

  // Engine callbacks: to be those of EngineOptions of the engine given to set_ready().
  void on_step(const StepReport& report);
  void on_idle(const EngineCore& core);
  void set_progress(double done) { progress_ = done; }
  // Those of options.lora; before set_ready(). Errors: those of load_adapter(), too many.
  Result<void> load_adapters(const LoadedEngine& loaded);
  const LoadedEngine& set_ready(LoadedEngine loaded, EngineOptions options,
                                std::string chat_template);

  // False: they have been found damaged, and nothing that they generate can be trusted.
  bool has_good_weights() const;

  void begin_drain();
  bool is_idle() const;  // no request is on its way
  void cut_all();        // the rest gets an error
  // No request will come any more: ends the engine.
  void close();

  // Twenty times a second: what sessions do with time, and the watchdog. False: the engine has been
  // stuck for so long that only a restart helps.
  bool tick();

  // Why the engine is not well; empty: it is.
  std::string ailment() const;
  // What it is doing. Only once there is one.
  std::string engine_state() const;
  // For /metrics and tick(); nullptr before it goes.
  void set_http(const http::Server* server);

 private:
  struct Route;
  using Exchange = std::shared_ptr<http::Exchange>;
  // Who answers a route, and where: on the connection's thread, which must not take a while; on the
  // one that is for watching alone; by the workers, until there is no need any more.
  using AtOnce = void (Service::*)(const Exchange&);
  struct Watching {
    AtOnce answer;
  };
  using Work = void (Service::*)(const Exchange&, const std::stop_token&);
  using Answer = std::variant<AtOnce, Watching, Work>;

  static const std::vector<Route>& routes();
  std::optional<ApiError> check(const http::Request& request, const Route*& route) const;
  // On a worker: what the request asks for takes time and memory. Throws nothing.
  void work(const Exchange& exchange, Work answer, const std::stop_token& stop) noexcept;
  void work_on_body(const Exchange& exchange, Work answer, const std::stop_token& stop);
  void refuse_body(const Exchange& exchange, const ApiError& error);
  void trim_memory();
  ApiError not_ready() const;
  void work_on(const Route& route, Exchange exchange);
  ApiError stopped() const;  // the answer to a request whose work was ended early
  std::vector<std::shared_ptr<Session>> live_sessions() const;

  void get_home(const Exchange& exchange);
  void get_health(const Exchange& exchange);
  void get_ready(const Exchange& exchange);
  void get_version(const Exchange& exchange);
  void get_models(const Exchange& exchange);
  void get_model(const Exchange& exchange);
  void get_tokenizer_info(const Exchange& exchange);
  void get_metrics(const Exchange& exchange);
  void get_load(const Exchange& exchange);
  void get_requests(const Exchange& exchange);
  void get_openapi(const Exchange& exchange);
  void post_tokenize(const Exchange& exchange, const std::stop_token& stop);
  void post_detokenize(const Exchange& exchange, const std::stop_token& stop);
  void post_completions(const Exchange& exchange, const std::stop_token& stop);
  void post_chat(const Exchange& exchange, const std::stop_token& stop);
  void post_load_adapter(const Exchange& exchange, const std::stop_token& stop);
  void post_unload_adapter(const Exchange& exchange, const std::stop_token& stop);
  void post_embeddings(const Exchange& exchange, const std::stop_token& stop);

  ApiError refusal(const Error& error, std::string_view param) const;
  ApiResult<std::shared_ptr<const AnswerRules>> rules_of(GenerationRequest& request) const;
  ApiResult<std::vector<Request>> prompts_of(CompletionRequest& request,
                                             const std::stop_token& stop) const;
  ApiResult<void> add_suffix(CompletionRequest& request, const std::stop_token& stop) const;
  ApiResult<std::vector<TokenId>> ids_of(PromptInput& input, const CompletionRequest& request,
                                         const std::stop_token& stop) const;
  // Of a chat or of /tokenize: its messages, and what the template is given beside them.
  template <class ApiRequest>
  ApiResult<ChatPrompt> render(ApiRequest& request, const std::stop_token& stop) const;
  ApiResult<Request> prompt_of(ChatRequest& request, const std::stop_token& stop) const;
  void set_format(ChatRequest& request, const TextSpan& end_of_prompt) const;
  ApiResult<Request> finish_prompt(GenerationRequest& request, std::vector<TokenId> ids) const;
  std::optional<ApiError> check_repeated(const GenerationRequest& request,
                                         std::span<const Request> prompts) const;
  void add_prediction(const GenerationRequest& request, std::span<Request> prompts,
                      const std::stop_token& stop) const;
  std::optional<ApiError> check_generates() const;
  template <class ApiRequest>
  void start(const Exchange& exchange, ApiRequest& request, std::vector<Request> prompts,
             std::string_view id_prefix, std::vector<std::optional<std::string>> prompt_texts = {});

  void note(const http::Request& request, RequestLine line) const;
  void count_refusal(const ApiError& error) const;
  void respond(const Exchange& exchange, http::Response response, std::string error = {},
               ApiWarnings warnings = {});
  void respond(const Exchange& exchange, const ApiError& error);
  void respond_json(const Exchange& exchange, std::string json, ApiWarnings warnings = {});
  http::Headers headers_of(const http::Request& request, const std::string& request_id) const;

  ServeOptions options_;
  Log& log_;
  Access access_;
  Adapters adapters_;
  std::atomic<double> progress_{0};
  std::atomic<ServiceState> state_{ServiceState::loading};
  Serving serving_;  // set once, before state_ is ready
  std::unique_ptr<Workers> workers_, watchers_;
  std::stop_source cut_;  // of all work
  struct HttpFigures {
    int num_connections = 0;
    size_t request_memory_bytes = 0;
  };
  HttpFigures http_figures() const;

  mutable std::mutex http_mutex_;
  const http::Server* http_ = nullptr;  // under http_mutex_
  std::atomic<int> num_working_{0};     // requests with the workers
  ReadingTurns reading_;
  int64_t trimmed_bytes_ = 0;  // in use after memory was last given back
  int untrimmed_ticks_ = 0;    // since that was last looked at
  bool has_worked_ = false;    // since memory was given back by a quiet server
  bool told_stall_ = false;
  Watchdog watchdog_;

  mutable std::mutex mutex_;  // of what follows
  std::map<int64_t, std::weak_ptr<Session>> sessions_;
  int64_t next_session_ = 0;
};

}  // namespace octavo
