// Requests that somebody recorded: a file with one JSON object per line.
//
//   {"arrival_s": 0.5, "prompt_tokens": 700, "output_tokens": 60, "priority": 0,
//    "prefix_group": "a", "prefix_tokens": 512}
//
// Needed are the length of the prompt and that of the answer. A prompt may also be given as
// prompt_token_ids. Requests of one prefix_group begin with the same prefix_tokens tokens;
// cache_salt keeps requests with equal prompts apart. Known, too, are the names of the Mooncake
// traces: timestamp (milliseconds), input_length, output_length and hash_ids, of which each names
// 512 tokens of the prompt.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "bench/workload.h"

namespace octavo {

inline constexpr int kHashIdTokens = 512;

struct TraceRequest {
  double arrival_s = 0;
  int prompt_tokens = 1;
  int output_tokens = 1;
  int priority = 0;
  std::string salt = {};
  std::vector<TokenId> prompt_token_ids = {};  // prompt_tokens of them, or none: they are not known
  std::string prefix_group = {};
  int prefix_tokens = 0;               // at most prompt_tokens
  std::vector<int64_t> hash_ids = {};  // one for each kHashIdTokens of the prompt, or none
};

using Trace = std::vector<TraceRequest>;  // by arrival

// Errors, naming the line: corrupt_file for what is no JSON object, unknown, missing, given twice
// or out of range, and for a file without requests; resource_exhausted above the bounds of
// workload.h and for lines over 4 MiB; those of FileMap::open().
Result<Trace> read_trace(const std::string& path);
Result<Trace> parse_trace(std::string_view text, const std::string& name);

// Prompts that are not known are made up from `seed`. Errors: as make_workload().
Result<Workload> make_workload(const Trace& trace, uint64_t seed, TokenRange tokens);

}  // namespace octavo
