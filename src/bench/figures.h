// The figures of a run, and of several runs beside each other. Names and definitions are those of
// vLLM's benchmark, where it has them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/percentiles.h"
#include "bench/result.h"
#include "bench/stream_gaps.h"

namespace octavo {

// Latencies and tokens are those of completed requests.
struct RunFigures {
  int completed = 0;
  int failed = 0;                    // without those rejected
  int rejected = 0;                  // turned away with status 429
  std::optional<int64_t> good = {};  // within the bounds of the run's goodput, if it has any
  int64_t total_input_tokens = 0;
  int64_t total_output_tokens = 0;
  double duration_s = 0;                       // from the first arrival to the last end
  double request_throughput = 0;               // per second
  std::optional<double> request_goodput = {};  // good requests per second
  double output_throughput = 0;                // tokens per second
  double total_token_throughput = 0;           // of prompts and answers

  Summary queue_s;  // from arrival until first scheduled
  Summary ttft_s;   // time to first token, from arrival
  Summary tpot_s;   // time per output token after the first, one value for each request
  Summary itl_s;    // inter-token latency, one value for each gap
  Summary e2el_s;   // from arrival to the last token
  std::optional<Summary> urgent_ttft_s = {};  // of the lowest priority number, if there are several
  std::optional<StreamGaps> gaps = {};        // of streams, while a long prompt was read

  int64_t preemptions = 0;
  std::optional<double> prefix_hit_rate;  // cached tokens of prompts / tokens of prompts

  // Means over time of the steps, if there are any.
  std::optional<double> running_mean;
  std::optional<double> blocks_used_mean;
  std::optional<int> running_max;
  std::optional<int> blocks_used_max;
  std::optional<double> kv_waste_share;    // room in held blocks without a token / all of it
  std::optional<double> padding_share;     // of computed tokens, those of ended sequences
  std::optional<double> scheduling_share;  // of the steps' time

  double mean_concurrent = 0;  // requests sent and not yet answered
  int max_concurrent = 0;
  double max_output_tokens_per_s = 0;  // of all whole seconds
  std::optional<Summary> server_kv_usage, server_memory_mib, server_cpu_cores;  // of its samples

  std::optional<double> cost_per_million_output_tokens;
  std::optional<double> cost_per_million_tokens;  // of prompts and answers
};

RunFigures figures_of(const RunResult& run, std::optional<double> cost_per_hour = {});

// One figure as it is shown and written.
enum class Better : uint8_t { higher, lower, neither };

struct Figure {
  std::string name;  // the key in JSON: "p99_ttft_ms"
  std::string label;
  std::string unit;  // "ms"; "share": 1 is all, shown as per cent; or empty
  Better better = Better::neither;
  bool in_tables = true;  // JSON has more than a table has room for
  std::optional<double> value;
};

// All of them, always the same ones in the same order.
std::vector<Figure> list_figures(const RunFigures& figures);

// Requests that did not complete, by how they failed: "status 500".
std::map<std::string, int> failures_of(const RunResult& run);

// Those that there are, as RunResult::rounds keeps them.
FigureValues values_of(const std::vector<Figure>& figures);
FigureValues figure_values(const RunResult& run);

std::string format_value(std::optional<double> value,
                         std::string_view unit);                           // "12.34", "5 %", "-"
std::string format_ratio(std::optional<double> ratio);                     // "2.31 x", "-"
std::string with_unit(std::optional<double> value, const Figure& figure);  // "12.34 ms"

}  // namespace octavo
