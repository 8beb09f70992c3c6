#include "http/request_reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace octavo::http {
namespace {

using State = RequestReader::State;
using namespace std::string_literals;

constexpr std::string_view kPost =
    "POST /v1/a%20b?x=%20&y HTTP/1.1\r\nHost: h\r\nX-A:  one two \t\r\nContent-Length: "
    "5\r\n\r\nhello";
constexpr std::string_view kEmptyChunked =
    "POST /c HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
constexpr std::string_view kChunked =
    "POST /c HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
    "2;name=value\r\nab\r\n00a\r\n0123456789\r\n0\r\nTrailer: t\r\n\r\n";

struct Outcome {
  State state;
  int status = 0;
  std::string why = {};
  Request request = {};
  std::string rest = {};
};

Outcome read(std::string bytes, const ServerLimits& limits = {}) {
  RequestReader reader(limits);
  const State state = reader.feed(bytes);
  Outcome outcome{.state = state};
  if (state == State::fault) {
    outcome.status = reader.status();
    outcome.why = reader.why();
  }
  if (state == State::complete) outcome.request = reader.take();
  outcome.rest = bytes;
  return outcome;
}

std::string with_headers(const std::string& headers, const std::string& body = "") {
  return "POST / HTTP/1.1\r\nHost: h\r\n" + headers + "\r\n" + body;
}

std::string get(const std::string& target) {
  return "GET " + target + " HTTP/1.1\r\nHost: h\r\n\r\n";
}

std::string path_of(const std::string& target) { return read(get(target)).request.path; }
int status_of(const std::string& bytes, const ServerLimits& limits = {}) {
  return read(bytes, limits).status;
}

TEST(RequestReader, ReadsARequestAndLeavesTheNext) {
  const Outcome outcome = read(std::string(kPost) + "GET /next");
  ASSERT_EQ(outcome.state, State::complete);
  EXPECT_EQ(outcome.request.method, "POST");
  EXPECT_EQ(outcome.request.path, "/v1/a b");
  EXPECT_EQ(outcome.request.query, "x=%20&y");
  EXPECT_EQ(*find_header(outcome.request.headers, "x-a"), "one two");
  EXPECT_EQ(outcome.request.body, "hello");
  EXPECT_EQ(outcome.rest, "GET /next");
}

TEST(RequestReader, ReadsTheSameHoweverTheBytesAreCut) {
  for (const std::string_view bytes : {kPost, kChunked, kEmptyChunked})
    for (size_t step = 1; step < bytes.size(); ++step) {
      RequestReader reader({});
      std::string inbox;
      for (size_t at = 0; at < bytes.size(); at += step) {
        EXPECT_TRUE(reader.state() == State::head || reader.state() == State::body);
        inbox += bytes.substr(at, step);
        reader.feed(inbox);
      }
      ASSERT_EQ(reader.state(), State::complete) << reader.why();
      EXPECT_EQ(inbox, "");
      EXPECT_EQ(reader.take().body, bytes == kPost      ? "hello"
                                    : bytes == kChunked ? "ab0123456789"
                                                        : "");
    }
}

TEST(RequestReader, SaysWhenTheHeadIsThere) {
  RequestReader reader({});
  std::string inbox(kPost.substr(0, kPost.size() - 5));
  inbox.insert(inbox.size() - 2, "Expect: 100-continue\r\n");
  EXPECT_EQ(reader.feed(inbox), State::body);
  EXPECT_EQ(reader.head().path, "/v1/a b");
  EXPECT_TRUE(reader.expects_continue());
  EXPECT_TRUE(reader.keep_alive());
}

TEST(RequestReader, KnowsWhichConnectionsGoOn) {
  const auto keeps = [](const std::string& bytes) {
    RequestReader reader({});
    std::string inbox = bytes;
    EXPECT_EQ(reader.feed(inbox), State::complete);
    return reader.keep_alive();
  };
  EXPECT_TRUE(keeps(get("/")));
  EXPECT_FALSE(keeps(with_headers("Connection: close\r\n")));
  EXPECT_FALSE(keeps(with_headers("Connection: Keep-Alive, Close\r\n")));
  EXPECT_FALSE(keeps("GET / HTTP/1.0\r\n\r\n"));
  EXPECT_TRUE(keeps("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"));
}

TEST(RequestReader, ForgivesOneEmptyLineBeforeARequest) {
  EXPECT_EQ(read("\r\n" + get("/")).state, State::complete);
  EXPECT_EQ(status_of("\r\n\r\n" + get("/")), 400);
  EXPECT_EQ(read("\r").state, State::head);
}

TEST(RequestReader, TakesThePathOutOfEachFormOfTarget) {
  EXPECT_EQ(path_of("http://other:80/v1/models?x"), "/v1/models");
  EXPECT_EQ(path_of("HTTPS://other/a"), "/a");
  EXPECT_EQ(path_of("http://other"), "/");
  EXPECT_EQ(path_of("http://other?x=/a"), "/");
  EXPECT_EQ(path_of("/%E4%b8%AD%3F"), "/中?");
  EXPECT_EQ(read("OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n").request.path, "/");
  EXPECT_EQ(path_of("//a/../b"), "//a/../b");
}

TEST(RequestReader, LeavesAnEscapedSlashWhatItIs) {
  EXPECT_EQ(path_of("/v1%2fmodels"), "/v1%2Fmodels");
  EXPECT_EQ(path_of("/v1/models/a%2Fb%20c"), "/v1/models/a%2Fb c");
  EXPECT_EQ(path_of("/v1/models/a%252Fb"), "/v1/models/a%252Fb");
  EXPECT_EQ(decoded_name("a%2Fb c"), "a/b c");
  EXPECT_EQ(decoded_name("a%252Fb"), "a%2Fb");
}

TEST(RequestReader, RefusesTargetsThatCannotBe) {
  for (const char* target : {"/%", "/%4", "/%zz", "/a%00b", "/%0a", "/%7f", "a/b", "*", "h:443"})
    EXPECT_EQ(status_of(get(target)), 400) << target;
  EXPECT_EQ(status_of("GET / a HTTP/1.1\r\nHost: h\r\n\r\n"), 505);
  EXPECT_EQ(status_of("GET /\0 HTTP/1.1\r\nHost: h\r\n\r\n"s), 400);
  EXPECT_EQ(status_of(get("/" + std::string(20'000, 'a'))), 414);
}

TEST(RequestReader, BelievesTheHostOfTheTarget) {
  const Request request = read(get("http://other:80/v1")).request;
  EXPECT_EQ(*find_header(request.headers, "host"), "other:80");
  EXPECT_EQ(std::count_if(request.headers.begin(), request.headers.end(),
                          [](const Header& header) { return header.name == "Host"; }),
            1);
  EXPECT_EQ(*find_header(read("GET http://a/ HTTP/1.0\r\n\r\n").request.headers, "host"), "a");
  // One that has both must have a proper header all the same.
  EXPECT_EQ(read("GET http://a/ HTTP/1.1\r\n\r\n").status, 400);
  for (const std::string bad : {"http:///v1", "http://", "http://user@h/v1", "https://?x",
                                "http://h:80:90/", "http://[::1].evil/"})
    EXPECT_EQ(read(get(bad)).status, 400) << bad;
}

TEST(RequestReader, RefusesARequestWithoutOneHost) {
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\n\r\n"), 400);
  EXPECT_EQ(status_of(with_headers("Host: other\r\n")), 400);
  EXPECT_EQ(read("GET / HTTP/1.0\r\n\r\n").state, State::complete);
}

TEST(RequestReader, RefusesAHostThatIsNone) {
  const auto status = [](const std::string& host) {
    return status_of("GET / HTTP/1.1\r\nHost: " + host + "\r\n\r\n");
  };
  EXPECT_EQ(status("localhost:80@evil.example"), 400);
  EXPECT_EQ(status("[::1].evil.example"), 400);
  EXPECT_EQ(status("[::1]:8000"), 0);
  EXPECT_EQ(status(""), 0);  // of an address without a host
}

TEST(RequestReader, RefusesABodyWhoseEndIsInDoubt) {
  for (const char* headers :
       {"Content-Length: 5\r\nContent-Length: 6\r\n", "Content-Length: 5\r\nContent-Length: 5\r\n",
        "Content-Length: 5, 5\r\n", "Content-Length: -1\r\n", "Content-Length: +5\r\n",
        "Content-Length: 0x5\r\n", "Content-Length:\r\n", "Content-Length: 5 5\r\n",
        "Content-Length: 99999999999999999999999\r\n",
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
        "Transfer-Encoding: gzip\r\nContent-Length: 5\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n"})
    EXPECT_EQ(status_of(with_headers(headers, "hello")), 400) << headers;
  EXPECT_EQ(status_of("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"), 400);
}

TEST(RequestReader, RefusesEncodingsOtherThanChunked) {
  for (const char* value : {"gzip", "gzip, chunked", "identity", "xchunked", "chunked, gzip"})
    EXPECT_EQ(status_of(with_headers("Transfer-Encoding: " + std::string(value) + "\r\n")), 501)
        << value;
}

TEST(RequestReader, RefusesHeadersThatProgramsReadDifferently) {
  for (const char* headers :
       {"X-A: one\r\n two\r\n", "X-A: one\r\n\ttwo\r\n", "X-A : one\r\n", " X-A: one\r\n",
        "X-A\r\n", ": one\r\n", "X-A: one\nX-B: two\r\n", "X-A: o\rne\r\n", "X A: one\r\n"})
    EXPECT_EQ(status_of(with_headers(headers)), 400) << headers;
  EXPECT_EQ(status_of(with_headers("X-A: o\0e\r\n"s)), 400);
}

TEST(RequestReader, RefusesChunksThatAreNone) {
  for (const char* body :
       {"zz\r\n", "-1\r\na\r\n", "fffffffffffffffff\r\na", "2\r\nabc\r\n0\r\n\r\n",
        "2\nab\r\n0\r\n\r\n", "\r\n", "0x2\r\nab\r\n", "2 \nab\r\n"})
    EXPECT_EQ(status_of(with_headers("Transfer-Encoding: chunked\r\n", body)), 400) << body;
  const std::string line = "1;" + std::string(70'000, 'a');
  EXPECT_EQ(status_of(with_headers("Transfer-Encoding: chunked\r\n", line)), 400);
  EXPECT_EQ(status_of(with_headers("Transfer-Encoding: chunked\r\n", "0\r\n" + line)), 400);
}

TEST(RequestReader, RefusesWhatIsTooLarge) {
  ServerLimits limits;
  limits.max_body_bytes = 10;
  EXPECT_EQ(status_of(with_headers("Content-Length: 11\r\n"), limits), 413);
  EXPECT_EQ(status_of(with_headers("Content-Length: 18446744073709551615\r\n"), limits), 413);
  EXPECT_EQ(status_of(with_headers("Transfer-Encoding: chunked\r\n", "a\r\n0123456789\r\n1\r\na"),
                      limits),
            413);
  EXPECT_EQ(read(with_headers("Content-Length: 10\r\n", "0123456789"), limits).state,
            State::complete);
  EXPECT_EQ(status_of(with_headers("X: " + std::string(70'000, 'a') + "\r\n")), 431);
  EXPECT_EQ(status_of("GET /" + std::string(70'000, 'a')), 431);
}

// The limit is one of all headers, also if each line comes alone.
TEST(RequestReader, CountsHeadersThatTrickleIn) {
  RequestReader reader({});
  std::string inbox = "GET / HTTP/1.1\r\n";
  int lines = 0;
  while (reader.feed(inbox) == State::head && lines < 10'000) {
    inbox += "X-Header: value\r\n";
    ++lines;
  }
  EXPECT_EQ(reader.status(), 431);
  EXPECT_EQ(lines, ((64 << 10) - 16) / 17 + 1);
}

TEST(RequestReader, RefusesOtherVersionsAndExpectations) {
  EXPECT_EQ(status_of("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), 505);
  EXPECT_EQ(status_of("GET / HTTP/1.2\r\nHost: h\r\n\r\n"), 505);
  EXPECT_EQ(status_of(with_headers("Expect: tea\r\n")), 417);
}

TEST(RequestReader, RefusesGarbageAsSoonAsItIsSeen) {
  EXPECT_EQ(status_of("\x16\x03\x01\x02"), 400);
  EXPECT_EQ(status_of(std::string(100, 'A')), 400);
  EXPECT_EQ(status_of(" GET"), 400);
  EXPECT_EQ(status_of("{\"a\""), 400);
  EXPECT_EQ(status_of("GET / FTP/1.1\r\n\r\n"), 505);
  EXPECT_EQ(read("GE").state, State::head);
}

// A length that is only promised costs nothing.
TEST(RequestReader, TakesMemoryForWhatHasCome) {
  ServerLimits limits;
  limits.max_body_bytes = size_t{1} << 60;
  RequestReader reader(limits);
  std::string inbox = with_headers("Content-Length: 1000000000000000000\r\n", "abc");
  EXPECT_EQ(reader.feed(inbox), State::body);
}

}  // namespace
}  // namespace octavo::http
