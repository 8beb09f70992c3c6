// kernel_benchmarks [--benchmark_filter=REGEX ...]; OCTAVO_ISA chooses the instruction set.
#include <cstdio>

#include "benchmarks/cases.h"
#include "kernels/isa.h"

namespace octavo::kernels {
namespace {

using benchmark::Counter;

// The library calls a benchmark several times, with more and more repetitions.
struct Slot {
  std::string name;
  std::unique_ptr<Case> current;
};

void run_case(benchmark::State& state, Slot& slot, const std::string& name,
              const std::function<std::unique_ptr<Case>()>& make) {
  if (slot.name != name) {
    slot.current.reset();
    slot.current = make();
    slot.name = name;
    const std::string fault = slot.current->check();
    if (!fault.empty()) {
      std::fprintf(stderr, "%s: not the result of ref/: %s\n", name.c_str(), fault.c_str());
      std::exit(1);
    }
  }
  for (auto _ : state) {
    slot.current->run();
    benchmark::ClobberMemory();
  }
  const auto rate = [](double amount) {
    return Counter(amount / 1e9, Counter::kIsIterationInvariantRate);
  };
  if (slot.current->macs > 0) state.counters["GMAC/s"] = rate(slot.current->macs);
  state.counters["GB/s"] = rate(slot.current->bytes);
}

}  // namespace

void register_case(const std::string& name, std::function<std::unique_ptr<Case>()> make) {
  static Slot slot;
  benchmark::RegisterBenchmark(
      name.c_str(), [name, make](benchmark::State& state) { run_case(state, slot, name, make); });
}

}  // namespace octavo::kernels

int main(int argc, char** argv) {
  using namespace octavo::kernels;
  const auto isa = select_isa_from_environment();
  if (!isa) {
    std::fprintf(stderr, "%s\n", isa.error().message.c_str());
    return 2;
  }
  benchmark::AddCustomContext("isa", (*isa)->isa);
  register_matmul();
  register_float_ops();
  register_attention();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  return benchmark::RunSpecifiedBenchmarks() > 0 ? 0 : 1;
}
