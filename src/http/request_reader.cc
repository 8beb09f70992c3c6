#include "http/request_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <cctype>
#include <charconv>
#include <cstring>
#include <limits>
#include <new>
#include <optional>
#include <stdexcept>
#include <utility>

#include "base/memory_shortage.h"
#include "http/hex.h"
#include "http/host.h"

namespace octavo::http {
namespace {

namespace beast = boost::beast;

constexpr size_t kMaxTargetBytes = 16 << 10;
constexpr size_t kMaxMethodBytes = 32;

bool is_token_char(unsigned char c) {
  return std::isalnum(c) || (c != 0 && std::strchr("!#$%&'*+-.^_`|~", c));
}

// Whether a request can begin like this. Who speaks something else (TLS, say) may wait for an
// answer without ever sending a blank line.
bool begins_like_a_request(std::string_view bytes) {
  bytes = bytes.substr(0, kMaxMethodBytes);
  const auto end = std::find_if_not(bytes.begin(), bytes.end(), is_token_char);
  return end == bytes.end() ? bytes.size() < kMaxMethodBytes : end != bytes.begin() && *end == ' ';
}

// Nothing: no plain number, or one that no memory could hold.
std::optional<uint64_t> plain_number(std::string_view text) {
  uint64_t number = 0;
  const auto end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (text.empty() || text[0] == '-' || rest != end || error != std::errc()) return std::nullopt;
  return number;
}

// A header that goes on in the next line. Programs do not agree on what such a line means.
bool has_folded_line(std::string_view head) {
  return head.find("\r\n ") != std::string_view::npos ||
         head.find("\r\n\t") != std::string_view::npos;
}

// An escaped slash parts nothing, so it stays escaped (Request::path), and so that the two can be
// told apart, so does an escaped percent sign.
bool stays_escaped(char c) { return c == '/' || c == '%'; }

// Nothing: a bad escape, or one of a control character.
std::optional<std::string> path_of(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool is_escape = text[i] == '%';
    const int byte = is_escape ? escaped_byte(text.substr(i)) : static_cast<unsigned char>(text[i]);
    if (byte < 0x20 || byte == 0x7f) return std::nullopt;
    const auto c = static_cast<char>(byte);
    if (is_escape && stays_escaped(c))
      out += c == '/' ? "%2F" : "%25";
    else
      out += c;
    if (is_escape) i += 2;
  }
  return out;
}

beast::string_view to_beast(std::string_view text) { return {text.data(), text.size()}; }

std::string_view from_beast(beast::string_view text) { return {text.data(), text.size()}; }

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

struct Target {
  std::string path;                           // with its query
  std::optional<std::string_view> host = {};  // that of "http://host/path"
};

Target parse_target(std::string_view target, std::string_view method) {
  if (target == "*" && method == "OPTIONS") return {"/"};
  for (const std::string_view scheme : {"http://", "https://"})
    if (beast::iequals(to_beast(target.substr(0, scheme.size())), to_beast(scheme))) {
      const size_t end = std::min(target.find_first_of("/?#", scheme.size()), target.size());
      const std::string_view host = target.substr(scheme.size(), end - scheme.size());
      target.remove_prefix(end);
      return {target.starts_with('/') ? std::string(target) : "/" + std::string(target), host};
    }
  return {std::string(target)};
}

}  // namespace

RequestReader::RequestReader(const ServerLimits& limits) : limits_(limits) {}

void RequestReader::fault(int status, std::string why) {
  if (state_ == State::fault) return;
  status_ = status;
  why_ = std::move(why);
  state_ = State::fault;
}

RequestReader::State RequestReader::feed(std::string& inbox) {
  try {
    const MayRunOutOfMemory this_request;
    read(inbox);
  } catch (const std::bad_alloc&) {
    std::string().swap(body_.body());
    fault(503, "the server has no memory left for this request; try again later");
  }
  return state_;
}

void RequestReader::read(std::string& inbox) {
  if (state_ == State::head) skip_empty_line(inbox);
  if (state_ == State::head) find_head(inbox);
  if (state_ == State::body) {
    inbox.erase(0, body_.feed(inbox));
    check_body();
  }
}

// One before a request is forgiven: old clients end a body with it.
void RequestReader::skip_empty_line(std::string& inbox) {
  if (is_begun_ || inbox.empty() || inbox == "\r") return;
  is_begun_ = true;
  if (inbox.starts_with("\r\n")) inbox.erase(0, 2);
}

// The head is parsed when it is there as a whole, so that its limit is one of all its bytes.
void RequestReader::find_head(std::string& inbox) {
  if (is_begun_ && !inbox.empty() && !begins_like_a_request(inbox))
    return fault(400, "this is no HTTP request");
  for (; scanned_ < inbox.size(); ++scanned_) {
    if (scanned_ >= limits_.max_header_bytes)
      return fault(431, "the headers are larger than the server takes");
    if (inbox[scanned_] != '\n') continue;
    if (scanned_ == 0 || inbox[scanned_ - 1] != '\r')
      return fault(400, "lines of a request end with carriage return and line feed");
    const std::string_view head = std::string_view(inbox).substr(0, scanned_ + 1);
    if (!head.ends_with("\r\n\r\n")) continue;
    parse_head(head);
    inbox.erase(0, head.size());
    return;
  }
}

