// Two results beside each other.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "bench/result.h"

namespace octavo {

// A result of two runs, that of `a` first, for each pair: those of the same name, or, if both have
// just one, these. `only`, unless it is empty, is the name of the pair that is wanted. Runs are
// named by the results' own names, `name_a` and `name_b`. Errors: invalid_argument if there is no
// pair.
Result<std::vector<BenchResult>> pair_results(const BenchResult& a, const std::string& name_a,
                                              const BenchResult& b, const std::string& name_b,
                                              std::string_view only = {});

}  // namespace octavo
