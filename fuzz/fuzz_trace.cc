// libFuzzer target: arbitrary bytes as a file of recorded requests. It is refused with a sentence
// that names the file, or every request is in its range and becomes one of a workload.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "bench/dialogues.h"
#include "bench/trace.h"

namespace {

void expect(bool holds) {
  if (!holds) std::abort();
}

void check(const octavo::TraceRequest& request) {
  expect(request.arrival_s >= 0 && request.prompt_tokens >= 1 && request.output_tokens >= 1);
  expect(request.prefix_tokens >= 0 && request.prefix_tokens <= request.prompt_tokens);
}

// Prompts are made up only where that takes no time.
void check_workload(const octavo::Trace& trace) {
  int64_t tokens = 0;
  for (const auto& request : trace) tokens += request.prompt_tokens;
  if (tokens > 10'000) return;
  const auto workload = octavo::make_workload(trace, 1, {0, 99});
  expect(workload && workload->size() == trace.size());
  for (size_t i = 0; i < trace.size(); ++i)
    expect(std::ssize((*workload)[i].prompt_token_ids) == trace[i].prompt_tokens);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto trace = octavo::parse_trace(text, "x.jsonl");
  if (trace) {
    expect(!trace->empty() && std::ranges::is_sorted(*trace, {}, &octavo::TraceRequest::arrival_s));
    std::ranges::for_each(*trace, check);
    check_workload(*trace);
  } else {
    expect(trace.error().message.starts_with("x.jsonl"));
  }
  // The same lines as what a load generator asks.
  octavo::DialogueSpec spec = {.data_set = octavo::DataSet::jsonl};
  if (const auto asked = octavo::parse_dialogues(text, "x.jsonl", spec))
    expect(!asked->empty() && asked->size() <= 100);
  return 0;
}
