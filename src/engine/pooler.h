// Embeddings by pooling: makes that of one sequence from its hidden states as they come, in chunks
// of any size; Matryoshka embeddings are cut to fewer dimensions.
#pragma once

#include <span>
#include <vector>

#include "base/result.h"
#include "core/pooling.h"

namespace octavo {

class Pooler {
 public:
  Pooler(PoolingParams params, int num_tokens) : params_(params), num_tokens_(num_tokens) {}

  // Whether the hidden state at this position is needed, and was not given before: after a
  // preemption positions come again.
  bool wants(int position) const;
  // REQUIRES: wants(position), in ascending order.
  void add(int position, std::span<const float> hidden);

  // Errors: numeric_error (not finite). REQUIRES: all that it wanted was added.
  Result<std::vector<float>> finish() const;

 private:
  PoolingParams params_;
  int num_tokens_;
  int next_ = 0;             // position
  std::vector<double> sum_;  // of the positions that count, one after the other
};

}  // namespace octavo
