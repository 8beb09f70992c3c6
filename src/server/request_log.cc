#include "server/request_log.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <nlohmann/json.hpp>
#include <utility>

#include "text/utf8.h"

namespace octavo {
namespace {

using Json = nlohmann::ordered_json;

std::string_view name_of(LogLevel level) {
  constexpr std::array<std::string_view, 5> kNames = {"debug", "info", "warning", "error", "off"};
  return kNames[static_cast<size_t>(level)];
}

// Of the beginning of a line; "2026-01-02 03:04:05.678", or with a zone
// "2026-01-02T03:04:05.678+02:00".
std::string time_text(char between, bool with_zone) {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  tm local{};
  localtime_r(&now.tv_sec, &local);
  std::string text =
      fmt::format("{:%Y-%m-%d}{}{:%H:%M:%S}.{:03}", local, between, local, now.tv_nsec / 1'000'000);
  if (!with_zone) return text;
  const long minutes = std::abs(local.tm_gmtoff) / 60;
  return text +
         fmt::format("{}{:02}:{:02}", local.tm_gmtoff < 0 ? '-' : '+', minutes / 60, minutes % 60);
}

bool is_c1(std::string_view text, size_t at) {
  return text[at] == '\xC2' && at + 1 < text.size() &&
         static_cast<unsigned char>(text[at + 1]) < 0xA0;
}

// What a client or a file says must not steer a terminal. As JSON escapes it, which changes nothing
// in a line of JSON.
std::string without_controls(std::string_view text) {
  std::string valid, out;
  Utf8Repair repair;
  repair.push(text, valid);
  repair.finish(valid);
  for (size_t i = 0; i < valid.size(); ++i) {
    const auto c = static_cast<unsigned char>(valid[i]);
    if (is_c1(valid, i))
      out += fmt::format("\\u{:04x}", static_cast<unsigned char>(valid[++i]));
    else if (c < 0x20 || c == 0x7f)
      out += fmt::format("\\u{:04x}", c);
    else
      out += valid[i];
  }
  return out;
}

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
                        plain ? value.get_ref<const std::string&>() : dump(value));
  }
  return text;
}

std::string json_line(LogLevel level, std::string_view object) {
  return fmt::format("{{\"time\":\"{}\",\"level\":\"{}\",{}\n", time_text('T', true),
                     name_of(level), without_controls(object.substr(1)));
}

std::string text_line(LogLevel level, std::string_view text) {
  return fmt::format("{} {} {}\n", time_text(' ', false), name_of(level), without_controls(text));
}

std::string line_of(LogFormat format, LogLevel level, std::string_view message) {
  if (format == LogFormat::text) return text_line(level, message);
  return json_line(level, dump({{"message", std::string(message)}}));
}

}  // namespace

Log::Log(LogOptions options)
    : options_(options),
      lines_({.file_descriptor = options.file_descriptor, .dropped_line = [options](int64_t count) {
                return line_of(
                    options.format, LogLevel::warning,
                    fmt::format("{} lines of the log were dropped: nobody read them", count));
              }}) {}

void Log::request(const RequestLine& line) {
  // Refusals that are meant are not errors.
  const LogLevel level = line.is_quiet        ? LogLevel::debug
                         : line.status == 503 ? LogLevel::warning
                         : line.status >= 500 ? LogLevel::error
                                              : LogLevel::info;
  if (level < options_.level) return;
  const Json json = json_of(line);
  lines_.write(options_.format == LogFormat::json ? json_line(level, dump(json))
                                                  : text_line(level, text_of(json)));
}

void Log::say(LogLevel level, std::string_view message) {
  if (level >= options_.level) lines_.write(line_of(options_.format, level, message));
}

}  // namespace octavo
