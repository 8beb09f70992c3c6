// Which instruction sets there are, which one runs, and why the better ones do not.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "kernels/api.h"

namespace octavo::kernels {

struct IsaChoice {
  std::string_view name;  // what OCTAVO_ISA takes
  const Ops* ops;
  std::string missing;  // what this machine lacks for it; empty: it can run
};

// Best first; "ref" is last and runs everywhere.
std::vector<IsaChoice> list_isas();

// forced: a name from the list, or empty for the best that runs. An unknown name or one this
// machine lacks is refused.
Result<const Ops*> select_isa(std::string_view forced);

// select_isa() with the environment variable OCTAVO_ISA.
Result<const Ops*> select_isa_from_environment();

}  // namespace octavo::kernels
