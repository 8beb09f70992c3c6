#include "server/request_log.h"

#include <fmt/format.h>
#include <spdlog/async.h>
#include <spdlog/sinks/base_sink.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <mutex>
#include <nlohmann/json.hpp>

namespace octavo {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kQueuedLines = 8192;

spdlog::level::level_enum level_of(LogLevel level) {
  switch (level) {
    case LogLevel::debug:
      return spdlog::level::debug;
    case LogLevel::info:
      return spdlog::level::info;
    case LogLevel::warning:
      return spdlog::level::warn;
    case LogLevel::error:
      return spdlog::level::err;
    case LogLevel::off:
      break;
  }
  return spdlog::level::off;
}

class DescriptorSink : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit DescriptorSink(int descriptor) : descriptor_(descriptor) {}

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    size_t done = 0;
    while (done < line.size()) {
      const ssize_t n = ::write(descriptor_, line.data() + done, line.size() - done);
      if (n <= 0) return;
      done += static_cast<size_t>(n);
    }
  }
  void flush_() override {}

 private:
  int descriptor_;
};

double milliseconds(double seconds) { return std::round(seconds * 1e5) / 100; }

Json json_of(const RequestLine& line) {
  Json json = {{"request_id", line.request_id}, {"remote_address", line.remote_address},
               {"method", line.method},         {"path", line.path},
               {"status", line.status},         {"ms", milliseconds(line.seconds)}};
  if (line.num_prompts > 0) {
    json["stream"] = line.stream;
    if (line.num_prompts > 1) json["prompts"] = line.num_prompts;
    json["prompt_tokens"] = line.prompt_tokens;
    json["cached_tokens"] = line.cached_tokens;
    json["completion_tokens"] = line.completion_tokens;
    if (line.draft_tokens) json["draft_tokens"] = *line.draft_tokens;
    if (line.accepted_tokens) json["accepted_tokens"] = *line.accepted_tokens;
    json["queue_ms"] = milliseconds(line.queue_s);
    json["ttft_ms"] = milliseconds(line.ttft_s);
    json["finish_reason"] = line.finish_reason;
  }
  if (!line.error.empty()) json["error"] = line.error;
  if (!line.warnings.empty()) json["warnings"] = line.warnings;
  if (!line.prompt.empty()) json["prompt"] = line.prompt;
  return json;
}

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// key=value, strings quoted where they would not be one word.
std::string text_of(const Json& json) {
  std::string text;
  for (const auto& [key, value] : json.items()) {
    const bool plain =
        value.is_string() && !value.get_ref<const std::string&>().empty() &&
        value.get_ref<const std::string&>().find_first_of(" \"=\\") == std::string::npos &&
        dump(value).find('\\') == std::string::npos;
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", key,
                        plain ? value.get<std::string>() : dump(value));
  }
  return text;
}

}  // namespace

struct Log::Writer {
  LogFormat format;
  std::shared_ptr<spdlog::async_logger> logger;
  std::shared_ptr<spdlog::details::thread_pool> pool;  // goes first: its thread writes what is left
};

Log::Log(LogOptions options) : writer_(std::make_unique<Writer>()) {
  writer_->format = options.format;
  writer_->pool = std::make_shared<spdlog::details::thread_pool>(kQueuedLines, 1);
  writer_->logger = std::make_shared<spdlog::async_logger>(
      "octavo", std::make_shared<DescriptorSink>(options.file_descriptor), writer_->pool,
      spdlog::async_overflow_policy::overrun_oldest);
  writer_->logger->set_level(level_of(options.level));
  writer_->logger->set_pattern(options.format == LogFormat::json
                                   ? "{\"time\":\"%Y-%m-%dT%H:%M:%S.%e%z\",\"level\":\"%l\",%v"
                                   : "%Y-%m-%d %H:%M:%S.%e %l %v");
}

Log::~Log() = default;

void Log::request(const RequestLine& line) {
  const LogLevel level = line.is_quiet        ? LogLevel::debug
                         : line.status >= 500 ? LogLevel::error
                                              : LogLevel::info;
  if (!writer_->logger->should_log(level_of(level))) return;
  const Json json = json_of(line);
  // The pattern has opened the object.
  const std::string text =
      writer_->format == LogFormat::json ? dump(json).substr(1) : text_of(json);
  writer_->logger->log(level_of(level), "{}", text);
}

void Log::say(LogLevel level, std::string_view message) {
  if (!writer_->logger->should_log(level_of(level))) return;
  const std::string text = writer_->format == LogFormat::json
                               ? dump({{"message", std::string(message)}}).substr(1)
                               : std::string(message);
  writer_->logger->log(level_of(level), "{}", text);
}

}  // namespace octavo
