#include "bench/speculative_tasks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "base/rng.h"
#include "bench/speculative_texts.h"
#include "llm/chat_prompt.h"

namespace octavo {
namespace {

constexpr std::array<std::string_view, 4> kTasks = {"copy", "code", "chat", "random"};
constexpr std::string_view kRandom = kTasks[3];
constexpr int kRandomPrompts = 8, kRandomTokens = 256;
constexpr uint64_t kSeed = 1;

Result<std::vector<TokenId>> encode(const LoadedEngine& engine, const SpeculativeText& text) {
  if (!text.name.ends_with(".chat") || !engine.chat_template)
    return engine.tokenizer->encode(text.text, {.parse_special = false, .add_special = true});
  const nlohmann::ordered_json message = {{"role", "user"}, {"content", std::string(text.text)}};
  OCTAVO_TRY(ChatPrompt prompt, render_chat(engine, nlohmann::ordered_json::array({message})));
  return std::move(prompt.ids);
}

Result<void> add_texts(const LoadedEngine& engine, size_t max_prompts, SpeculativeTask& task) {
  for (const SpeculativeText& text : speculative_texts()) {
    if (!text.name.starts_with(task.name + "-") || task.prompts.size() == max_prompts) continue;
    OCTAVO_TRY(task.prompts.emplace_back(), encode(engine, text));
  }
  return {};
}

// The first ids of a vocabulary are control tokens and single bytes.
void add_random(const LoadedEngine& engine, size_t max_prompts, SpeculativeTask& task) {
  const auto vocabulary = static_cast<int>(engine.tokenizer->vocab_size());
  const int first = vocabulary / 10;
  const size_t count = std::min<size_t>(kRandomPrompts, max_prompts);
  const auto length = static_cast<uint64_t>(std::min(kRandomTokens, engine.max_model_len / 2));
  for (uint32_t i = 0; i < count; ++i) {
    auto& prompt = task.prompts.emplace_back();
    for (uint64_t place = 0; place < length; ++place)
      prompt.push_back(
          TokenId{first + static_cast<int>(uniform(kSeed, i, place) * (vocabulary - first))});
  }
  task.params.temperature = 1;
  task.params.seed = kSeed;
  task.params.ignore_eos = true;
}

}  // namespace

std::span<const std::string_view> speculative_task_names() { return kTasks; }

Result<SpeculativeTask> make_speculative_task(const LoadedEngine& engine, std::string_view name,
                                              int max_prompts) {
  if (std::find(kTasks.begin(), kTasks.end(), name) == kTasks.end())
    return fail(ErrorCode::invalid_argument,
                fmt::format("there is no task '{}'; there are {}", name, fmt::join(kTasks, ", ")));
  SpeculativeTask task{.name = std::string(name), .prompts = {}, .params = {}};
  task.params.temperature = 0;
  if (name == kRandom)
    add_random(engine, static_cast<size_t>(max_prompts), task);
  else
    OCTAVO_CHECK_OK(add_texts(engine, static_cast<size_t>(max_prompts), task));
  return task;
}

}  // namespace octavo
