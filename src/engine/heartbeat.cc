#include "engine/heartbeat.h"

#include <fmt/format.h>

namespace octavo {

std::string_view name(EnginePhase phase) {
  switch (phase) {
    case EnginePhase::idle:
      return "idle";
    case EnginePhase::commands:
      return "commands";
    case EnginePhase::planning:
      return "planning";
    case EnginePhase::forward:
      return "forward";
    case EnginePhase::sampling:
      return "sampling";
    case EnginePhase::events:
      return "events";
    case EnginePhase::ended:
      return "ended";
  }
  return "";
}

std::string Heartbeat::describe() const {
  return fmt::format("phase {} of step {} ({} tokens of {} sequences) for {:.1f} s", name(phase()),
                     num_steps_.load(), num_tokens_.load(), num_seqs_.load(), age_s());
}

}  // namespace octavo
