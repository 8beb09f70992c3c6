#include "engine/pooler.h"

#include <algorithm>
#include <cmath>

namespace octavo {

bool Pooler::wants(int position) const {
  if (position < next_) return false;
  switch (params_.type) {
    case PoolingType::mean:
      return true;
    case PoolingType::cls:
      return position == 0;
    case PoolingType::last:
      return position + 1 == num_tokens_;
  }
  return false;
}

void Pooler::add(int position, std::span<const float> hidden) {
  next_ = position + 1;
  sum_.resize(hidden.size());
  for (size_t i = 0; i < hidden.size(); ++i) sum_[i] += double{hidden[i]};
}

Result<std::vector<float>> Pooler::finish() const {
  const size_t size = params_.dimensions > 0
                          ? std::min(static_cast<size_t>(params_.dimensions), sum_.size())
                          : sum_.size();
  const std::span sum(sum_.data(), size);
  double squares = 0;
  for (const double x : sum) squares += x * x;
  if (!std::isfinite(squares))
    return fail(ErrorCode::numeric_error,
                "the model gave numbers that are not finite, so there is no embedding; the file "
                "may be damaged");
  double scale = params_.type == PoolingType::mean ? 1.0 / num_tokens_ : 1.0;
  if (params_.normalize) scale = squares > 0 ? 1 / std::sqrt(squares) : 0;
  std::vector<float> out;
  for (const double x : sum) out.push_back(static_cast<float>(x * scale));
  return out;
}

}  // namespace octavo
