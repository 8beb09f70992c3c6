#include "hub/http_get.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <memory>

#include "base/version.h"

namespace octavo::hub {
namespace {

constexpr int kMaxRedirects = 8;
constexpr long kConnectSeconds = 20;
constexpr long kStallSeconds = 60;  // without a byte

using Handle = std::unique_ptr<CURL, decltype(&curl_easy_cleanup)>;
using UrlHandle = std::unique_ptr<CURLU, decltype(&curl_url_cleanup)>;
using Headers = std::unique_ptr<curl_slist, decltype(&curl_slist_free_all)>;

void start_curl() {
  static const CURLcode started = curl_global_init(CURL_GLOBAL_DEFAULT);
  static_cast<void>(started);
}

std::string part_of(CURLU* url, CURLUPart part) {
  char* text = nullptr;
  if (curl_url_get(url, part, &text, CURLU_DEFAULT_PORT) != CURLUE_OK) return {};
  const std::string copy = text;
  curl_free(text);
  return copy;
}

tl::unexpected<GetError> failed(GetError::Kind kind, ErrorCode code, std::string message) {
  return tl::unexpected<GetError>(GetError{kind, Error{code, std::move(message)}});
}

std::string_view trimmed(std::string_view text) {
  const auto is_blank = [](char c) { return c == ' ' || c == '\r' || c == '\n' || c == '\t'; };
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

// The value of a header line with this name, in lower case.
std::optional<std::string_view> header_value(std::string_view line, std::string_view name) {
  if (line.size() <= name.size() || line[name.size()] != ':') return std::nullopt;
  for (size_t i = 0; i < name.size(); ++i) {
    const char c = line[i];
    if ((c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c) != name[i])
      return std::nullopt;
  }
  return trimmed(line.substr(name.size() + 1));
}

// <URL>; rel="next", possibly among others.
std::string next_link(std::string_view value) {
  for (size_t open = value.find('<'); open != std::string_view::npos;
       open = value.find('<', open + 1)) {
    const size_t close = value.find('>', open);
    if (close == std::string_view::npos) return {};
    const std::string_view rest = value.substr(close, value.find(',', close) - close);
    if (rest.find("rel=\"next\"") != std::string_view::npos)
      return std::string(value.substr(open + 1, close - open - 1));
  }
  return {};
}

// "bytes 100-199/200": 100.
std::optional<int64_t> first_of_range(std::string_view value) {
  constexpr std::string_view kUnit = "bytes ";
  if (!value.starts_with(kUnit)) return std::nullopt;
  value.remove_prefix(kUnit.size());
  int64_t first = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), first);
  const bool is_number = error == std::errc() && end != value.data() + value.size() && *end == '-';
  return is_number && first >= 0 ? std::optional(first) : std::nullopt;
}

// One request on its way, without redirects.
struct Exchange {
  const GetRequest& request;
  CURL* curl;
  GetAnswer answer = {};
  std::optional<int64_t> range_first = {};
  bool begun = false;
  std::optional<Error> refused = {};

  long status() const {
    long code = 0;
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &code);
    return code;
  }

  void read_header(std::string_view line) {
    if (line.starts_with("HTTP/")) range_first.reset();
    if (const auto value = header_value(line, "content-range"))
      range_first = first_of_range(*value);
    if (const auto value = header_value(line, "link")) answer.next = next_link(*value);
  }

  Result<void> begin() {
    if (std::exchange(begun, true) || !request.on_begin) return {};
    if (status() == 200) return request.on_begin(0);
    if (range_first != request.from)
      return fail(ErrorCode::io_error,
                  "the server sent another part of the file than was asked "
                  "for; try again, it may be a proxy's fault");
    return request.on_begin(*range_first);
  }

  bool take(std::string_view bytes) {
    if (status() != 200 && status() != 206) return true;
    Result<void> taken = begin();
    if (taken) taken = request.on_bytes(bytes);
    if (!taken) refused = taken.error();
    return taken.has_value();
  }
};

size_t on_header(char* data, size_t size, size_t count, void* exchange) {
  static_cast<Exchange*>(exchange)->read_header({data, size * count});
  return size * count;
}

size_t on_body(char* data, size_t size, size_t count, void* exchange) {
  return static_cast<Exchange*>(exchange)->take({data, size * count}) ? size * count
                                                                      : CURL_WRITEFUNC_ERROR;
}

void set_up(CURL* curl, const std::string& url, const GetRequest& request, const Headers& headers,
            Exchange& exchange) {
  static const std::string agent = fmt::format("octavo/{}", version());
  curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl, CURLOPT_USERAGENT, agent.c_str());
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers.get());
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, kStallSeconds);
  curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, static_cast<long>(request.time_limit_s * 1000));
  curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_header);
  curl_easy_setopt(curl, CURLOPT_HEADERDATA, &exchange);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &exchange);
  if (!request.ca_file.empty()) curl_easy_setopt(curl, CURLOPT_CAINFO, request.ca_file.c_str());
  if (request.from > 0)
    curl_easy_setopt(curl, CURLOPT_RANGE, fmt::format("{}-", request.from).c_str());
}

