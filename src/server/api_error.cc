#include "server/api_error.h"

#include <nlohmann/json.hpp>

#include "http/content_coding.h"
#include "server/api_json.h"

namespace octavo {
namespace {

using Json = nlohmann::ordered_json;

Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

// What a code of the engine is to a client. The rest is the server's fault.
struct Row {
  ErrorCode code;
  int status;
  std::string_view type, api_code;
};
constexpr std::string_view kInvalid = "invalid_request_error";
constexpr Row kRows[] = {
    {ErrorCode::invalid_argument, 400, kInvalid, ""},
    {ErrorCode::unsupported, 400, kInvalid, "unsupported"},
    {ErrorCode::context_overflow, 400, kInvalid, "context_length_exceeded"},
    {ErrorCode::resource_exhausted, 400, kInvalid, "resource_exhausted"},
    {ErrorCode::template_error, 400, kInvalid, "template_error"},
    {ErrorCode::cancelled, 503, "server_error", "cancelled"},
    {ErrorCode::corrupt_file, 503, "server_error", "weights_damaged"},  // of the engine's own
};

}  // namespace

std::string to_json(const ApiError& error) {
  const Json json = {{"error",
                      {{"message", error.message},
                       {"type", error.type},
                       {"param", text_or_null(error.param)},
                       {"code", text_or_null(error.code)}}}};
  return to_line(json);
}

http::Response to_response(const ApiError& error) {
  http::Response response{.status = error.status, .body = to_json(error)};
  if (error.retry_after_s > 0)
    response.headers.push_back({"Retry-After", std::to_string(error.retry_after_s)});
  if (!error.allow.empty()) response.headers.push_back({"Allow", error.allow});
  if (error.status == 415)
    response.headers.push_back({"Accept-Encoding", std::string(http::kContentCodings)});
  if (error.status == 401) response.headers.push_back({"WWW-Authenticate", "Bearer"});
  return response;
}

ApiError to_api_error(const Error& error) {
  for (const Row& row : kRows)
    if (row.code == error.code)
      return {.status = row.status,
              .message = error.message,
              .type = std::string(row.type),
              .code = std::string(row.api_code)};
  return {.status = 500,
          .message = error.message,
          .type = "server_error",
          .code = std::string(error_name(error.code))};
}

ApiError to_submit_error(const Error& error) {
  if (error.code != ErrorCode::resource_exhausted) return to_api_error(error);
  return {.status = 429,
          .message = error.message,
          .type = "rate_limit_error",
          .code = "max_queue_len",
          .retry_after_s = 1};
}

ApiError out_of_memory() {
  return {.status = 503,
          .message =
              "the server has no memory left for this request; try again later, or send less "
              "at once",
          .type = "service_unavailable",
          .code = "out_of_memory",
          .retry_after_s = 1};
}

}  // namespace octavo
