#include "bench/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "bench/chunking.h"
#include "bench/compare_runs.h"
#include "bench/comparison_plan.h"
#include "bench/comparison_rounds.h"

namespace octavo {
namespace {

// Steps of static batches, each as long as its longest answer, over those that full batches of the
// same answers would take, which cannot be fewer than the longest of all has.
double static_bound(const Workload& workload, int batch) {
  double steps = 0, tokens = 0;
  int longest_of_all = 0;
  for (size_t i = 0; i < workload.size(); i += static_cast<size_t>(batch)) {
    int longest = 0;
    for (size_t k = i; k < std::min(workload.size(), i + static_cast<size_t>(batch)); ++k) {
      longest = std::max(longest, workload[k].output_tokens);
      tokens += workload[k].output_tokens;
    }
    steps += longest;
    longest_of_all = std::max(longest_of_all, longest);
  }
  return steps / std::max(tokens / batch, static_cast<double>(longest_of_all));
}

void note_batching(BenchResult& result, const Workload& workload, int batch) {
  const auto change = change_between_runs(result, 0, result.runs.size() - 1, "output_throughput");
  result.notes.push_back(fmt::format(
      "Static batches, each as long as its longest answer, take {:.2f} times the steps of full "
      "batches: that is what continuous batching gains if all steps take the same time. Measured: "
      "{:.2f} x.",
      static_bound(workload, batch), change ? change->ratio : 1));
  result.notes.push_back(
      "Static batches compute finished answers on as padding, which is how it is usually done; the "
      "second run leaves them out of the steps and still waits for the longest.");
}

}  // namespace

void draw_priorities(SyntheticSpec& requests, BenchResult& result) {
  if (requests.priorities) return;
  requests.priorities = 2;
  result.notes.push_back(
      "Each request draws one of 2 priorities, of which 0 is the more urgent; 'priorities=1' in "
      "--synthetic makes them equal.");
}

Result<BenchResult> compare(std::string_view subject, const ComparisonOptions& given) {
  ComparisonOptions options = given;
  OCTAVO_TRY(const ModelFacts facts, model_facts(options.engine));
  if (subject == "chunking") return compare_chunking(options, facts);
  OCTAVO_TRY(ComparisonPlan plan, plan_comparison(subject, options, facts));
  BenchResult noted;
  if (subject == "scheduling-policy" && !options.trace)
    draw_priorities(options.requests ? *options.requests : plan.requests, noted);
  OCTAVO_TRY(BenchResult result, run_comparison(plan, options, facts));
  std::ranges::move(noted.notes, std::back_inserter(result.notes));
  if (subject == "batching") {
    OCTAVO_TRY(const Workload workload, workload_of(plan, plan.variants[0], options, facts.tokens));
    note_batching(result, workload, plan.variants[0].engine.max_num_seqs);
  }
  return result;
}

}  // namespace octavo