// What a code says of the way to the server, as a user reads it.
tl::unexpected<GetError> transfer_error(CURLcode code, const std::string& host, bool begun,
                                        const char* detail) {
  const std::string reason = *detail ? detail : curl_easy_strerror(code);
  switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT:
      return failed(GetError::Kind::unreachable, ErrorCode::io_error,
                    fmt::format("{} cannot be reached: {}", host, reason));
    case CURLE_OPERATION_TIMEDOUT:
      return failed(begun ? GetError::Kind::interrupted : GetError::Kind::unreachable,
                    ErrorCode::io_error, fmt::format("{} does not answer: {}", host, reason));
    case CURLE_PEER_FAILED_VERIFICATION:
      return failed(GetError::Kind::refused, ErrorCode::io_error,
                    fmt::format("the certificate of {} is not trusted: {}; if it should be, "
                                "SSL_CERT_FILE names a file with who signed it",
                                host, reason));
    case CURLE_SSL_CACERT_BADFILE:
      return failed(GetError::Kind::refused, ErrorCode::io_error,
                    fmt::format("SSL_CERT_FILE names no file of certificates: {}", reason));
    case CURLE_PARTIAL_FILE:
    case CURLE_RECV_ERROR:
    case CURLE_SEND_ERROR:
    case CURLE_GOT_NOTHING:
    case CURLE_HTTP2_STREAM:
    case CURLE_HTTP2:
      return failed(GetError::Kind::interrupted, ErrorCode::io_error,
                    fmt::format("the connection to {} was cut: {}", host, reason));
    default:
      return failed(GetError::Kind::refused, ErrorCode::io_error,
                    fmt::format("{}: {}", host, reason));
  }
}

}  // namespace

bool Origin::is_loopback() const {
  return host == "localhost" || host == "[::1]" || host.starts_with("127.");
}

Result<Origin> origin_of(const std::string& url) {
  start_curl();
  const UrlHandle parsed(curl_url(), curl_url_cleanup);
  const auto refuse = [&](std::string_view what) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("a hub's address {}; it is as in https://huggingface.co", what));
  };
  if (!parsed || curl_url_set(parsed.get(), CURLUPART_URL, url.c_str(), 0) != CURLUE_OK)
    return refuse("is no URL");
  Origin origin{part_of(parsed.get(), CURLUPART_SCHEME), part_of(parsed.get(), CURLUPART_HOST),
                part_of(parsed.get(), CURLUPART_PORT)};
  if (origin.scheme != "http" && origin.scheme != "https")
    return refuse("does not begin with http:// or https://");
  if (!part_of(parsed.get(), CURLUPART_USER).empty()) return refuse("has a user's name in it");
  std::transform(origin.host.begin(), origin.host.end(), origin.host.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return origin;
}

tl::expected<GetAnswer, GetError> get(const GetRequest& request) {
  const auto refuse = [](const Error& error) {
    return tl::unexpected<GetError>(GetError{GetError::Kind::refused, error});
  };
  const auto first_origin = origin_of(request.url);
  if (!first_origin) return refuse(first_origin.error());
  std::string url = request.url;
  bool may_have_token = true;
  for (int redirects = 0; redirects <= kMaxRedirects; ++redirects) {
    const auto origin = origin_of(url);
    if (!origin) return refuse(origin.error());
    if (first_origin->scheme == "https" && origin->scheme != "https")
      return failed(GetError::Kind::refused, ErrorCode::io_error,
                    fmt::format("{} redirects to {} without encryption, which is not followed",
                                first_origin->host, origin->host));
    // Once another host has had a say, not even the first gets it.
    may_have_token = may_have_token && *origin == *first_origin;
    const Handle curl(curl_easy_init(), curl_easy_cleanup);
    if (!curl)
      return failed(GetError::Kind::refused, ErrorCode::resource_exhausted, "out of memory");
    Headers headers(nullptr, curl_slist_free_all);
    if (may_have_token && !request.token.empty())
      headers.reset(curl_slist_append(nullptr, ("Authorization: Bearer " + request.token).c_str()));
    Exchange exchange{request, curl.get()};
    char detail[CURL_ERROR_SIZE] = "";
    curl_easy_setopt(curl.get(), CURLOPT_ERRORBUFFER, detail);
    set_up(curl.get(), url, request, headers, exchange);
    const CURLcode code = curl_easy_perform(curl.get());
    if (exchange.refused) return refuse(*exchange.refused);
    if (code != CURLE_OK) return transfer_error(code, origin->host, exchange.begun, detail);
    const char* target = nullptr;
    curl_easy_getinfo(curl.get(), CURLINFO_REDIRECT_URL, &target);
    if (!target) {
      exchange.answer.status = static_cast<int>(exchange.status());
      if (const bool has_body = exchange.answer.status == 200 || exchange.answer.status == 206;
          has_body && !exchange.begun)
        if (const auto begun = exchange.begin(); !begun) return refuse(begun.error());
      return exchange.answer;
    }
    url = target;
  }
  return failed(GetError::Kind::refused, ErrorCode::io_error,
                fmt::format("{} redirects without end", first_origin->host));
}

}  // namespace octavo::hub
