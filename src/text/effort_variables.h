// How much a client wants a model to think and to say, as variables of its chat template.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/chat_template.h"

namespace octavo {

// "none", "minimal", "low", "medium", "high", "xhigh"
std::span<const std::string_view> reasoning_efforts();
// "low", "medium", "high"
std::span<const std::string_view> verbosities();

// Sets those that the template reads, under the names that templates have for them, but none that
// is there already. Adds a warning for what has no effect. An empty word asks for nothing.
// variables: an object or null. effort: one of reasoning_efforts().
void set_reasoning_effort(const ChatTemplate& chat_template, std::string_view effort,
                          nlohmann::ordered_json& variables, std::vector<std::string>& warnings);
void set_verbosity(const ChatTemplate& chat_template, std::string_view verbosity,
                   nlohmann::ordered_json& variables, std::vector<std::string>& warnings);

}  // namespace octavo
