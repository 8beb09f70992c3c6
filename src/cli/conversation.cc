#include "cli/conversation.h"

namespace octavo::cli {

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

}  // namespace octavo::cli
