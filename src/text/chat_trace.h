// Whether what messages say has an effect on the prompt.
#pragma once

#include <cstddef>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace octavo {

// The prompt of messages; unset: they are refused.
using PromptOf = std::function<std::optional<std::string>(nlohmann::ordered_json messages)>;

struct ChatTrace {
  // Messages that have text, and none of whose fields has an effect; ascending.
  std::vector<size_t> lost_messages = {};
  std::vector<std::string> warnings = {};  // sentences that name fields without an effect
};

// On which fields the prompt does not depend: as the client sent them, with a value that says
// something. Ids that pair a call with its result have done so. Every field is looked for in one
// rendering, and only those that do not show there are tried again, so that the work does not grow
// with their number.
ChatTrace trace_of(const nlohmann::ordered_json& messages, const std::string& prompt,
                   const PromptOf& prompt_of);

// "a, b, c and 7 more have no effect: WHY". places is not empty.
std::string no_effect(const std::vector<std::string>& places, std::string_view why);

}  // namespace octavo
