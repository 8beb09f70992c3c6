// From prompts to requests of the engine.
#pragma once

#include <nlohmann/json.hpp>

#include "engine/load.h"
#include "llm/chat_prompt.h"
#include "llm/prompt.h"
#include "llm/run.h"

namespace octavo {

// A prompt that cannot be encoded or rendered gives an item with the error.
RunItem request_of(const LoadedEngine& engine, const Prompt& prompt, const SamplingParams& params);
RunItem request_of(const LoadedEngine& engine, const nlohmann::ordered_json& messages,
                   const ChatOptions& chat, const SamplingParams& params,
                   TemplateExtras extras = {});

// Adds choices, but to an embedding, until there are num_choices (one, if that is no allowed
// number), without text and ended by an abort or an error: so callers may look at outputs[0] before
// they look at `error`.
void fill_outputs(RequestOutput& output, int num_choices);

}  // namespace octavo
