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

std::optional<std::string> Conversation::take_last_question() {
  for (size_t i = messages_.size(); i > num_system_; --i) {
    const auto& message = messages_[i - 1];
    if (message["role"] != "user") continue;
    std::string content = message["content"].get<std::string>();
    messages_.erase(messages_.begin() + static_cast<std::ptrdiff_t>(i - 1), messages_.end());
    return content;
  }
  return std::nullopt;
}

std::string Conversation::system() const {
  return num_system_ == 0 ? "" : messages_[0]["content"].get<std::string>();
}

void Conversation::set_system(const std::string& system) {
  if (num_system_ > 0) messages_.erase(0);
  num_system_ = system.empty() ? 0 : 1;
  if (!system.empty())
    messages_.insert(messages_.begin(),
                     nlohmann::ordered_json{{"role", "system"}, {"content", system}});
}

void Conversation::clear() {
  messages_.erase(messages_.begin() + static_cast<std::ptrdiff_t>(num_system_), messages_.end());
}

}  // namespace octavo::cli
