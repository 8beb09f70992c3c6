// Made-up workloads as a line of text: key=value pairs, separated by commas, as in
//   requests=200,prompt=64-512,output=80%:20-60+20%:300-400,rate=5,shared=512,seed=1
#pragma once

#include <string_view>
#include <vector>

#include "base/result.h"
#include "bench/workload.h"

namespace octavo {

// Keys that are not given keep their default. Errors, naming the key and what it takes:
// invalid_argument.
Result<SyntheticSpec> parse_synthetic(std::string_view text);

// Of help texts: each key and what it takes.
struct SyntheticKey {
  std::string_view name, takes;
};
std::vector<SyntheticKey> synthetic_keys();

}  // namespace octavo
