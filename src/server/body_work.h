// The memory that a request's body takes to be read, counted before any of it is taken.
#pragma once

#include <cstddef>
#include <string_view>

#include "http/exchange.h"
#include "server/api_error.h"

namespace octavo {

struct BodyWeight {
  size_t num_bytes = 0;
  size_t num_values = 0;  // of JSON and keys of objects; no fewer than there are
};

// One pass over the bytes, which may be anything.
BodyWeight weigh_body(std::string_view body);

// Upper bounds, the body itself included: while it is parsed, rendered and tokenized; and of what
// is kept of it until its answer is complete.
size_t working_bytes(const BodyWeight& weight);
size_t kept_bytes(const BodyWeight& weight);

struct BodyLimits {
  size_t max_body_bytes = 0;    // once it is decoded
  size_t max_memory_bytes = 0;  // of one request
};

// Decodes the body where it came compressed, and weighs it. 400: it is not of the coding that its
// header says; 413: it is too large, or could never be read; 503: there is no room to decode it.
ApiResult<BodyWeight> prepare_body(http::Exchange& exchange, const BodyLimits& limits);

// There is no room for so many bytes now.
ApiError no_room(size_t bytes);

// What was made of the body has been handed on: frees it, and what it took.
void release_body(http::Exchange& exchange, const BodyWeight& weight);

}  // namespace octavo
