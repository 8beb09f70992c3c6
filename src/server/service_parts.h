// Small things that the files of Service share.
#pragma once

#include <string>
#include <string_view>

#include "server/api_error.h"
#include "server/request_log.h"

namespace octavo {

// The client's X-Request-Id, else `in_body`, if it is a decent one; else a fresh one.
std::string request_id_of(const http::Request& request, const std::string& in_body = {});
RequestLine line_of(const http::Request& request, std::string request_id);
ApiError param_error(const Error& error, std::string_view param);

}  // namespace octavo
