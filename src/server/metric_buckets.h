// Boundaries of histograms. Every boundary that vLLM has is one of ours too, so that quantiles of
// its dashboards mean the same; those between are for models that answer in milliseconds.
#pragma once

#include <vector>

namespace octavo::buckets {

using Boundaries = std::vector<double>;

// Seconds.
Boundaries first_token();
Boundaries inter_token();
Boundaries request();  // whole requests and their parts
Boundaries step();
Boundaries http();

// Counts.
Boundaries iteration_tokens();
Boundaries choices();
Boundaries preemptions();
Boundaries tokens_up_to(int most);  // 1, 2, 5, 10, 20, ... ; at least the 1

}  // namespace octavo::buckets
