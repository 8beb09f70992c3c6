#include "cli/version_text.h"

#include <fmt/format.h>

#include "base/version.h"
#include "kernels/isa.h"

namespace octavo::cli {
namespace {

std::string isa_text(const std::string& forced_isa) {
  const auto ops = kernels::select_isa(forced_isa);
  if (!ops) return fmt::format("instruction set: none ({})\n", ops.error().message);
  std::string out =
      fmt::format("instruction set: {} ({})\n", (*ops)->isa,
                  forced_isa.empty() ? "the best this machine has" : "forced by OCTAVO_ISA");
  for (const kernels::IsaChoice& choice : kernels::list_isas()) {
    if (choice.name == (*ops)->isa) break;
    out += choice.missing.empty()
               ? fmt::format("  not {}: OCTAVO_ISA asks for another\n", choice.name)
               : fmt::format("  not {}: this machine lacks {}\n", choice.name, choice.missing);
  }
  return out;
}

}  // namespace

std::string version_text(const std::string& forced_isa) {
  return fmt::format("octavo {}\ncommit: {}\ncompiler: {}\nbuild type: {}\n{}", version(), commit(),
                     compiler(), build_type(), isa_text(forced_isa));
}

}  // namespace octavo::cli
