// octavo generate --input: the prompts of many lines through one engine.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <stop_token>
#include <utility>

#include "cli/batch_line.h"
#include "cli/batch_lines.h"
#include "cli/json_output.h"
#include "engine/load.h"
#include "llm/run.h"

namespace octavo::cli {

class BatchRun {
 public:
  BatchRun(BatchLines& lines, SamplingParams defaults)
      : lines_(lines), defaults_(std::move(defaults)) {}

  struct Options {
    int places = 1;        // requests that the engine takes at once
    size_t window = 1;     // results that wait for an earlier one, at most
    double load_s = 0;     // shown in each result
    std::stop_token stop;  // what is done until then is written
    std::function<void()> on_result = {};
  };
  // Until the end of the input, or an error of a file (io_error). That of a line is in its result.
  Result<void> run(const LoadedEngine& engine, const Options& options);

 private:
  // What a result needs beside the output.
  struct Asked {
    ResultHead head;
    Json echo;
    ShownOutput shown;
  };

  std::optional<RunItem> next_item(const LoadedEngine& engine, const Options& options);
  Result<void> write_ready(const LoadedEngine& engine, const Options& options);
  Result<void> write(const Asked& asked, RequestOutput output, const Tokenizer& tokenizer);

  BatchLines& lines_;
  SamplingParams defaults_;
  Result<void> input_status_;
  std::deque<Asked> asked_;                // whose results are not written, in order
  size_t first_asked_ = 0;                 // index of the first of them in the run
  std::map<size_t, RequestOutput> ready_;  // by that index
};

}  // namespace octavo::cli
