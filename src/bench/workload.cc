#include "bench/workload.h"

#include <fmt/format.h>

#include <algorithm>

namespace octavo {
namespace {

Result<void> expect(bool holds, std::string_view what, auto value, std::string_view range) {
  if (holds) return {};
  return fail(ErrorCode::invalid_argument, fmt::format("{} is {}, outside {}", what, value, range));
}

Result<void> check_ranges(const SyntheticSpec& spec) {
  const int n = spec.num_requests;
  OCTAVO_CHECK_OK(expect(n >= 1 && n <= kMaxRequests, "requests", n, "1 to 1000000"));
  OCTAVO_CHECK_OK(expect(spec.shared_tokens >= 0 && spec.shared_tokens <= kMaxLength, "shared",
                         spec.shared_tokens, "0 to 16777216"));
  OCTAVO_CHECK_OK(
      expect(spec.groups >= 1 && spec.groups <= n, "groups", spec.groups, "1 to requests"));
  const int priorities = spec.priorities.value_or(1);
  OCTAVO_CHECK_OK(
      expect(priorities >= 1 && priorities <= 1000, "priorities", priorities, "1 to 1000"));
  OCTAVO_CHECK_OK(expect(!spec.rate || (*spec.rate >= 1e-6 && *spec.rate <= 1e9), "rate",
                         spec.rate.value_or(1), "0.000001 to 1000000000"));
  return expect(spec.burstiness >= 0.01 && spec.burstiness <= 1000, "burstiness", spec.burstiness,
                "0.01 to 1000");
}

// As many as there can be, so that nothing is drawn in vain.
Result<void> check_size(const SyntheticSpec& spec) {
  const int64_t most = int64_t{spec.shared_tokens} + spec.prompt.max();
  if (most <= kMaxWorkloadTokens / spec.num_requests) return {};
  return fail(ErrorCode::resource_exhausted,
              fmt::format("{} requests of up to {} prompt tokens are over {} tokens in all; make "
                          "'requests', 'prompt' or 'shared' smaller",
                          spec.num_requests, most, kMaxWorkloadTokens));
}

Result<void> check_intruder(const LongPrompt& intruder) {
  OCTAVO_CHECK_OK(expect(intruder.tokens >= 1 && intruder.tokens <= kMaxLength,
                         "the length of 'long'", intruder.tokens, "1 to 16777216"));
  return expect(intruder.arrival_s >= 0 && intruder.arrival_s <= 1e9, "the time of 'long'",
                intruder.arrival_s, "0 to 1000000000");
}

// Times between requests; the first arrives at 0.
double interval_s(const SyntheticSpec& spec, uint32_t index) {
  if (!spec.rate || index == 0) return 0;
  return Draws(spec.seed, DrawFor::arrival, index).gamma(spec.burstiness) /
         (spec.burstiness * *spec.rate);
}

WorkloadRequest draw_request(const SyntheticSpec& spec, TokenRange tokens, uint32_t index) {
  const auto draws = [&](DrawFor what) { return Draws(spec.seed, what, index); };
  Draws prompt = draws(DrawFor::prompt_length), output = draws(DrawFor::output_length),
        priority = draws(DrawFor::priority), own = draws(DrawFor::own_tokens);
  Draws shared(spec.seed, DrawFor::shared_tokens, index % static_cast<uint32_t>(spec.groups));

  WorkloadRequest request;
  shared.append_tokens(spec.shared_tokens, tokens, request.prompt_token_ids);
  own.append_tokens(spec.prompt.draw(prompt), tokens, request.prompt_token_ids);
  request.output_tokens = spec.output.draw(output);
  request.priority = priority.between(0, spec.priorities.value_or(1) - 1);
  return request;
}

WorkloadRequest draw_intruder(const SyntheticSpec& spec, TokenRange tokens) {
  SyntheticSpec alone = spec;
  alone.prompt = Lengths::fixed(spec.intruder->tokens);
  alone.shared_tokens = 0;
  WorkloadRequest request = draw_request(alone, tokens, static_cast<uint32_t>(spec.num_requests));
  request.arrival_s = spec.intruder->arrival_s;
  return request;
}

bool earlier(const WorkloadRequest& a, const WorkloadRequest& b) {
  return a.arrival_s < b.arrival_s;
}

}  // namespace

Result<void> check_token_range(TokenRange tokens) {
  if (tokens.first >= 0 && tokens.first <= tokens.last) return {};
  return fail(ErrorCode::invalid_argument,
              fmt::format("token ids from {} to {} are none", tokens.first, tokens.last));
}

size_t longest_prompt(const Workload& workload) {
  const auto length = [](const WorkloadRequest& request) {
    return request.prompt_token_ids.size();
  };
  return static_cast<size_t>(std::ranges::max_element(workload, {}, length) - workload.begin());
}

Result<Workload> make_workload(const SyntheticSpec& spec, TokenRange tokens) {
  OCTAVO_CHECK_OK(check_token_range(tokens));
  OCTAVO_CHECK_OK(check_ranges(spec));
  OCTAVO_CHECK_OK(check_size(spec));
  Workload workload;
  double now_s = 0;
  for (uint32_t i = 0; i < static_cast<uint32_t>(spec.num_requests); ++i) {
    now_s += interval_s(spec, i);
    workload.push_back(draw_request(spec, tokens, i));
    workload.back().arrival_s = now_s;
  }
  if (!spec.intruder) return workload;
  OCTAVO_CHECK_OK(check_intruder(*spec.intruder));
  WorkloadRequest intruder = draw_intruder(spec, tokens);
  const auto place = std::upper_bound(workload.begin(), workload.end(), intruder, earlier);
  workload.insert(place, std::move(intruder));
  return workload;
}

}  // namespace octavo
