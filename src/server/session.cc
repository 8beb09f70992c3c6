#include "server/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "server/clock.h"

namespace octavo {
namespace {

// A stream whose prompt waits gets its head no later than this: proxies want to see something.
constexpr double kHeadAfter_s = 1.0;
// Who was let in waits this many times max_queue_wait, since that was predicted to suffice.
constexpr double kPatience = 1.5;

constexpr int64_t kLongAnswer = 4096;  // tokens

std::string sse(std::string_view json) { return fmt::format("data: {}\n\n", json); }

constexpr size_t kLargeEvent = 64 << 10;  // bytes
constexpr int64_t kManyEntries = 1000;    // of log-probabilities: a millisecond or so
// What the engine said while a large event is being written. Log-probabilities of a whole
// vocabulary take 2 MB a token.
constexpr int64_t kMostWaiting = 32 << 20;

// Log-probabilities in the event's JSON.
int64_t entries_of(const ChoiceEvent& event, const RequestOutput* prompt) {
  int64_t entries = 0;
  for (const TokenLogprobs& token : event.logprobs) entries += std::ssize(token.entries);
  if (!prompt) return entries;
  for (const auto& token : prompt->prompt_logprobs)
    if (token) entries += std::ssize(token->entries);
  return entries;
}

constexpr std::string_view kDone = "data: [DONE]\n\n";

ApiError slow_reader() {
  return {.status = 408,
          .message =
              "the stream was read too slowly: what could not be delivered exceeded the "
              "server's bound, so the answer was ended",
          .type = "timeout_error",
          .code = "slow_client"};
}

// Waiting would not help these.
ApiError too_many_prompts(size_t num_prompts, int max_queue_len) {
  return {.message = fmt::format("the request has {} prompts, and no more than {} requests may "
                                 "wait and run at once (max_queue_len); send fewer at a time",
                                 num_prompts, max_queue_len),
          .param = "prompt",
          .code = "too_many_prompts"};
}

ApiError waited_too_long(double limit_s) {
  return {.status = 503,
          .message = fmt::format("the request waits for longer than was predicted and than "
                                 "max_queue_wait allows, which is {:.1f} s; try again later",
                                 limit_s),
          .type = "service_unavailable",
          .code = "max_queue_wait",
          .retry_after_s = std::max(1, static_cast<int>(std::ceil(limit_s)))};
}

}  // namespace

std::shared_ptr<Session> Session::start(SessionContext& context,
                                        std::shared_ptr<http::Exchange> exchange,
                                        SessionRequest request, std::function<void()> on_end) {
  std::shared_ptr<Session> session(
      new Session(context, std::move(exchange), std::move(request), std::move(on_end)));
  std::optional<ApiError> error;
  try {
    error = session->enter_and_submit();
  } catch (...) {
    session->abandon();
    throw;
  }
  if (error) {
    session->exchange_->post([session, error] {
      session->end_with(*error);
      session->finish();
    });
    return session;
  }
  session->exchange_->on_disconnect([weak = session->weak_from_this()] {
    if (const auto self = weak.lock()) self->on_gone();
  });
  return session;
}

Session::Session(SessionContext& context, std::shared_ptr<http::Exchange> exchange,
                 SessionRequest request, std::function<void()> on_end)
    : context_(context),
      exchange_(std::move(exchange)),
      request_(std::move(request)),
      on_end_(std::move(on_end)) {
  for (const Request& prompt : request_.prompts) {
    const auto n = static_cast<size_t>(prompt.params.n);
    prompts_.push_back({.id = {},
                        .n = prompt.params.n,
                        .num_tokens = std::ssize(prompt.prompt_token_ids),
                        .text = {},
                        .prompt = {},
                        .told = std::vector<bool>(n),
                        .last_tokens = std::vector<LastToken>(n),
                        .output = {}});
    so_far_.prompt_tokens += prompts_.back().num_tokens;
    num_seqs_ += prompt.params.n;
  }
  for (size_t i = 0; i < request_.prompt_texts.size(); ++i)
    prompts_[i].text = std::move(request_.prompt_texts[i]);
  num_waiting_ = static_cast<int>(prompts_.size());
}

// --- into the engine ------------------------------------------------------------------------

std::optional<ApiError> Session::enter_and_submit() {
  for (const Request& prompt : request_.prompts)
    if (const auto checked = context_.engine.check(prompt); !checked)
      return to_api_error(checked.error());
  if (const int most = context_.gate.max_queue_len(); std::ssize(prompts_) > most)
    return too_many_prompts(prompts_.size(), most);
  if (const auto refused = context_.gate.enter(num_seqs_, so_far_.prompt_tokens)) {
    context_.metrics.on_rejection(refused->reason);
    return refusal(*refused);
  }
  num_to_submit_ = prompts_.size();
  for (size_t i = 0; i < prompts_.size(); ++i) {
    const auto id = context_.engine.submit(std::move(request_.prompts[i]), events_of(i));
    --num_to_submit_;
    if (!id) {
      fail(to_submit_error(id.error()));
      // It ends like one that the engine took.
      RequestOutput output;
      output.error = id.error();
      output.finished = true;
      on_finish(i, std::move(output));
      continue;
    }
    const std::lock_guard lock(mutex_);
    prompts_[i].id = *id;
    if (cancelled_) context_.engine.cancel(*id);
  }
  return std::nullopt;
}

// Of what it entered, whatever went wrong.
void Session::abandon() {
  for (size_t i = prompts_.size() - num_to_submit_; i < prompts_.size(); ++i)
    context_.gate.leave(prompts_[i].n, prompts_[i].num_tokens, std::nullopt);
  cancel_all();
}

ApiError Session::refusal(const AdmissionGate::Refusal& refused) const {
  const int wait = std::clamp(static_cast<int>(std::ceil(refused.wait_s)), 1, 3600);
  return {.status = 429,
          .message = refused.reason == "max_queue_len"
                         ? fmt::format("the server is busy: as many requests wait and run as "
                                       "max_queue_len allows; try again in {} s",
                                       wait)
                         : fmt::format("the server is busy: the request would wait longer than "
                                       "max_queue_wait; try again in {} s",
                                       wait),
          .type = "rate_limit_error",
          .code = std::string(refused.reason),
          .retry_after_s = wait};
}

RequestEvents Session::events_of(size_t prompt) {
  RequestEvents events;
  const auto self = shared_from_this();
  events.on_delta = [self, prompt](const ChoiceDelta& delta) { self->on_delta(prompt, delta); };
  events.on_prefill = [self, prompt](int, int) { self->note_started(prompt); };
  events.on_prompt_done = [self, prompt](const RequestOutput& so_far) {
    self->context_.metrics.on_prompt_done(so_far);
    if (self->request_.stream) self->push({.prompt = prompt, .prompt_done = so_far});
  };
  events.on_finish = [self, prompt](RequestOutput output) {
    self->on_finish(prompt, std::move(output));
  };
  return events;
}

// --- out of the engine, on its thread -------------------------------------------------------

void Session::note_started(size_t index) {
  Prompt& prompt = prompts_[index];
  if (prompt.work_began_s) return;
  prompt.work_began_s = steady_now_s();
  context_.gate.start(prompt.n, prompt.num_tokens);
  {
    const std::lock_guard lock(mutex_);
    --num_waiting_;
  }
  if (request_.stream) push({.prompt = index});
}

void Session::on_delta(size_t index, const ChoiceDelta& delta) {
  LastToken& last = prompts_[index].last_tokens[static_cast<size_t>(delta.index)];
  if (!delta.token_ids.empty() && delta.step != last.step) {
    const double now = steady_now_s();
    if (last.at_s > 0) context_.metrics.on_inter_token(now - last.at_s);
    last = {now, delta.step};
  }
  if (!request_.stream) return;
  ChoiceEvent event{.prompt_index = static_cast<int>(index),
                    .choice = delta.index,
                    .text = std::string(delta.text),
                    .token_ids = {delta.token_ids.begin(), delta.token_ids.end()},
                    .logprobs = {delta.logprobs.begin(), delta.logprobs.end()}};
  // An error is told by its own event.
  if (delta.finish_reason && *delta.finish_reason != FinishReason::error) {
    event.finish_reason = delta.finish_reason;
    event.stop_reason = *delta.stop_reason;
  } else if (event.token_ids.empty() && event.text.empty()) {
    return;
  }
  push({.prompt = index, .event = std::move(event)});
}

void Session::on_finish(size_t index, RequestOutput output) {
  const Prompt& prompt = prompts_[index];
  std::optional<double> run_s;
  if (prompt.work_began_s) run_s = steady_now_s() - *prompt.work_began_s;
  context_.gate.leave(prompt.n, prompt.num_tokens, run_s);
  context_.metrics.on_finish(output);
  push({.prompt = index, .output = std::move(output)});
}

void Session::push(Item item) {
  waiting_bytes_ += bytes_of(item);
  const std::lock_guard lock(mutex_);
  items_.push_back(std::move(item));
  if (std::exchange(has_posted_, true)) return;
  exchange_->post([self = shared_from_this()] { self->take_items(); });
}

// --- to the client, on the connection's thread ----------------------------------------------

// Large events one at a time: those that lie here because they take longer to write down than to
// generate would be taken for a client that reads too slowly.
void Session::take_items() {
  {
    const std::lock_guard lock(mutex_);
    std::move(items_.begin(), items_.end(), std::back_inserter(taken_));
    items_.clear();
    has_posted_ = false;
  }
  const auto self = shared_from_this();  // the last item may be all that holds it
  if (is_writing_ && waiting_bytes_ > kMostWaiting) end_with(slow_reader());
  // What comes after an answer is only counted.
  while (!taken_.empty() && (!is_writing_ || answered_)) {
    Item item = std::move(taken_.front());
    taken_.pop_front();
    waiting_bytes_ -= bytes_of(item);
    take(item);
  }
}

int64_t Session::bytes_of(const Item& item) {
  auto bytes = static_cast<int64_t>(sizeof(Item));
  if (!item.event) return bytes;
  bytes += std::ssize(item.event->text) + std::ssize(item.event->token_ids);
  for (const TokenLogprobs& token : item.event->logprobs)
    bytes += std::ssize(token.entries) * static_cast<int64_t>(sizeof(LogprobEntry));
  return bytes;
}

void Session::wait_until_written() {
  is_writing_ = true;
  exchange_->when_written([self = shared_from_this()] {
    self->is_writing_ = false;
    self->take_items();
  });
}

void Session::take(Item& item) {
  if (request_.stream && !stream_begun_ && !answered_ && !(item.output && item.output->error))
    begin_stream();
  Prompt& prompt = prompts_[item.prompt];
  if (item.prompt_done) {
    so_far_.cached_tokens += item.prompt_done->num_cached_tokens;
    prompt.prompt = std::move(item.prompt_done);
    prompt.prompt->prompt = std::move(prompt.text);
  }
  if (item.event && !answered_) write_event(prompt, *item.event);
  if (!item.output) return;
  prompt.output = std::move(item.output);
  if (!request_.stream) prompt.output->prompt = std::move(prompt.text);
  if (prompt.output->error) end_with(to_api_error(*prompt.output->error));
  if (++num_ended_ == prompts_.size()) finish();
}

void Session::begin_stream() {
  stream_begun_ = true;
  http::Response head{.content_type = "text/event-stream; charset=utf-8",
                      .headers = request_.headers};
  head.headers.push_back({"Cache-Control", "no-cache"});
  head.headers.push_back({"X-Accel-Buffering", "no"});  // or a proxy collects the events
  const auto interval = std::chrono::duration<double>(context_.sse_keep_alive_interval_s);
  exchange_->begin_stream(
      std::move(head),
      {.keep_alive_interval = std::chrono::duration_cast<std::chrono::milliseconds>(interval),
       .keep_alive = ": keep-alive\n\n"});
}

void Session::write_event(Prompt& prompt, const ChoiceEvent& event) {
  so_far_.completion_tokens += std::ssize(event.token_ids);
  const auto choice = static_cast<size_t>(event.choice);
  const bool is_first = !prompt.told[choice];
  prompt.told[choice] = true;
  const RequestOutput* told = is_first && prompt.prompt ? &*prompt.prompt : nullptr;
  if (entries_of(event, told) > kManyEntries) return write_large_event(event, told);
  write_lines(
      request_.writer->events(event, request_.continuous_usage_stats ? &so_far_ : nullptr, told));
}

// By a worker: the connection's thread serves others. Until then no other event is taken.
void Session::write_large_event(ChoiceEvent event, const RequestOutput* told) {
  is_writing_ = true;
  context_.workers.post(
      [self = shared_from_this(), event = std::move(event), told, so_far = so_far_] {
        std::optional<std::vector<std::string>> lines;
        try {
          const bool counts = self->request_.continuous_usage_stats;
          lines = self->request_.writer->events(event, counts ? &so_far : nullptr, told);
        } catch (const std::bad_alloc&) {
          lines.reset();
        }
        self->exchange_->post([self, lines = std::move(lines)] {
          self->is_writing_ = false;
          if (!lines) self->end_with(out_of_memory());
          if (lines && !self->answered_) self->write_lines(*lines);
          self->take_items();
        });
      },
      Workers::Length::lengthy);
}

void Session::write_lines(std::span<const std::string> lines) {
  for (const std::string& json : lines) {
    if (!exchange_->write(sse(json))) return end_with(slow_reader());
    if (json.size() > kLargeEvent) wait_until_written();
  }
}

// All prompts have ended.
void Session::finish() {
  if (gone_) {
    answered_ = true;
    status_ = kClientGone;
    error_ = "the client went away";
  }
  const Usage used = num_ended_ > 0 ? usage() : Usage{};
  const Timings times = timings();
  note_end(used, times);
  if (!std::exchange(answered_, true)) {
    if (request_.stream)
      finish_stream(used, times);
    else
      answer_whole(times);
  }
  context_.log.request(request_.line);
  context_.metrics.on_http(request_.line.path, request_.line.status, request_.line.seconds);
  if (on_end_) std::exchange(on_end_, nullptr)();
}

void Session::answer_whole(const Timings& times) {
  std::vector<RequestOutput> outputs;
  for (Prompt& prompt : prompts_) outputs.push_back(std::move(*prompt.output));
  // Writing long ones takes a while.
  bool is_long = times.usage.completion_tokens > kLongAnswer;
  for (const RequestOutput& output : outputs)
    is_long |= entries_of({}, &output) * std::ssize(output.outputs) > kLongAnswer;
  context_.workers.post(
      [self = shared_from_this(), outputs = std::move(outputs), times,
       on_end = std::exchange(on_end_, nullptr)] {
        try {
          self->exchange_->respond({.headers = self->request_.headers,
                                    .body = self->request_.writer->whole(outputs, times)});
        } catch (const std::bad_alloc&) {
          self->exchange_->respond(to_response(out_of_memory()));
        }
        if (on_end) on_end();
      },
      is_long ? Workers::Length::lengthy : Workers::Length::brief);
}

void Session::finish_stream(const Usage& used, const Timings& times) {
  if (!stream_begun_) begin_stream();
  std::string last;
  if (request_.include_usage)
    last = sse(request_.writer->usage_event(used, times, prompts_.front().output->seed));
  exchange_->end_stream(last.append(kDone));
}

void Session::end_with(const ApiError& error) {
  if (std::exchange(answered_, true)) return;
  status_ = error.status;
  error_ = error.message;
  cancel_all();
  if (stream_begun_) {
    exchange_->end_stream(sse(to_json(error)).append(kDone));
    return;
  }
  http::Response response = to_response(error);
  response.headers.insert(response.headers.end(), request_.headers.begin(), request_.headers.end());
  exchange_->respond(std::move(response));
}

// --- from elsewhere -------------------------------------------------------------------------

void Session::on_gone() {
  gone_ = true;
  cancel_all();
}

void Session::cancel_all() {
  const std::lock_guard lock(mutex_);
  cancelled_ = true;
  for (const Prompt& prompt : prompts_)
    if (prompt.id) context_.engine.cancel(*prompt.id);
}

void Session::fail(const ApiError& error) {
  exchange_->post([self = shared_from_this(), error] { self->end_with(error); });
}

void Session::tick(double passed_s) {
  waited_s_ += passed_s;
  int num_waiting = 0;
  {
    const std::lock_guard lock(mutex_);
    num_waiting = num_waiting_;
  }
  if (num_waiting == 0 || gave_up_) return;
  const bool has_begun = num_waiting < static_cast<int>(prompts_.size());
  if (context_.max_queue_wait_s > 0 && !has_begun &&
      waited_s_ > kPatience * context_.max_queue_wait_s) {
    gave_up_ = true;
    context_.metrics.on_rejection("max_queue_wait");
    return fail(waited_too_long(context_.max_queue_wait_s));
  }
  if (request_.stream && waited_s_ > kHeadAfter_s && !std::exchange(head_asked_, true))
    exchange_->post([self = shared_from_this()] {
      if (!self->stream_begun_ && !self->answered_) self->begin_stream();
    });
}

std::vector<RequestId> Session::engine_ids() {
  const std::lock_guard lock(mutex_);
  std::vector<RequestId> ids;
  for (const Prompt& prompt : prompts_)
    if (prompt.id) ids.push_back(*prompt.id);
  return ids;
}

// --- figures --------------------------------------------------------------------------------

Usage Session::usage() const {
  Usage total;
  for (const Prompt& prompt : prompts_) {
    total.prompt_tokens += prompt.num_tokens;
    if (!prompt.output) continue;
    total.cached_tokens += prompt.output->num_cached_tokens;
    for (const CompletionOutput& choice : prompt.output->outputs)
      total.completion_tokens += std::ssize(choice.token_ids);
    const RequestMetrics& metrics = prompt.output->metrics;
    if (!metrics.speculates) continue;
    if (!total.drafts) total.drafts.emplace();
    total.drafts->tokens += metrics.num_draft_tokens;
    total.drafts->accepted += metrics.num_accepted_tokens;
  }
  return total;
}

Timings Session::timings() const {
  Timings times;
  for (const Prompt& prompt : prompts_) {
    if (!prompt.output) continue;
    const RequestMetrics& metrics = prompt.output->metrics;
    if (metrics.scheduled_ts == 0) continue;
    times.queue_s = std::max(times.queue_s, metrics.queued_s());
    if (metrics.first_token_ts == 0) continue;
    times.prefill_s = std::max(times.prefill_s, metrics.prefill_s());
    times.decode_s = std::max(times.decode_s, metrics.decode_s());
  }
  times.usage = usage();
  return times;
}

void Session::note_end(const Usage& used, const Timings& times) {
  RequestLine& line = request_.line;
  line.status = status_;
  line.error = error_;
  line.stream = request_.stream;
  line.seconds = steady_now_s() - exchange_->request().received_s;
  line.num_prompts = static_cast<int>(prompts_.size());
  line.prompt_tokens = used.prompt_tokens;
  line.cached_tokens = used.cached_tokens;
  line.completion_tokens = used.completion_tokens;
  if (used.drafts) {
    line.draft_tokens = used.drafts->tokens;
    line.accepted_tokens = used.drafts->accepted;
  }
  line.queue_s = times.queue_s;
  line.ttft_s = times.queue_s + times.prefill_s;
  const auto& output = prompts_.front().output;
  if (output && !output->outputs.empty())
    line.finish_reason = name(output->outputs.front().finish_reason);
}

}  // namespace octavo
