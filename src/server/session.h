// One request of a client on its way through the engine: its prompts are submitted, what comes of
// them is written to the exchange, streams as server-sent events (SSE), and a client that goes
// away, reads too slowly or waits too long ends it.
#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "http/exchange.h"
#include "server/admission_gate.h"
#include "server/api_answer.h"
#include "server/metrics.h"
#include "server/request_log.h"
#include "server/workers.h"

namespace octavo {

// What sessions borrow; outlives them.
struct SessionContext {
  Engine& engine;
  Metrics& metrics;
  AdmissionGate& gate;
  Workers& workers;
  Log& log;
  double max_queue_wait_s = 0;  // 0: no limit
  double sse_keep_alive_interval_s = 0;
};

struct SessionRequest {
  std::vector<Request> prompts;
  // As they were sent, for RequestOutput::prompt; nothing for one of ids. May be empty: not needed.
  std::vector<std::optional<std::string>> prompt_texts = {};
  std::unique_ptr<AnswerWriter> writer;
  http::Headers headers;  // of the answer
  bool stream = false, include_usage = false, continuous_usage_stats = false;
  RequestLine line;  // what the log knows so far
};

class Session : public std::enable_shared_from_this<Session> {
 public:
  // Submits all prompts, or answers why not. `on_end` is called once, when all has ended.
  static std::shared_ptr<Session> start(SessionContext& context,
                                        std::shared_ptr<http::Exchange> exchange,
                                        SessionRequest request, std::function<void()> on_end);

  // Ends it with this error, wherever it is. From any thread.
  void fail(const ApiError& error);
  // Now and then, so many seconds after the last time: the head of a stream whose prompt waits, and
  // the limit of waiting.
  void tick(double passed_s);
  // Of its prompts, as far as they have been submitted.
  std::vector<RequestId> engine_ids();
  const std::string& request_id() const { return request_.line.request_id; }

 private:
  struct LastToken {
    double at_s = 0;
    int64_t step = 0;  // of the engine
  };
  struct Prompt {
    std::optional<RequestId> id;  // under mutex_
    int n = 1;
    int64_t num_tokens = 0;
    std::optional<double> work_began_s = {};  // of the engine's thread
    std::optional<std::string> text = {};     // for the first RequestOutput that is written
    std::optional<RequestOutput> prompt;      // what the first events of its choices may repeat
    std::vector<bool> told;                   // choices whose first event has been written
    std::vector<LastToken> last_tokens;       // of its choices; of the engine's thread
    std::optional<RequestOutput> output;
  };
  struct Item {  // what the engine said
    size_t prompt = 0;
    std::optional<ChoiceEvent> event = {};
    std::optional<RequestOutput> prompt_done = {};
    std::optional<RequestOutput> output = {};
  };

  Session(SessionContext& context, std::shared_ptr<http::Exchange> exchange, SessionRequest request,
          std::function<void()> on_end);

  std::optional<ApiError> enter_and_submit();
  void abandon();
  ApiError refusal(const AdmissionGate::Refusal& refused) const;
  RequestEvents events_of(size_t prompt);

  // On the engine's thread.
  void note_started(size_t prompt);
  void on_delta(size_t prompt, const ChoiceDelta& delta);
  void on_finish(size_t prompt, RequestOutput output);
  void push(Item item);
  static int64_t bytes_of(const Item& item);

  // On the connection's thread.
  void take_items();
  void wait_until_written();
  void take(Item& item);
  void begin_stream();
  void write_event(Prompt& prompt, const ChoiceEvent& event);
  void write_large_event(ChoiceEvent event, const RequestOutput* told);
  void write_lines(std::span<const std::string> lines);
  void finish();
  void answer_whole(const Timings& times);
  void finish_stream(const Usage& used, const Timings& times);
  void end_with(const ApiError& error);
  void on_gone();
  void note_end(const Usage& used, const Timings& times);

  void cancel_all();
  Usage usage() const;
  Timings timings() const;

  SessionContext& context_;
  const std::shared_ptr<http::Exchange> exchange_;
  SessionRequest request_;
  std::function<void()> on_end_;

  // Of the connection's thread.
  std::deque<Item> taken_;   // from items_
  bool is_writing_ = false;  // a large event, before which no other is taken
  std::vector<Prompt> prompts_;
  size_t num_ended_ = 0;
  bool stream_begun_ = false;
  bool answered_ = false;  // nothing more is written
  bool gone_ = false;      // the client is
  int status_ = 200;
  std::string error_;
  Usage so_far_;
  int num_seqs_ = 0;
  size_t num_to_submit_ = 0;  // prompts that entered the gate and not yet the engine
  double waited_s_ = 0;       // these of tick()
  bool head_asked_ = false, gave_up_ = false;

  std::atomic<int64_t> waiting_bytes_{0};  // of items_ and taken_

  std::mutex mutex_;  // of what follows
  std::vector<Item> items_;
  bool has_posted_ = false;
  bool cancelled_ = false;
  int num_waiting_ = 0;  // prompts on which no work has begun
};

}  // namespace octavo
