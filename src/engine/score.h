// How well a model predicts given tokens.
#pragma once

#include <span>

#include "base/result.h"
#include "engine/engine.h"

namespace octavo {

// Sum of -log p(token i | tokens before) for i = 1.. of one window, and how many that are.
struct WindowScore {
  double nll = 0;
  int predicted_tokens = 0;
};

// Errors: invalid_argument for fewer than two tokens; those of Engine::run.
Result<WindowScore> score(Engine& engine, std::span<const TokenId> window);

}  // namespace octavo
