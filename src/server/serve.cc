#include "server/serve.h"

#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <utility>

#include "base/memory_shortage.h"
#include "http/open_files.h"
#include "http/server.h"
#include "server/clock.h"
#include "server/service.h"

namespace octavo {
namespace {

constexpr std::chrono::milliseconds kTick{50};
constexpr double kCutGrace_s = 3;                // for the last words of answers that were cut
constexpr double kFlushGrace_s = 1;              // for bytes that are on their way to clients
constexpr std::chrono::seconds kCloseGrace{10};  // for the engine's present step
// Until the requests in work have given up theirs.
constexpr std::chrono::seconds kMemoryPatience{5};
constexpr int64_t kFewOpenFiles = 4096;
constexpr int64_t kOtherFiles = 64;  // beside those of clients that are served

std::string url_of(const ServeOptions& options, uint16_t port) {
  if (!options.http.uds.empty()) return "unix:" + options.http.uds;
  const std::string& host = options.http.host;
  return fmt::format("{}://{}:{}", options.http.ssl_certfile.empty() ? "http" : "https",
                     host.find(':') == std::string::npos ? host : fmt::format("[{}]", host), port);
}

// A stuck engine cannot be ended from within; whoever supervises the program starts it anew.
[[noreturn]] void give_up(Log& log, const std::string& why) {
  log.say(LogLevel::error, fmt::format("{}; it does not come back, so the server ends", why));
  std::this_thread::sleep_for(std::chrono::milliseconds(200));  // for the log's thread
  std::_Exit(1);
}

class Running {
 public:
  Running(ServeOptions options, Log& log)
      : options_(std::move(options)), log_(log), service_(options_, log) {}

  Result<void> listen() {
    http::ServerOptions http = options_.http;
    http.limits.max_connections = fit_open_files(http.limits.max_connections);
    http.handler = [this](std::shared_ptr<http::Exchange> exchange) {
      service_.handle(std::move(exchange));
    };
    http.on_head = [this](const http::Request& head) { return service_.check_head(head); };
    http.on_fault = &Service::fault;
    OCTAVO_TRY(server_, http::Server::start(std::move(http)));
    service_.set_http(server_.get());
    port_ = server_->port();
    return {};
  }

  std::string url() const { return url_of(options_, server_->port()); }

  Result<void> load(EngineOptions engine, const ServeHooks& hooks) {
    engine.on_step = [this](const StepReport& report) { service_.on_step(report); };
    engine.on_idle = [this](const EngineCore& core) { service_.on_idle(core); };
    engine.on_progress = [this](double done) { service_.set_progress(done); };
    OCTAVO_TRY(ServedModel model, hooks.load(engine));
    OCTAVO_CHECK_OK(service_.load_adapters(model.loaded));
    const LoadedEngine& loaded = service_.set_ready(std::move(model.loaded), std::move(engine),
                                                    std::move(model.chat_template));
    if (hooks.on_ready) hooks.on_ready(loaded);
    return {};
  }

  // Until `stop`, or until the weights are found damaged. True: until `stop`.
  bool run(const std::stop_token& stop) {
    while (!stop.stop_requested() && service_.has_good_weights()) tick();
    return service_.has_good_weights();
  }

  // Ends at once, with an error for whatever is on its way.
  void abandon() {
    service_.cut_all();
    wait_for(kCutGrace_s, [this] { return service_.is_idle(); });
    shut();
  }

  void drain(const std::stop_token& at_once) {
    service_.begin_drain();
    const double end = steady_now_s() + options_.shutdown_timeout_s;
    while (!service_.is_idle() && steady_now_s() < end && !at_once.stop_requested()) tick();
    if (!service_.is_idle()) {
      log_.say(LogLevel::warning, "answers that are not complete are cut");
      service_.cut_all();
      wait_for(kCutGrace_s, [this] { return service_.is_idle(); });
    }
    shut();
  }

  uint16_t port() const { return port_; }

