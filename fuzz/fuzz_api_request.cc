// Arbitrary bytes as the body of each kind of request: it is refused with a sentence, or its values
// are in their ranges.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "server/api_request.h"

namespace {

void expect(bool holds) {
  if (!holds) std::abort();
}

template <class T>
bool is_taken(const octavo::ApiResult<T>& request) {
  if (request) return true;
  const bool is_clients_fault = request.error().status == 400 || request.error().status == 404;
  expect(is_clients_fault && !request.error().message.empty());
  expect(octavo::to_json(request.error()).find('\n') == std::string::npos);
  return false;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  const octavo::ApiLimits limits = {.vocab_size = 1000, .max_model_len = 128, .max_choices = 64};
  const auto check = [&](const octavo::GenerationRequest& request) {
    expect(bool(octavo::validate(request.params, limits.vocab_size, limits.max_logprobs)));
  };
  if (const auto chat = octavo::parse_chat_request(body, limits); is_taken(chat)) {
    check(*chat);
    expect(!chat->messages.empty());
  }
  if (const auto completion = octavo::parse_completion_request(body, limits);
      is_taken(completion)) {
    check(*completion);
    const auto n = static_cast<size_t>(completion->params.n);
    expect(!completion->prompts.empty() && completion->prompts.size() * n <= 64);
  }
  if (const auto text = octavo::parse_tokenize_request(body, limits); is_taken(text))
    expect(text->text.has_value() != text->messages.has_value());
  is_taken(octavo::parse_detokenize_request(body, limits));
  return 0;
}
