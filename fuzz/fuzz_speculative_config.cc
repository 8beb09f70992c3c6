// libFuzzer target: arbitrary bytes as --speculative-config. They are refused with a sentence that
// names the flag, or every value is in its range.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "spec/draft_length.h"
#include "spec/speculative_config.h"

namespace {

void expect(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto config = octavo::parse_speculative_config(text);
  if (!config) {
    expect(config.error().message.starts_with("--speculative-config"));
    return 0;
  }
  expect(config->methods.empty() == text.empty());
  expect(config->num_speculative_tokens >= 1 &&
         config->num_speculative_tokens <= octavo::kMaxDraftTokens);
  expect(config->prompt_lookup_min >= 1 && config->prompt_lookup_min <= config->prompt_lookup_max);
  expect(config->suffix.max_tree_depth >= 2 && config->suffix.max_cached_requests >= 0);
  expect(config->suffix.max_spec_factor >= 0 && config->suffix.min_token_prob >= 0);
  expect(config->uses(octavo::DraftMethod::draft_model) == !config->model.empty());
  return 0;
}
