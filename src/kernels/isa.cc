#include "kernels/isa.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>

namespace octavo::kernels {

#ifdef __x86_64__
extern const Ops kOps_avx2;
extern const Ops kOps_avx512;
void matmul_bf16_avx512(const PanelMatrix& w, int64_t panel_begin, int64_t panel_end,
                        const float* x, int64_t x_stride, int64_t tokens, float* y,
                        int64_t y_stride);
#endif
extern const Ops kOps_ref;

namespace {

#ifdef __x86_64__

struct Feature {
  const char* name;
  bool present;
};

std::string missing_of(std::initializer_list<Feature> features) {
  std::vector<std::string> missing;
  for (const Feature& f : features)
    if (!f.present) missing.emplace_back(f.name);
  return fmt::format("{}", fmt::join(missing, ", "));
}

std::string missing_avx2() {
  return missing_of({{"avx2", __builtin_cpu_supports("avx2") != 0},
                     {"fma", __builtin_cpu_supports("fma") != 0},
                     {"f16c", __builtin_cpu_supports("f16c") != 0}});
}

std::string missing_avx512() {
  return missing_of({{"avx512f", __builtin_cpu_supports("avx512f") != 0},
                     {"avx512bw", __builtin_cpu_supports("avx512bw") != 0},
                     {"avx512vl", __builtin_cpu_supports("avx512vl") != 0},
                     {"avx512dq", __builtin_cpu_supports("avx512dq") != 0},
                     {"avx512_vnni", __builtin_cpu_supports("avx512vnni") != 0},
                     {"fma", __builtin_cpu_supports("fma") != 0},
                     {"f16c", __builtin_cpu_supports("f16c") != 0}});
}

// The bf16 dot product came later than the rest: a machine may lack it alone.
const Ops* ops_avx512() {
  static const Ops with_bf16 = [] {
    Ops ops = kOps_avx512;
    ops.matmul_bf16 = matmul_bf16_avx512;
    return ops;
  }();
  return __builtin_cpu_supports("avx512bf16") ? &with_bf16 : &kOps_avx512;
}

#endif

}  // namespace

std::vector<IsaChoice> list_isas() {
  return {
#ifdef __x86_64__
      {"avx512", ops_avx512(), missing_avx512()},
      {"avx2", &kOps_avx2, missing_avx2()},
#endif
      {"ref", &kOps_ref, ""},
  };
}

Result<const Ops*> select_isa(std::string_view forced) {
  std::vector<std::string_view> names;
  for (const IsaChoice& choice : list_isas()) {
    names.push_back(choice.name);
    if (forced.empty() && choice.missing.empty()) return choice.ops;
    if (choice.name != forced) continue;
    if (choice.missing.empty()) return choice.ops;
    return fail(
        ErrorCode::unsupported,
        fmt::format("OCTAVO_ISA={}: this machine has no {}; unset OCTAVO_ISA to let octavo choose",
                    forced, choice.missing));
  }
  return fail(ErrorCode::invalid_argument, fmt::format("OCTAVO_ISA={} is not known; it may be {}",
                                                       forced, fmt::join(names, ", ")));
}

Result<const Ops*> select_isa_from_environment() {
  const char* forced = std::getenv("OCTAVO_ISA");
  return select_isa(forced ? forced : "");
}

}  // namespace octavo::kernels
