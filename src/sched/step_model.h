// How long a step takes (a cost model), learned while steps run: t = a + b * prefill tokens + c *
// KV tokens read + d * sequences + e * prefill pairs + f * draft tokens, + g if there are any. One
// object per engine; whoever plans reads it.
#pragma once

#include <array>
#include <cstdint>

namespace octavo {

// What a step does, in the units of the model.
struct StepWork {
  int prefill_tokens = 0;     // of prompts, or computed again
  int64_t kv_tokens = 0;      // context that single tokens look back on, summed
  int num_seqs = 0;           // that bring a single token
  int64_t prefill_pairs = 0;  // (token, position it sees) of prefill tokens: attention's part
  int draft_tokens = 0;       // that are verified behind the single tokens

  // `num_tokens` of one sequence that has `num_computed` already.
  void add_decode(int num_computed) {
    ++num_seqs;
    kv_tokens += num_computed + 1;
  }
  void add_prefill(int num_computed, int num_tokens) {
    prefill_tokens += num_tokens;
    prefill_pairs +=
        int64_t{num_tokens} * num_computed + int64_t{num_tokens} * (num_tokens + 1) / 2;
  }
};

// Least squares of the relative error over the latest steps, with costs that are not negative.
// Plain data: a copy plans the same.
class StepTimeModel {
 public:
  // REQUIRES: seconds > 0.
  void observe(const StepWork& work, double seconds);

  // Seconds; 0 as long as nothing was observed. Never negative, and never less for more work.
  double predict(const StepWork& work) const;

  int64_t num_observed() const { return num_observed_; }
  // |predicted - measured| / measured, each predicted before it was measured; a moving mean.
  double relative_error() const { return error_; }

 private:
  static constexpr int kTerms = 7;
  using Vector = std::array<double, kTerms>;

  // What the steps of one kind say: sums over products of their terms. Those with prefill and those
  // without are forgotten apart, so that a long answer does not make the costs of prompts unknown.
  struct Evidence {
    std::array<Vector, kTerms> products{};
    Vector sums{};
    void add(const Vector& x, double weight);
  };

  static Vector features(const StepWork& work);
  double dot(const Vector& x) const;
  void solve();

  Vector weights_{};  // milliseconds
  std::array<Evidence, 2> evidence_;
  int64_t num_observed_ = 0;
  double error_ = 0;
};

}  // namespace octavo
