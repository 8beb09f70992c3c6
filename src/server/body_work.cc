#include "server/body_work.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>

#include "http/content_coding.h"

namespace octavo {
namespace {

ApiError too_large(std::string message) {
  return {.status = 413, .message = std::move(message), .code = "request_too_large"};
}

double mib(size_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

ApiError never_fits(size_t bytes, const BodyLimits& limits) {
  return too_large(fmt::format(
      "to read the request may take {:.0f} MiB of memory, and one request may have {:.0f}, seven "
      "eighths of --request-memory-bytes; send less at once",
      mib(bytes), mib(limits.max_memory_bytes)));
}

ApiError undecodable(http::DecodeFault fault, const BodyLimits& limits) {
  if (fault == http::DecodeFault::too_large)
    return too_large(
        fmt::format("the body decodes to more than the {} bytes that this server takes",
                    limits.max_body_bytes));
  if (fault == http::DecodeFault::too_dense)
    return too_large(
        fmt::format("the body decodes to more than {} times its size; send it without "
                    "Content-Encoding",
                    http::kMaxCodingRatio));
  return {.message =
              "the body is not what its Content-Encoding says: it is damaged, cut off, followed by "
              "something else, or needs a window of more than 8 MiB"};
}

std::optional<ApiError> decode_body(http::Exchange& exchange, const BodyLimits& limits) {
  const std::string* header = http::find_header(exchange.request().headers, "content-encoding");
  const auto coding = http::content_coding(header ? *header : "");
  if (!coding || *coding == http::ContentCoding::identity) return std::nullopt;
  std::string& body = exchange.body();
  size_t asked = 0;
  const auto may_take = [&](size_t bytes) { return exchange.reserve(asked = body.size() + bytes); };
  auto text = decode(*coding, body, {.max_bytes = limits.max_body_bytes, .may_take = may_take});
  if (!text && text.error() == http::DecodeFault::no_memory)
    return asked > limits.max_memory_bytes ? never_fits(asked, limits) : no_room(asked);
  if (!text) return undecodable(text.error(), limits);
  body = std::move(*text);
  return std::nullopt;
}

}  // namespace

ApiError no_room(size_t bytes) {
  return {
      .status = 503,
      .message = fmt::format("to read the request may take {:.0f} MiB of memory, and so much is "
                             "not free while other requests are answered; try again later",
                             mib(bytes)),
      .type = "service_unavailable",
      .code = "request_memory",
      .retry_after_s = 1};
}

BodyWeight weigh_body(std::string_view body) {
  BodyWeight weight{.num_bytes = body.size(), .num_values = 1};
  bool in_string = false;
  for (size_t i = 0; i < body.size(); ++i) {
    const char c = body[i];
    if (c == '"')
      in_string = !in_string;
    else if (in_string)
      i += c == '\\';
    else
      weight.num_values += c == ',' || c == ':' || c == '[' || c == '{';
  }
  return weight;
}

// Of a byte most is taken where each is a token that /tokenize spells, of a value where it
// is a part of a short message. Measured over bodies of every shape (tests/server/budget_test.py).
size_t working_bytes(const BodyWeight& weight) {
  return 72 * weight.num_bytes + 224 * weight.num_values;
}

// Ids of tokens, of which the engine and the answer have one list each: a byte is a token at most.
size_t kept_bytes(const BodyWeight& weight) {
  return 4 * weight.num_bytes + 16 * weight.num_values;
}

ApiResult<BodyWeight> prepare_body(http::Exchange& exchange, const BodyLimits& limits) {
  if (auto error = decode_body(exchange, limits)) return tl::unexpected(std::move(*error));
  const BodyWeight weight = weigh_body(exchange.body());
  if (const size_t bytes = working_bytes(weight); bytes > limits.max_memory_bytes)
    return tl::unexpected(never_fits(bytes, limits));
  return weight;
}

void release_body(http::Exchange& exchange, const BodyWeight& weight) {
  std::string().swap(exchange.body());
  exchange.reserve(kept_bytes(weight));  // less than before
}

}  // namespace octavo
