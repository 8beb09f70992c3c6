// A refusal in OpenAI's shape.
#pragma once

#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "base/result.h"
#include "http/message.h"

namespace octavo {

// Of a request whose client did not wait, in the log and the metrics: it gets no answer.
inline constexpr int kClientGone = 499;

struct ApiError {
  int status = 400;
  std::string message;                         // a sentence that says what to change
  std::string type = "invalid_request_error";  // invalid_request_error | authentication_error | ...
  std::string param = {};                      // the field; empty: null
  std::string code = {};                       // "unsupported_parameter"; empty: null
  std::string allow = {};                      // of 405: methods for the Allow header
  int retry_after_s = 0;                       // 0: no Retry-After header
};

template <class T>
using ApiResult = tl::expected<T, ApiError>;

// {"error":{"message","type","param","code"}}
std::string to_json(const ApiError& error);
http::Response to_response(const ApiError& error);

// What the engine or a template said, as an answer to the client.
ApiError to_api_error(const Error& error);
// What Engine::submit() said of a request that its check() had passed: there, resource_exhausted
// means that the queue is full, which passes.
ApiError to_submit_error(const Error& error);

// Of the server's memory, which ended the request: 503.
ApiError out_of_memory();

}  // namespace octavo
