#include "server/local_calls.h"

#include <chrono>
#include <thread>
#include <utility>

#include "http/exchange.h"
#include "server/clock.h"
#include "server/request_log.h"
#include "server/service.h"
#include "server/workers.h"

namespace octavo {
namespace {

constexpr std::chrono::milliseconds kTick{1};

class LocalExchange final : public http::Exchange {
 public:
  LocalExchange(http::Request request, Workers& thread,
                std::function<void(http::Response)> answered)
      : request_(std::move(request)), thread_(thread), answered_(std::move(answered)) {}
  ~LocalExchange() override {
    respond(Service::fault(500, "the request was dropped without an answer"));
  }

  const http::Request& request() const override { return request_; }
  std::string& body() override { return request_.body; }
  bool reserve(size_t) override { return true; }  // whoever runs it gave the file himself
  void respond(http::Response response) override {
    if (auto answered = std::exchange(answered_, nullptr)) answered(std::move(response));
  }
  // Nobody asks for streams here.
  void begin_stream(http::Response, http::StreamOptions) override {}
  bool write(std::string) override { return false; }
  void when_written(std::function<void()> work) override { post(std::move(work)); }
  void end_stream(std::string) override {}
  void on_disconnect(std::function<void()>) override {}
  void post(std::function<void()> work) override { thread_.post(std::move(work)); }

 private:
  http::Request request_;
  Workers& thread_;
  std::function<void(http::Response)> answered_;
};

}  // namespace

struct LocalCalls::Impl {
  explicit Impl(ServeOptions options)
      : log({.level = LogLevel::off}),
        service(std::move(options), log),
        thread(std::make_unique<Workers>(1)) {}

  Log log;
  Service service;
  std::unique_ptr<Workers> thread;  // in place of a connection's
};

LocalCalls::LocalCalls(ServeOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}

// Sessions, which the thread ends, use the service.
LocalCalls::~LocalCalls() {
  cut_all();
  while (!impl_->service.is_idle()) std::this_thread::sleep_for(kTick);
  impl_->thread.reset();
  impl_->service.close();
}

void LocalCalls::watch(EngineOptions& options) {
  options.on_step = [this](const StepReport& report) { impl_->service.on_step(report); };
  options.on_idle = [this](const EngineCore& core) { impl_->service.on_idle(core); };
}

void LocalCalls::set_ready(LoadedEngine loaded, EngineOptions options, std::string chat_template) {
  impl_->service.set_ready(std::move(loaded), std::move(options), std::move(chat_template));
}

void LocalCalls::post(std::string path, std::string body, std::string request_id,
                      std::function<void(http::Response)> answered) {
  http::Request request{.method = "POST",
                        .path = std::move(path),
                        .query = {},
                        .headers = {{"Host", "localhost"},
                                    {"Content-Type", "application/json"},
                                    {"X-Request-Id", std::move(request_id)}},
                        .body = std::move(body),
                        .remote_address = "127.0.0.1",
                        .received_s = steady_now_s()};
  impl_->service.handle(
      std::make_shared<LocalExchange>(std::move(request), *impl_->thread, std::move(answered)));
}

void LocalCalls::cut_all() { impl_->service.cut_all(); }

}  // namespace octavo
