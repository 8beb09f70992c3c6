#include "bench/serve_sweep.h"

#include <fmt/format.h>

#include <algorithm>

#include "bench/compare_runs.h"

namespace octavo {
namespace {

class Sweep {
 public:
  explicit Sweep(const ServeSweepOptions& options)
      : options_(options), runs_(options.levels.size()) {}

  Result<ServeLoadResult> run() {
    const auto loads = static_cast<int>(options_.levels.size()) * options_.rounds;
    for (int load = 0; load < loads && !all_.was_stopped; ++load)
      OCTAVO_CHECK_OK(run_load(load, loads));
    for (auto& rounds : runs_)
      if (!rounds.empty())
        all_.bench.runs.push_back(options_.rounds == 1 ? std::move(rounds.front())
                                                       : merge_rounds(std::move(rounds)));
    if (options_.levels.size() > 1) all_.bench.x_label = "requests at once";
    return std::move(all_);
  }

 private:
  Result<void> run_load(int load, int loads) {
    const size_t at = static_cast<size_t>(load) % options_.levels.size();
    ServeLoadOptions one = options_.load;
    one.max_concurrency = options_.levels[at];
    if (loads > 1 && one.on_progress)
      one.on_progress = [&, load, loads](int done, int failed, int total) {
        options_.load.on_progress(load * total + done, all_.failed + failed, loads * total);
      };
    OCTAVO_TRY(const std::vector<Dialogue> dialogues, options_.dialogues(load));
    auto result = run_serve_load(dialogues, one);
    // What was measured before is kept.
    if (!result && result.error().code == ErrorCode::cancelled && load > 0) {
      all_.was_stopped = true;
      return {};
    }
    if (!result) return tl::unexpected(result.error());
    keep(std::move(*result), at);
    return {};
  }

  void keep(ServeLoadResult one, size_t at) {
    const int level = options_.levels[at];
    RunResult& run = one.bench.runs.front();
    run.settings["max_concurrency"] = fmt::format("{}", level);
    if (options_.levels.size() > 1) {
      run.name = fmt::format("{}", level);
      run.x = level;
    }
    runs_[at].push_back(std::move(run));
    for (const std::string& note : one.bench.notes)
      if (std::ranges::find(all_.bench.notes, note) == all_.bench.notes.end())
        all_.bench.notes.push_back(note);
    all_.bench.model = one.bench.model;
    all_.requests += one.requests;
    all_.failed += one.failed;
    if (all_.first_failure.empty()) all_.first_failure = one.first_failure;
    all_.was_stopped = one.was_stopped;
  }

  const ServeSweepOptions& options_;
  std::vector<std::vector<RunResult>> runs_;  // of each level
  ServeLoadResult all_;
};

}  // namespace

Result<ServeLoadResult> run_serve_sweep(const ServeSweepOptions& options) {
  return Sweep(options).run();
}

}  // namespace octavo
