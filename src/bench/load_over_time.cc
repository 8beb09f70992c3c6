#include "bench/load_over_time.h"

#include <algorithm>
#include <cmath>

namespace octavo {

std::vector<LoadPoint> in_flight(const RunResult& run) {
  std::vector<LoadPoint> changes;
  for (const RequestRecord& request : run.requests) {
    changes.push_back({request.arrival_s, 1});
    changes.push_back({request.end_s, -1});
  }
  // At one time the ends first, so that a request that follows another is not beside it.
  std::sort(changes.begin(), changes.end(), [](const LoadPoint& a, const LoadPoint& b) {
    return a.time_s != b.time_s ? a.time_s < b.time_s : a.value < b.value;
  });
  double now = 0;
  for (LoadPoint& change : changes) change.value = std::max(0.0, now += change.value);
  return changes;
}

std::vector<LoadPoint> tokens_per_second(const RunResult& run) {
  double first = INFINITY, last = 0;
  for (const RequestRecord& request : run.requests) {
    first = std::min(first, request.arrival_s);
    last = std::max(last, request.end_s);
  }
  if (run.requests.empty()) return {};
  const double width = std::max(1.0, std::ceil((last - first) / kMaxSeconds));
  std::vector<LoadPoint> seconds(static_cast<size_t>((last - first) / width) + 1);
  for (size_t i = 0; i < seconds.size(); ++i)
    seconds[i].time_s = first + width * static_cast<double>(i);
  for (const RequestRecord& request : run.requests)
    for (const double time : request.token_s)
      seconds[std::min(static_cast<size_t>((time - first) / width), seconds.size() - 1)].value +=
          request.tokens_per_time() / width;
  return seconds;
}

}  // namespace octavo
