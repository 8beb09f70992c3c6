// Seconds of the steady clock, which http::Request::received_s is of too.
#pragma once

#include <chrono>

namespace octavo {

inline double steady_now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace octavo
