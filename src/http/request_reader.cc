#include "http/request_reader.h"

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <utility>

namespace octavo::http {
namespace {

namespace beast = boost::beast;

constexpr size_t kMaxTargetBytes = 16 << 10;

int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// Nothing: a bad escape, or one of a control character.
std::optional<std::string> percent_decoded(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '%') {
      const int high = i + 2 < text.size() ? digit_of(text[i + 1]) : -1;
      const int low = high >= 0 ? digit_of(text[i + 2]) : -1;
      if (high < 0 || low < 0) return std::nullopt;
      c = static_cast<char>(high * 16 + low);
      i += 2;
    }
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return std::nullopt;
    out += c;
  }
  return out;
}

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

}  // namespace

struct RequestReader::Parser {
  beast::http::request_parser<beast::http::string_body> beast;
};

RequestReader::RequestReader(const ServerLimits& limits) : parser_(std::make_unique<Parser>()) {
  parser_->beast.header_limit(static_cast<std::uint32_t>(limits.max_header_bytes));
  parser_->beast.body_limit(limits.max_body_bytes);
}

RequestReader::~RequestReader() = default;

RequestReader::State RequestReader::fault(int status, std::string why) {
  status_ = status;
  why_ = std::move(why);
  return state_ = State::fault;
}

RequestReader::State RequestReader::feed(std::string& inbox) {
  while (state_ == State::head || state_ == State::body) {
    const size_t before = inbox.size();
    const State state = state_;
    if (parse(inbox) == State::fault) return state_;
    if (state_ == state && inbox.size() == before) break;
  }
  return state_;
}

// One call of the parser: the head, or a part of the body.
RequestReader::State RequestReader::parse(std::string& inbox) {
  auto& parser = parser_->beast;
  if (inbox.empty() && !parser.is_done()) return state_;
  beast::error_code error;
  const size_t used = parser.put(boost::asio::buffer(inbox), error);
  inbox.erase(0, used);
  if (error == beast::http::error::need_more) error = {};
  if (error == beast::http::error::header_limit)
    return fault(431, "the headers are larger than the server takes");
  if (error == beast::http::error::body_limit)
    return fault(413, "the body is larger than the server takes");
  if (error == beast::http::error::bad_version) return fault(505, "this server speaks HTTP/1.1");
  if (error) return fault(400, "this is no proper HTTP request: " + error.message());
  if (state_ == State::head && parser.is_header_done() && take_head() == State::fault)
    return state_;
  if (state_ == State::body && parser.is_done()) state_ = State::complete;
  return state_;
}

RequestReader::State RequestReader::take_head() {
  auto& parser = parser_->beast;
  const auto& message = parser.get();
  is_http10_ = message.version() < 11;
  keep_alive_ = parser.keep_alive();
  request_.method = std::string(message.method_string());
  for (const auto& field : message)
    request_.headers.push_back(
        {std::string(field.name_string()),
         std::string(trimmed({field.value().data(), field.value().size()}))});
  const std::string* expect = find_header(request_.headers, "expect");
  expects_continue_ = expect && !is_http10_ && beast::iequals(*expect, "100-continue");
  if (expect && !expects_continue_ && !is_http10_)
    return fault(417, "of Expect only 100-continue is known");
  const auto encoding = find_header(request_.headers, "transfer-encoding");
  if (encoding && !parser.chunked())
    return fault(501, "of transfer encodings only chunked is known");
  if (check_host() == State::fault) return state_;
  const auto target = message.target();
  if (take_target({target.data(), target.size()}) == State::fault) return state_;
  return state_ = State::body;
}

RequestReader::State RequestReader::check_host() {
  const auto hosts =
      std::count_if(request_.headers.begin(), request_.headers.end(),
                    [](const Header& header) { return beast::iequals(header.name, "host"); });
  if (hosts > 1 || (hosts == 0 && !is_http10_))
    return fault(400, "a request names one Host, and this one does not");
  return state_;
}

RequestReader::State RequestReader::take_target(std::string_view target) {
  if (target.size() > kMaxTargetBytes) return fault(414, "the path is too long");
  for (const std::string_view scheme : {"http://", "https://"})
    if (target.starts_with(scheme)) {
      const size_t slash = target.find('/', scheme.size());
      target = slash == std::string_view::npos ? "/" : target.substr(slash);
    }
  if (target == "*" && request_.method == "OPTIONS") target = "/";
  if (!target.starts_with('/')) return fault(400, "the path does not begin with a slash");
  target = target.substr(0, target.find('#'));
  const size_t question = target.find('?');
  if (question != std::string_view::npos) request_.query = target.substr(question + 1);
  auto path = percent_decoded(target.substr(0, question));
  if (!path) return fault(400, "the path has a wrong escape, or one of a control character");
  request_.path = std::move(*path);
  return state_;
}

Request RequestReader::take() {
  request_.body = std::move(parser_->beast.get().body());
  return std::move(request_);
}

}  // namespace octavo::http
