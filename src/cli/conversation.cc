#include "cli/conversation.h"

#include <ctime>

#include "text/chat_input.h"

namespace octavo::cli {
namespace {

int64_t local_now_s() {
  const std::time_t now = std::time(nullptr);
  std::tm local = {};
  return localtime_r(&now, &local) ? now + local.tm_gmtoff : now;
}

std::string spelled(const Tokenizer& tokenizer, std::optional<TokenId> id) {
  return id ? tokenizer.piece(*id) : std::string();
}

}  // namespace

Conversation::Conversation(const std::string& system) : num_system_(system.empty() ? 0 : 1) {
  if (!system.empty()) add("system", system);
}

void Conversation::add(std::string_view role, std::string_view content) {
  messages_.push_back({{"role", role}, {"content", content}});
}

bool Conversation::drop_oldest_turn() {
  size_t next = num_system_ + 1;
  while (next < messages_.size() && messages_[next]["role"] != "user") ++next;
  if (next >= messages_.size()) return false;
  const auto first = messages_.begin();
  messages_.erase(first + static_cast<std::ptrdiff_t>(num_system_),
                  first + static_cast<std::ptrdiff_t>(next));
  return true;
}

void Conversation::clear() {
  messages_.erase(messages_.begin() + static_cast<std::ptrdiff_t>(num_system_), messages_.end());
}

Result<ChatPrompt> Conversation::render(const LoadedEngine& engine) const {
  if (engine.chat_template_error) return tl::make_unexpected(*engine.chat_template_error);
  if (!engine.chat_template)
    return fail(
        ErrorCode::unsupported,
        "the model's file has no chat template; octavo generate without --chat takes plain text");
  ChatTemplate::Input input;
  OCTAVO_TRY(input.messages, normalize_messages(messages_, *engine.chat_template));
  input.bos_token = spelled(*engine.tokenizer, engine.tokenizer->bos());
  input.eos_token = spelled(*engine.tokenizer, engine.tokenizer->eos());
  input.now_s = local_now_s();
  OCTAVO_TRY(const std::vector<TextSpan> spans, engine.chat_template->render(input));
  ChatPrompt prompt;
  for (const TextSpan& span : spans) prompt.text += span.text;
  OCTAVO_TRY(prompt.ids, engine.tokenizer->encode(spans));
  return prompt;
}

}  // namespace octavo::cli
