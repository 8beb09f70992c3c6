#include "bench/serve_load.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "bench/figures.h"
#include "bench/server_sampler.h"
#include "formats/quote.h"
#include "formats/shallow_json.h"

namespace octavo {
namespace {

using http::Call;
using http::CallEnd;
using http::CallResult;
using http::Client;

constexpr double kShortTimeoutS = 30;  // of what a server answers at once

double cpu_seconds() {
  rusage usage = {};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// One dialogue under way.
struct Flight {
  const Dialogue* dialogue = nullptr;
  size_t turn = 0;
  DialogueSoFar so_far = {};
  AnswerReader reader = AnswerReader(false);
  RequestRecord record = {};
};

class LoadRun {
 public:
  LoadRun(Client& client, const std::vector<Dialogue>& dialogues, const ServeLoadOptions& options)
      : client_(client), dialogues_(dialogues), options_(options), sampler_(client, key_headers()) {
    for (const Dialogue& dialogue : dialogues) total_ += static_cast<int>(dialogue.turns.size());
  }

  Result<ServeLoadResult> run() {
    const std::stop_callback on_stop(options_.stop, [this] { client_.post([this] { stop(); }); });
    OCTAVO_TRY(result_.model, find_model());
    RequestOptions request = options_.request;
    request.model = result_.model;
    OCTAVO_TRY(form_, RequestForm::make(request));
    OCTAVO_CHECK_OK(warm_up());
    start_s_ = client_.now_s();
    const double cpu_s = cpu_seconds();
    if (options_.sample_server) sampler_.start();
    pump();
    if (!failure_) client_.run();
    if (failure_) return tl::unexpected<Error>(*failure_);
    note_client(cpu_seconds() - cpu_s, client_.now_s() - start_s_);
    return finished();
  }

 private:
  http::Headers key_headers() const {
    if (options_.api_key.empty()) return {};
    return {{"Authorization", "Bearer " + options_.api_key}};
  }

  // --- before the clock starts ----------------------------------------------------------------

  CallResult call(Call call) {
    CallResult answer;
    client_.send(std::move(call), {}, [&](const CallResult& result, double) {
      answer = result;
      client_.stop();
    });
    client_.run();
    return answer;
  }

  Error unanswered(std::string_view what, const CallResult& answer) const {
    if (stopped_) return {ErrorCode::cancelled, "stopped before the run began"};
    const AnswerReader reader(false);
    return {ErrorCode::io_error,
            fmt::format("{} failed: {} {}", what, reader.finish(answer), reader.why(answer))};
  }

  Result<std::string> find_model() {
    if (!options_.request.model.empty()) return options_.request.model;
    Call get = {.method = "GET", .path = "/v1/models", .headers = key_headers()};
    get.timeout_s = kShortTimeoutS;
    const CallResult answer = call(std::move(get));
    if (answer.end != CallEnd::answered || answer.status != 200)
      return tl::unexpected(unanswered("GET /v1/models", answer));
    const auto [root, too_deep] = parse_shallow_json(answer.body, 8);
    if (!too_deep && root.is_object() && root.contains("data") && root["data"].is_array())
      for (const auto& model : root["data"])
        if (model.is_object() && model.contains("id") && model["id"].is_string())
          return model["id"].get<std::string>();
    return fail(ErrorCode::io_error, "the server lists no model; name one with --model");
  }

  // With text, which every server takes, whatever its vocabulary.
  Result<void> warm_up() {
    std::vector<TokenId> ids;
    for (int i = 0; i < 16; ++i) ids.push_back(TokenId{3 + 7 * i});
    const Turn turn = {.text = words_of(ids), .output_tokens = 4};
    DialogueSoFar so_far;
    OCTAVO_TRY(const std::string prompt, so_far.ask(turn, form_));
    std::optional<Error> error;
    bool answered = options_.num_warmups == 0;
    for (int i = 0; i < options_.num_warmups && !stopped_; ++i) {
      AnswerReader reader(false);
      Client::OnEvent on_event = [&](const http::SseEvent& event, double time_s) {
        reader.read(event.data, time_s);
      };
      client_.send(post(form_.body(prompt, turn.output_tokens)), std::move(on_event),
                   [&](const CallResult& result, double) {
                     RequestRecord record = {.finish_reason = reader.finish(result)};
                     answered |= record.completed();
                     if (!record.completed())
                       error = Error{ErrorCode::io_error,
                                     fmt::format("the server does not answer a first request: {} "
                                                 "{}",
                                                 record.finish_reason, reader.why(result))};
                     client_.stop();
                   });
      client_.run();
    }
    if (stopped_) return tl::unexpected(unanswered("", {}));
    if (!answered) return tl::unexpected(*error);
    return {};
  }

  Call post(std::string body) const {
    Call call = {.method = "POST",
                 .path = std::string(form_.chat() ? kChatCompletions : kCompletions),
                 .headers = key_headers(),
                 .body = std::move(body)};
    call.headers.push_back({"Content-Type", "application/json"});
    call.headers.push_back({"Accept", "text/event-stream"});
    call.timeout_s = options_.timeout_s;
    return call;
  }

  // --- the run --------------------------------------------------------------------------------

  double elapsed_s() const { return client_.now_s() - start_s_; }

  // Starts what is due and has a place; comes back when the next one is due.
  void pump() {
    while (!stopped_ && !failure_ && next_ < dialogues_.size() && has_place()) {
      const double wait_s = dialogues_[next_].arrival_s - elapsed_s();
      if (wait_s > 0) return come_back(dialogues_[next_].arrival_s);
      if (!was_full_) latest_s_ = std::max(latest_s_, -wait_s);
      begin(dialogues_[next_++]);
    }
    was_full_ = !has_place();
    if (under_way_ == 0 && (stopped_ || next_ == dialogues_.size())) end();
  }

  bool has_place() const {
    return options_.max_concurrency == 0 || under_way_ < options_.max_concurrency;
  }

  void come_back(double at_s) {
    was_full_ = false;
    if (std::exchange(is_waiting_, true)) return;
    client_.at(start_s_ + at_s, [this] {
      is_waiting_ = false;
      pump();
    });
  }

  void begin(const Dialogue& dialogue) {
    ++under_way_;
    auto flight = std::make_shared<Flight>();
    flight->dialogue = &dialogue;
    send_turn(flight);
  }

  void send_turn(const std::shared_ptr<Flight>& flight) {
    const Turn& turn = flight->dialogue->turns[flight->turn];
    const Result<std::string> prompt = flight->so_far.ask(turn, form_);
    if (!prompt) return give_up(prompt.error());
    const bool is_last = flight->turn + 1 == flight->dialogue->turns.size();
    flight->reader = AnswerReader(!is_last);
    flight->record = {.arrival_s = elapsed_s()};
    flight->record.prompt_tokens = static_cast<int>(turn.token_ids.size());
    client_.send(
        post(form_.body(*prompt, turn.output_tokens)),
        [this, flight](const http::SseEvent& event, double time_s) {
          flight->reader.read(event.data, time_s - start_s_);
        },
        [this, flight](const CallResult& result, double time_s) {
          finish_turn(flight, result, time_s - start_s_);
        });
  }

  void finish_turn(const std::shared_ptr<Flight>& flight, const CallResult& result, double time_s) {
    RequestRecord& record = flight->record;
    flight->reader.fill(record);
    record.end_s = std::max(time_s, record.arrival_s);
    record.finish_reason = flight->reader.finish(result);
    const bool completed = record.completed();
    ++done_;
    failed_ += !completed;
    if (completed) lacks_usage_ |= !flight->reader.has_usage();
    if (completed) num_without_reason_ += !flight->reader.has_reason();
    if (!completed) note_failure(record.finish_reason, flight->reader.why(result));
    run_.requests.push_back(std::move(record));
    if (options_.on_progress) options_.on_progress(done_, failed_, total_);
    // After a failure the rest of a conversation has nothing to go on from.
    if (completed && !stopped_ && ++flight->turn < flight->dialogue->turns.size()) {
      flight->so_far.hear(flight->reader.text());
      return send_turn(flight);
    }
    --under_way_;
    pump();
  }

  void give_up(const Error& error) {
    failure_ = error;
    client_.stop();
  }

  void stop() {
    stopped_ |= !is_over_;
    client_.cancel_all();
    if (start_s_ > 0 && under_way_ == 0) end();
  }

  void end() {
    if (std::exchange(is_over_, true)) return;
    if (!options_.sample_server || stopped_) return client_.stop();
    sampler_.finish([this] { client_.stop(); });
  }

  // --- what is said of it ---------------------------------------------------------------------

  // The first of each kind says what the others will have been.
  void note_failure(const std::string& kind, const std::string& why) {
    constexpr size_t kMostKinds = 20;
    if (first_failure_.empty())
      first_failure_ = fmt::format("{}{}{}", kind, why.empty() ? "" : ", ", why);
    if (!why.empty() && whys_.size() < kMostKinds) whys_.emplace(kind, why);
  }

  void note_client(double cpu_s, double seconds) {
    const double cores = cpu_s / std::max(seconds, 1e-9);
    run_.settings["client_cpu"] = fmt::format("{:.0f} % of a core", 100 * cores);
    if (cores > 0.7 && seconds > 1)
      result_.notes.push_back(
          fmt::format("The client itself kept {:.0f} % of a core busy: latencies may be its own.",
                      100 * cores));
    if (latest_s_ > 0.01)
      result_.notes.push_back(
          fmt::format("Requests were sent up to {:.0f} ms after their time.", latest_s_ * 1e3));
  }

  void note_answers() {
    if (lacks_usage_)
      result_.notes.push_back("The server sent no usage: tokens are counted by events.");
    if (num_without_reason_ > 0)
      result_.notes.push_back(fmt::format(
          "{} answers ended without a finish_reason: whether they are whole is not known.",
          num_without_reason_));
    double tokens = 0, events = 0;
    for (const RequestRecord& request : run_.requests) {
      if (!request.completed() || request.token_s.empty()) continue;
      tokens += request.output_tokens();
      events += static_cast<double>(request.token_s.size());
    }
    if (tokens > 1.2 * events)
      result_.notes.push_back(fmt::format(
          "The server sends {:.1f} tokens in an event: ITL is the time between two events, TPOT "
          "that of a token.",
          tokens / events));
  }

  Result<ServeLoadResult> finished() {
    // Answers come in any order; results are read in that of the requests.
    std::stable_sort(
        run_.requests.begin(), run_.requests.end(),
        [](const RequestRecord& a, const RequestRecord& b) { return a.arrival_s < b.arrival_s; });
    run_.goodput_ms = options_.goodput_ms;
    const std::string missing = sampler_.note();
    run_.server = sampler_.take();
    for (ServerSample& sample : run_.server)
      sample.time_s = std::max(0.0, sample.time_s - start_s_);
    for (const auto& [kind, count] : failures_of(run_)) {
      const auto why = whys_.find(kind);
      result_.notes.push_back(fmt::format("{} {}: {}{}", count,
                                          count == 1 ? "request failed" : "requests failed", kind,
                                          why == whys_.end() ? "" : ", " + why->second));
    }
    note_answers();
    if (options_.sample_server && !stopped_ && !missing.empty()) result_.notes.push_back(missing);
    if (stopped_) result_.notes.push_back("The run was stopped before its end.");
    result_.runs.push_back(std::move(run_));
    return ServeLoadResult{std::move(result_), done_, failed_, first_failure_, stopped_};
  }

  Client& client_;
  const std::vector<Dialogue>& dialogues_;
  const ServeLoadOptions& options_;
  ServerSampler sampler_;
  RequestForm form_;
  double start_s_ = 0;                     // of the client's clock
  size_t next_ = 0;                        // dialogue
  int under_way_ = 0;                      // dialogues
  int total_ = 0, done_ = 0, failed_ = 0;  // requests
  int num_without_reason_ = 0;             // answers
  double latest_s_ = 0;      // a request was sent after it was due, though there was a place
  bool was_full_ = false;    // so that what is sent next is late for a reason
  bool is_waiting_ = false;  // for a time to come
  bool stopped_ = false, is_over_ = false, lacks_usage_ = false;
  std::optional<Error> failure_;
  std::map<std::string, std::string> whys_;
  std::string first_failure_;
  RunResult run_;
  BenchResult result_;
};

}  // namespace

Result<ServeLoadResult> run_serve_load(const std::vector<Dialogue>& dialogues,
                                       const ServeLoadOptions& options) {
  OCTAVO_TRY(const std::unique_ptr<Client> client, Client::create(options.client));
  return LoadRun(*client, dialogues, options).run();
}

}  // namespace octavo
