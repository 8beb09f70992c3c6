// What requests take while workers read them: memory by the budget, and an end whatever happens.
#include <malloc.h>

#include <algorithm>
#include <exception>
#include <new>

#include "http/memory_budget.h"
#include "server/body_work.h"
#include "server/process_stats.h"
#include "server/service.h"

namespace octavo {
namespace {

// Of tick(), which comes twenty times a second. A server that is never quiet gives back, too.
constexpr int kQuietTicks = 20, kBusyTicks = 200;
constexpr int64_t kQuietBytes = int64_t{2} << 20, kBusyBytes = int64_t{16} << 20;

ApiError mistake(const std::exception& error) {
  return {.status = 500,
          .message = std::string("the server made a mistake: ") + error.what(),
          .type = "server_error"};
}

}  // namespace

void Service::work(const Exchange& exchange, Work answer, const std::stop_token& stop) noexcept {
  try {
    try {
      work_on_body(exchange, answer, stop);
    } catch (const std::bad_alloc&) {
      std::string().swap(exchange->body());
      respond(exchange, out_of_memory());
    } catch (const std::exception& error) {
      respond(exchange, mistake(error));
    }
  } catch (...) {
    // Not even for that: an exchange that is dropped is answered without.
  }
}

void Service::work_on_body(const Exchange& exchange, Work answer, const std::stop_token& stop) {
  const auto weight =
      prepare_body(*exchange, {.max_body_bytes = options_.http.limits.max_body_bytes,
                               .max_memory_bytes = http::MemoryBudget::largest_share(
                                   options_.http.limits.max_request_memory_bytes)});
  if (!weight) return refuse_body(exchange, weight.error());
  const size_t bytes = working_bytes(*weight);
  if (!reading_.begin(
          bytes, [&] { return exchange->reserve(bytes); }, stop))
    return stop.stop_requested() ? respond(exchange, stopped())
                                 : refuse_body(exchange, no_room(bytes));
  const ReadingTurns::End end(reading_, bytes);
  (this->*answer)(exchange, stop);
  release_body(*exchange, *weight);
}

void Service::refuse_body(const Exchange& exchange, const ApiError& error) {
  if (error.status == 503 && state_ != ServiceState::loading)
    serving_.metrics->on_rejection(error.code);
  respond(exchange, error);
}

void Service::set_http(const http::Server* server) {
  const std::lock_guard lock(http_mutex_);
  http_ = server;
}

Service::HttpFigures Service::http_figures() const {
  const std::lock_guard lock(http_mutex_);
  if (!http_) return {};
  return {http_->num_connections(), http_->request_memory_bytes()};
}

bool Service::has_good_weights() const {
  return state_ == ServiceState::loading || !serving_.loaded.pack_job ||
         serving_.loaded.pack_job->status().has_value();
}

// The C library keeps what is freed, in parts for each thread, so that the largest request and the
// largest answer ever would be paid for until the end.
void Service::trim_memory() {
  const bool quiet = is_idle();
  has_worked_ |= !quiet;
  if (++untrimmed_ticks_ < (quiet ? kQuietTicks : kBusyTicks)) return;
  untrimmed_ticks_ = 0;
  const int64_t bytes = process_stats().anonymous_bytes;
  trimmed_bytes_ = std::min(trimmed_bytes_, bytes);
  // What was in use when it was last given back may be free by now.
  const bool is_due = quiet && has_worked_;
  if (!is_due && bytes - trimmed_bytes_ < (quiet ? kQuietBytes : kBusyBytes)) return;
  has_worked_ = !quiet;
  malloc_trim(0);
  trimmed_bytes_ = process_stats().anonymous_bytes;
}

}  // namespace octavo
