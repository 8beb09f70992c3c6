// Sets of requests as data, made up from a seed: the same for every engine, policy and machine that
// they are run on.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "bench/draws.h"
#include "bench/lengths.h"
#include "core/ids.h"

namespace octavo {

struct WorkloadRequest {
  double arrival_s = 0;  // after the start of the run
  std::vector<TokenId> prompt_token_ids = {};
  int output_tokens = 1;  // to generate, whatever the model says
  int priority = 0;       // lower goes first
  std::string salt = {};  // prefixes are shared among equal salts only
};

using Workload = std::vector<WorkloadRequest>;  // by arrival

// Bounds on what is made up or read, so that a mistyped number is an error and not a full memory.
inline constexpr int kMaxRequests = 1'000'000;
inline constexpr int64_t kMaxWorkloadTokens = int64_t{1} << 28;  // of all prompts together

struct LongPrompt {
  int tokens = 1;
  double arrival_s = 0;
};

struct SyntheticSpec {
  int num_requests = 100;
  Lengths prompt = Lengths::fixed(512);  // tokens of a request's own, after the shared ones
  Lengths output = Lengths::fixed(128);
  int shared_tokens = 0;            // that all prompts of a group begin with
  int groups = 1;                   // of prompts; request i is in group i % groups
  std::optional<double> rate = {};  // requests per second; nothing: all arrive at once
  double burstiness = 1;            // shape of the gamma distribution of the times between; 1:
                                    // Poisson, less: more bursts, more: more even
  // Each request draws one of 0 to priorities - 1; nothing: all have 0.
  std::optional<int> priorities = {};
  std::optional<LongPrompt> intruder = {};  // one request more, of a long prompt among the others
  uint64_t seed = 0;
};

// The request with the longest prompt. REQUIRES: there is a request.
size_t longest_prompt(const Workload& workload);

// Errors: invalid_argument for a number out of range, resource_exhausted above the bounds.
Result<Workload> make_workload(const SyntheticSpec& spec, TokenRange tokens);

Result<void> check_token_range(TokenRange tokens);  // invalid_argument if empty or negative

}  // namespace octavo