void RequestReader::parse_head(std::string_view head) {
  beast::http::request_parser<beast::http::empty_body> parser;
  parser.header_limit(std::numeric_limits<std::uint32_t>::max());
  parser.body_limit(std::numeric_limits<std::uint64_t>::max());
  beast::error_code error;
  try {
    parser.put(boost::asio::buffer(head.data(), head.size()), error);
  } catch (const std::length_error&) {  // of Beast: 64 KiB is all that one header may have
    return fault(431, "a header is larger than the server takes");
  }
  if (error == beast::http::error::bad_version) return fault(505, "this server speaks HTTP/1.1");
  if (error || !parser.is_header_done())
    return fault(400, "this is no proper HTTP request: " + error.message());
  if (has_folded_line(head)) return fault(400, "a header goes on in the next line");
  const auto& message = parser.get();
  is_http10_ = message.version() < 11;
  keep_alive_ = message.keep_alive();
  request_.method = std::string(message.method_string());
  for (const auto& field : message)
    request_.headers.push_back(
        {std::string(field.name_string()), std::string(trimmed(from_beast(field.value())))});
  check_host();
  take_target(from_beast(message.target()));
  check_expect();
  expect_body();
}

// Where a request ends must be beyond doubt: if something in front of this server saw another end,
// one client could slip a request into another's connection.
void RequestReader::expect_body() {
  const auto lengths = count_of("content-length"), encodings = count_of("transfer-encoding");
  const auto length =
      lengths == 0 ? 0 : plain_number(*find_header(request_.headers, "content-length"));
  if (lengths + encodings > 1 || !length)
    return fault(400, "the length of the body is not said once and clearly");
  if (encodings > 0 && is_http10_) return fault(400, "HTTP/1.0 knows no Transfer-Encoding");
  if (encodings > 0 &&
      !beast::iequals(*find_header(request_.headers, "transfer-encoding"), "chunked"))
    return fault(501, "of transfer encodings only chunked is known");
  if (state_ == State::fault) return;
  state_ = State::body;
  if (encodings > 0)
    body_.expect_chunks(limits_.max_body_bytes);
  else
    body_.expect_length(*length, limits_.max_body_bytes);
}

void RequestReader::check_body() {
  switch (body_.state()) {
    case BodyDecoder::State::open:
      return;
    case BodyDecoder::State::done:
      state_ = State::complete;
      return;
    case BodyDecoder::State::malformed:
      return fault(400, "the chunks of the body are malformed");
    case BodyDecoder::State::too_large:
      return fault(413, fmt::format("the body is larger than the {} bytes that this server takes",
                                    limits_.max_body_bytes));
  }
}

void RequestReader::check_expect() {
  const std::string* expect = find_header(request_.headers, "expect");
  if (!expect || is_http10_) return;
  expects_continue_ = beast::iequals(*expect, "100-continue");
  if (!expects_continue_) fault(417, "of Expect only 100-continue is known");
}

void RequestReader::check_host() {
  const auto hosts = count_of("host");
  if (hosts > 1 || (hosts == 0 && !is_http10_))
    return fault(400, "a request names one Host, and this one does not");
  if (hosts == 1 && !parse_host(*find_header(request_.headers, "host")))
    fault(400, "the Host header is no host, alone or with a port");
}

size_t RequestReader::count_of(std::string_view name) const {
  return static_cast<size_t>(std::count_if(
      request_.headers.begin(), request_.headers.end(),
      [&](const Header& header) { return beast::iequals(header.name, to_beast(name)); }));
}

// What the target names counts, whatever the header says (RFC 9112, 3.2.2).
void RequestReader::replace_host(std::string_view host) {
  if (host.empty() || !parse_host(host))
    return fault(400, "the address of the request names no proper host");
  std::erase_if(request_.headers,
                [](const Header& header) { return beast::iequals(header.name, "host"); });
  request_.headers.push_back({"Host", std::string(host)});
}

void RequestReader::take_target(std::string_view target) {
  if (target.size() > kMaxTargetBytes) return fault(414, "the path is too long");
  const auto [path, host] = parse_target(target, request_.method);
  if (host) replace_host(*host);
  if (!path.starts_with('/')) return fault(400, "the path does not begin with a slash");
  const std::string_view all = std::string_view(path).substr(0, path.find('#'));
  const size_t question = all.find('?');
  if (question != std::string_view::npos) request_.query = all.substr(question + 1);
  auto decoded = path_of(all.substr(0, question));
  if (!decoded) return fault(400, "the path has a wrong escape, or one of a control character");
  request_.path = std::move(*decoded);
}

Request RequestReader::take() {
  request_.body = std::move(body_.body());
  return std::move(request_);
}

}  // namespace octavo::http