 private:
  void shut() {
    server_->stop_accepting();
    wait_for(kFlushGrace_s, [this] { return server_->num_connections() == 0; });
    service_.set_http(nullptr);
    server_.reset();
    close();
  }

  // As many connections as there are files for: those beyond are told so, and do not hang.
  int fit_open_files(int max_connections) {
    const int64_t files = http::raise_open_file_limit();
    const int fitting =
        static_cast<int>(std::clamp<int64_t>(files - kOtherFiles, 1, max_connections));
    if (fitting < max_connections && files < kFewOpenFiles)
      log_.say(LogLevel::warning,
               fmt::format("only {} files may be open at once, so that no more than {} clients can "
                           "be connected; ulimit -n raises it",
                           files, fitting));
    return fitting;
  }

  // The engine's thread is waited for, but not for ever.
  void close() {
    const std::jthread guard([this, state = "the engine does not end: " + service_.engine_state()](
                                 const std::stop_token& closed) {
      std::mutex mutex;
      std::unique_lock lock(mutex);
      std::condition_variable_any never;
      never.wait_for(lock, closed, kCloseGrace, [] { return false; });
      if (!closed.stop_requested()) give_up(log_, state);
    });
    service_.close();
  }

  void tick() {
    std::this_thread::sleep_for(kTick);
    if (!service_.tick()) give_up(log_, service_.ailment());
  }
  template <class Condition>
  void wait_for(double seconds, Condition&& condition) {
    const double end = steady_now_s() + seconds;
    while (!condition() && steady_now_s() < end) tick();
  }

  ServeOptions options_;
  Log& log_;
  Service service_;
  uint16_t port_ = 0;
  std::unique_ptr<http::Server> server_;  // goes first: it calls the service
};

// One life of a server, from its weights to its end. False: it ended because they were damaged, and
// options.http.port is the port that it had.
Result<bool> serve_once(ServeOptions& options, const EngineOptions& engine, Log& log,
                        const ServeHooks& hooks, const std::stop_token& stop,
                        const std::stop_token& at_once) {
  Running running(options, log);
  OCTAVO_CHECK_OK(running.listen());
  options.http.port = running.port();
  if (hooks.on_listening) hooks.on_listening(running.url());
  const auto loaded = running.load(engine, hooks);
  if (!loaded && loaded.error().code == ErrorCode::cancelled && stop.stop_requested()) {
    log.say(LogLevel::info, "stopped while the model was being loaded");
    return true;
  }
  OCTAVO_CHECK_OK(loaded);
  if (!running.run(stop)) {
    log.say(LogLevel::error,
            "the file of repacked weights is damaged, and so are the weights in use; what was "
            "generated lately may be wrong. They are made anew from the model's file");
    running.abandon();
    return false;
  }
  log.say(LogLevel::info, "asked to stop: requests on their way are finished, new ones refused");
  running.drain(at_once);
  log.say(LogLevel::info, "stopped");
  return true;
}

// Left to itself the C library learns from the largest request: it then keeps up to 64 MiB at the
// end of each thread's part of the heap, which malloc_trim() leaves alone.
void keep_heap_small() {
  constexpr int kLargeBytes = 1 << 20;
  mallopt(M_MMAP_THRESHOLD, kLargeBytes);
  mallopt(M_TRIM_THRESHOLD, kLargeBytes);
}

}  // namespace

Result<void> serve(ServeOptions options, EngineOptions engine, Log& log, const ServeHooks& hooks,
                   std::stop_token stop, std::stop_token at_once) {
  engine.stop_loading = stop;
  keep_heap_small();
  const MemoryShortage shortage(kMemoryPatience);
  for (int damages = 1;; ++damages) {
    OCTAVO_TRY(const bool has_ended, serve_once(options, engine, log, hooks, stop, at_once));
    if (has_ended) return {};
    // The damaged file has been removed. If it is there again, that was not to be done.
    if (damages > 1) engine.pack_folder.clear();
  }
}

}  // namespace octavo
