// A list of chat messages that grows, and forgets.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace octavo::cli {

class Conversation {
 public:
  // system: empty for none.
  explicit Conversation(const std::string& system);

  void add(std::string_view role, std::string_view content);
  void drop_last() { messages_.erase(messages_.size() - 1); }
  // The last message of a user, which goes, and all after it; nothing: there is none.
  std::optional<std::string> take_last_question();

  // Drops the oldest message of a user and all up to the next one, never the system message. False:
  // only one user's message is left, which stays.
  bool drop_oldest_turn();
  void clear();

  // Empty: there is none.
  std::string system() const;
  void set_system(const std::string& system);

  const nlohmann::ordered_json& messages() const { return messages_; }

 private:
  nlohmann::ordered_json messages_ = nlohmann::ordered_json::array();
  size_t num_system_;  // 0 or 1 messages at the front that are never dropped
};

}  // namespace octavo::cli
