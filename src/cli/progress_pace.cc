#include "cli/progress_pace.h"

#include <algorithm>

namespace octavo::cli {

bool ProgressPace::is_due(double now_s) {
  constexpr double kPart = 0.1;
  if (now_s < next_s_) return false;
  next_s_ = now_s + std::max(kLeast_s, kPart * (now_s - start_s_));
  return true;
}

}  // namespace octavo::cli
