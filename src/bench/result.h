// What was measured: the one schema of every benchmark, simulation and comparison. Plain data; what
// follows from it is in bench/figures.h, the file format in bench/result_json.h.
//
// Times are seconds since the start of the run.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace octavo {

struct RequestRecord {
  double arrival_s = 0;
  std::optional<double> scheduled_s = {};  // first part in a step; nothing: never
  // When the tokens of the answer came; ascending. Of a server: when its events did, each of which
  // may bring several tokens.
  std::vector<double> token_s = {};
  std::optional<int> reported_tokens = {};  // of the answer, where the server counted them itself
  double end_s = 0;
  int prompt_tokens = 0;
  int cached_tokens = 0;  // of the prompt, found in the prefix tree
  int preemptions = 0;
  int priority = 0;                // lower goes first
  std::string finish_reason = {};  // "stop" or "length"; anything else: how it failed

  int output_tokens() const { return reported_tokens.value_or(static_cast<int>(token_s.size())); }
  // That came at each of the times; events tell no more than how many they were together.
  double tokens_per_time() const {
    return token_s.empty() ? 0 : output_tokens() / static_cast<double>(token_s.size());
  }
  bool completed() const { return finish_reason == "stop" || finish_reason == "length"; }
  // Turned away by a server that had too much to do, as is right.
  bool rejected() const { return finish_reason == "status 429"; }

  // REQUIRES: a time of a token.
  double ttft_s() const { return token_s.front() - arrival_s; }
  double e2el_s() const { return token_s.back() - arrival_s; }
  std::optional<double> tpot_s() const {
    if (output_tokens() < 2 || token_s.size() < 2) return std::nullopt;
    return (token_s.back() - token_s.front()) / (output_tokens() - 1);
  }
  bool operator==(const RequestRecord&) const = default;
};

struct StepSample {
  double time_s = 0;        // when the step began
  double step_s = 0;        // how long it took
  double scheduling_s = 0;  // of that: planning and bookkeeping
  int running = 0;          // sequences
  int waiting = 0;
  int prefill_tokens = 0;
  int decode_tokens = 0;
  int padding_tokens = 0;  // computed for sequences that had ended
  int blocks_held = 0;
  int blocks_cached = 0;
  int blocks_free = 0;
  int64_t waste_tokens = 0;  // room in held blocks in which nothing is stored

  bool operator==(const StepSample&) const = default;
};

// What a server said of itself at one time; nothing where it does not say.
struct ServerSample {
  double time_s = 0;
  std::optional<double> running = {};  // requests
  std::optional<double> waiting = {};
  std::optional<double> kv_usage = {};    // of the cache, 1 is all
  std::optional<double> memory_mib = {};  // resident
  std::optional<double> cpu_cores = {};   // busy since the sample before

  bool operator==(const ServerSample&) const = default;
};

// One block at one time.
struct BlockCell {
  static constexpr int32_t kFree = -1, kCached = -2, kShared = -3;

  int32_t owner = kFree;  // index of the request; or one of the above
  int filled_percent = 0;

  bool operator==(const BlockCell&) const = default;
};

struct BlockMapRow {
  double time_s = 0;
  std::vector<BlockCell> blocks = {};  // all of the pool, by id

  bool operator==(const BlockMapRow&) const = default;
};

using FigureValues = std::map<std::string, double>;  // by name: "p95_ttft_ms"

struct RunResult {
  std::string name = {};         // of the technique: "continuous"
  std::optional<double> x = {};  // of a sweep: the value that was set
  std::string series = {};       // of a sweep: which line of a plot the run is on; may be empty
  std::string group =
      {};  // runs of one group are compared with its first; empty: all with the first
  std::map<std::string, std::string> settings = {};
  int block_size = 0;  // tokens
  int num_blocks = 0;  // of the pool
  std::vector<RequestRecord> requests = {};
  std::vector<StepSample> steps = {};             // may be empty
  std::vector<BlockMapRow> block_map = {};        // may be empty; rows are equally long
  std::vector<ServerSample> server = {};          // of a run against a server; may be empty
  std::map<std::string, double> goodput_ms = {};  // bounds that make a request a good one
  // A long prompt that came while the others were being written, by its index: what matters are the
  // gaps of the others.
  std::optional<int> long_request = {};
  // Figures of each round, where the run was made several times; the requests are those of one of
  // them. A round lies beside the round of the same place in other runs.
  std::vector<FigureValues> rounds = {};

  bool operator==(const RunResult&) const = default;
};

struct BenchResult {
  std::string title = {};
  std::string model = {};
  std::string machine = {};
  std::string command = {};
  std::map<std::string, std::string> settings = {};  // common to all runs
  std::vector<std::string> notes = {};               // sentences for the reader
  std::optional<double> cost_per_hour = {};          // of the machine, in any currency
  std::string x_label = {};                // of a sweep: what its values are, "requests at once"
  std::vector<std::string> headline = {};  // figures that answer what was asked, by name
  std::vector<std::string> answer =
      {};                            // what it says, where that does not follow from the headline
  std::vector<RunResult> runs = {};  // the first is the baseline

  bool operator==(const BenchResult&) const = default;
};

}  // namespace octavo
