// Asks a server for its metrics while it is under load.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bench/result.h"
#include "http/client.h"

namespace octavo {

// Known are vLLM's and llama.cpp's names, and those of all Prometheus clients for the process.
class ServerSampler {
 public:
  // Belongs to the client's thread. REQUIRES: the client outlives it, or runs no more.
  ServerSampler(http::Client& client, http::Headers headers)
      : client_(client), headers_(std::move(headers)) {}

  void start();                             // now, soon again, later each second
  void finish(std::function<void()> done);  // once more, then `done`

  // By the client's clock.
  std::vector<ServerSample> take() { return std::move(samples_); }
  // A sentence about what is missing; may be empty. Before take().
  std::string note() const;

 private:
  void ask(std::function<void()> then);
  void hear(const http::CallResult& result, double time_s);
  void repeat();

  http::Client& client_;
  http::Headers headers_;
  std::vector<ServerSample> samples_;
  double start_s_ = 0;
  double last_cpu_s_ = -1, last_cpu_time_s_ = 0;  // of the process; -1: not known yet
  bool is_over_ = false;
  bool is_known_ = false;    // the server has metrics that are known
  bool is_missing_ = false;  // it has none
};

}  // namespace octavo
