#include "text/effort_variables.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace octavo {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kEfforts[] = {"none", "minimal", "low", "medium", "high", "xhigh"};
constexpr std::string_view kVerbosities[] = {"low", "medium", "high"};
// Tokens of reasoning, in the order of kEfforts. Templates take multiples of 512; -1 is no limit.
constexpr int kBudgets[] = {0, 512, 1024, 4096, 16384, -1};
// Switches: templates have one of them.
constexpr const char* kSwitches[] = {"enable_thinking", "thinking"};

int budget_of(std::string_view effort) {
  const auto* found = std::find(std::begin(kEfforts), std::end(kEfforts), effort);
  return found == std::end(kEfforts) ? -1 : kBudgets[found - std::begin(kEfforts)];
}

// Whether the template reads it and nobody has set it.
bool set(const ChatTemplate& chat_template, const char* name, Json value, Json& variables) {
  if (!chat_template.reads(name) || variables.contains(name)) return false;
  variables[name] = std::move(value);
  return true;
}

std::string quoted(std::string_view word) { return "\"" + std::string(word) + "\""; }

}  // namespace

std::span<const std::string_view> reasoning_efforts() { return kEfforts; }
std::span<const std::string_view> verbosities() { return kVerbosities; }

void set_reasoning_effort(const ChatTemplate& chat_template, std::string_view effort,
                          Json& variables, std::vector<std::string>& warnings) {
  if (effort.empty()) return;
  const bool thinks = effort != "none";
  bool has_level = set(chat_template, "reasoning_effort", std::string(effort), variables);
  has_level |= set(chat_template, "thinking_budget", budget_of(effort), variables);
  bool has_switch = false;
  for (const char* name : kSwitches)
    has_switch = has_switch || set(chat_template, name, thinks, variables);
  if (has_level) return;
  if (!has_switch)
    warnings.push_back(fmt::format(
        "reasoning_effort {} has no effect: the model's chat template has no variable for it{}",
        quoted(effort), variables.empty() ? "" : " that chat_template_kwargs left unset"));
  else if (thinks)
    warnings.push_back(fmt::format(
        "reasoning_effort {} turns thinking on and has no other effect: the model's chat template "
        "knows no degrees of it",
        quoted(effort)));
}

void set_verbosity(const ChatTemplate& chat_template, std::string_view verbosity, Json& variables,
                   std::vector<std::string>& warnings) {
  if (verbosity.empty()) return;
  if (set(chat_template, "verbosity", std::string(verbosity), variables)) return;
  if (verbosity == "medium") return;  // what is said anyway
  warnings.push_back(
      fmt::format("verbosity {} has no effect: the model's chat template has no variable for it",
                  quoted(verbosity)));
}

}  // namespace octavo
