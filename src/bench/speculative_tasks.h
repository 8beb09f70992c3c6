// What guesses are measured on.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/load.h"

namespace octavo {

// copy: answers repeat what the prompt has (JSON and a table again, an edited text, code with a
// change, quotations, a summary). code: source files to go on with. chat: questions. random: drawn
// token ids, and answers drawn from the whole distribution, in which hardly anything repeats.
std::span<const std::string_view> speculative_task_names();

struct SpeculativeTask {
  std::string name;
  std::vector<std::vector<TokenId>> prompts;
  SamplingParams params;  // greedy, but for random
};

// At most `max_prompts` prompts of the task; the model's chat template renders those of
// conversations, if it has one. Errors: invalid_argument for an unknown name; those of render_chat.
Result<SpeculativeTask> make_speculative_task(const LoadedEngine& engine, std::string_view name,
                                              int max_prompts);

}  // namespace octavo
