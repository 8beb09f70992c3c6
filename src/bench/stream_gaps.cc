#include "bench/stream_gaps.h"

#include "bench/median.h"
#include "bench/percentiles.h"

namespace octavo {
namespace {

struct Gaps {
  std::vector<double> before, during;

  void add(const RequestRecord& stream, double arrival_s, double first_token_s) {
    for (size_t i = 1; i < stream.token_s.size(); ++i) {
      const double gap = stream.token_s[i] - stream.token_s[i - 1];
      if (stream.token_s[i] < arrival_s)
        before.push_back(gap);
      else if (stream.token_s[i - 1] <= first_token_s)
        during.push_back(gap);
    }
  }
};

}  // namespace

std::optional<StreamGaps> gaps_of(const RunResult& run) {
  if (!run.long_request) return {};
  const RequestRecord& late = run.requests[static_cast<size_t>(*run.long_request)];
  if (late.token_s.empty()) return {};
  Gaps gaps;
  for (const RequestRecord& stream : run.requests) {
    if (&stream == &late) continue;
    if (stream.end_s < late.token_s.front()) return {};
    gaps.add(stream, late.arrival_s, late.token_s.front());
  }
  if (gaps.before.empty() || gaps.during.empty()) return {};
  const Summary during = summarize(gaps.during);
  return StreamGaps{.median_gap_s = median(std::move(gaps.before)),
                    .p99_gap_s = during.p99,
                    .largest_gap_s = during.max,
                    .ttft_s = late.ttft_s()};
}

}  // namespace octavo
