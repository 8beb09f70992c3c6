// Load on a server of OpenAI's API: many streams at once from one thread, and when each of their
// tokens came.
#pragma once

#include <functional>
#include <map>
#include <stop_token>
#include <string>
#include <vector>

#include "base/result.h"
#include "bench/dialogues.h"
#include "bench/result.h"
#include "bench/serve_request.h"
#include "http/client.h"

namespace octavo {

struct ServeLoadOptions {
  http::ClientOptions client = {};
  RequestOptions request = {};  // without a model: the first that the server lists
  std::string api_key = {};
  int max_concurrency = 0;  // dialogues under way at most; 0: as they arrive
  double timeout_s = 0;     // of one request; 0: none
  int num_warmups = 1;      // short requests before the clock starts; one must succeed
  bool sample_server = true;
  std::map<std::string, double> goodput_ms = {};
  std::stop_token stop = {};  // ends the run; what is under way is cancelled
  // Requests answered, of these failed, all there are. May be empty.
  std::function<void(int done, int failed, int total)> on_progress = {};
};

struct ServeLoadResult {
  BenchResult bench = {};
  int requests = 0, failed = 0;    // failed: of all that were sent; those turned away count too
  std::string first_failure = {};  // "status 400, 'why'"; empty: there was none
  bool was_stopped = false;        // before its end
};

// One run, its model and notes. A request that fails is part of the result. Errors: io_error if the
// server cannot be reached or answers no warm-up; cancelled if it was stopped before the clock
// started; those of RequestForm::make() and DialogueSoFar::ask().
Result<ServeLoadResult> run_serve_load(const std::vector<Dialogue>& dialogues,
                                       const ServeLoadOptions& options);

}  // namespace octavo
