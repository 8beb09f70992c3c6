// libFuzzer target: arbitrary bytes as a line of `octavo generate --input`. It is refused with a
// sentence, or every value is in its range and what templates print keeps the order it was sent in.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "cli/batch_line.h"
#include "cli/openai_batch_line.h"
#include "formats/shallow_json.h"
#include "spec/draft_length.h"

namespace {

void expect(bool holds) {
  if (!holds) std::abort();
}

void check_tools_of(const octavo::cli::BatchLine& line) {
  expect(line.tools.is_null() || (line.tools.is_array() && !line.tools.empty()));
  expect(line.chat_template_kwargs.is_null() || line.chat_template_kwargs.is_object());
  const bool is_chat = std::holds_alternative<nlohmann::ordered_json>(line.content);
  expect(is_chat || (line.tools.is_null() && line.chat_template_kwargs.is_null()));
}

void check_openai_line(std::string_view text) {
  const auto [line, custom_id] = octavo::cli::parse_openai_line(text, 7);
  expect(custom_id.is_null() || custom_id.is_string());
  const auto result = line ? octavo::cli::openai_result({1, 2}, custom_id, octavo::http::Response{})
                           : octavo::cli::openai_result({1, 2}, custom_id, line.error());
  expect(result.text.find('\n') == result.text.size() - 1);
  if (!line) return;
  expect(octavo::cli::is_openai_batch_line(text) && line->url.starts_with("/v1/"));
  expect(nlohmann::json::accept(line->body));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check_openai_line(text);
  const auto [line, echo] = octavo::cli::parse_batch_line(text, {});
  expect(!echo.dump().empty() && echo.size() <= 2);
  if (!line) {
    expect(line.error().code == octavo::ErrorCode::invalid_argument);
    expect(!line.error().message.empty() && line.error().message.find('\n') == std::string::npos);
    return 0;
  }
  expect(bool(octavo::validate(line->params, 1 << 20)));
  if (line->num_speculative_tokens)
    expect(*line->num_speculative_tokens >= 0 &&
           *line->num_speculative_tokens <= octavo::kMaxDraftTokens);
  check_tools_of(*line);
  return 0;
}
