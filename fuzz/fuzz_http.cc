// Arbitrary bytes as requests, whole and cut: both ways give the same requests and the same fault,
// and no request breaks what handlers rely on.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "http/request_reader.h"

namespace {

using octavo::http::Request;
using octavo::http::RequestReader;

struct Outcome {
  std::vector<Request> requests;
  int fault = 0;
};

const octavo::http::ServerLimits& limits() {
  static const octavo::http::ServerLimits few = {.max_header_bytes = 400, .max_body_bytes = 100};
  return few;
}

// `step` bytes at a time.
Outcome read(std::string_view bytes, size_t step) {
  Outcome outcome;
  RequestReader reader(limits());
  std::string inbox;
  for (size_t at = 0; at < bytes.size() || !inbox.empty();) {
    const std::string_view next = bytes.substr(at, step);
    inbox += next;
    at += next.size();
    const auto state = reader.feed(inbox);
    if (state == RequestReader::State::fault) {
      outcome.fault = reader.status();
      if (reader.why().empty()) std::abort();
      break;
    }
    if (state == RequestReader::State::complete) {
      outcome.requests.push_back(reader.take());
      reader = RequestReader(limits());
    } else if (next.empty()) {
      break;
    }
  }
  return outcome;
}

void check(const Request& request) {
  if (request.method.empty() || !request.path.starts_with('/')) std::abort();
  if (request.body.size() > limits().max_body_bytes) std::abort();
  for (const char c : request.path)
    if (static_cast<unsigned char>(c) < 0x20) std::abort();
  for (const auto& header : request.headers)
    if (header.name.empty() || header.value.find_first_of("\r\n") != std::string::npos)
      std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const Outcome whole = read(bytes, size);
  const Outcome cut = read(bytes, 1 + data[0] % 64);
  if (whole.fault != cut.fault || whole.requests.size() != cut.requests.size()) std::abort();
  for (size_t i = 0; i < whole.requests.size(); ++i) {
    check(whole.requests[i]);
    if (whole.requests[i].path != cut.requests[i].path ||
        whole.requests[i].body != cut.requests[i].body ||
        whole.requests[i].headers.size() != cut.requests[i].headers.size())
      std::abort();
  }
  return 0;
}
