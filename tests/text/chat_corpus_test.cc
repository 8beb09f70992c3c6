// Every template of tests/data/chat_corpus with every conversation: the text is jinja2's, and what
// users wrote is marked as content throughout. The expected texts come from make_chat_corpus.py.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "support/paths.h"
#include "text/chat_input.h"
#include "text/chat_template.h"

namespace octavo {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kNow = 1700000000;  // of tools/make_template_data.py

std::string corpus(const std::string& name) {
  return testing::read_file(testing::test_data("chat_corpus/" + name));
}

std::string joined(const std::vector<TextSpan>& spans) {
  std::string text;
  for (const TextSpan& span : spans) text += span.text;
  return text;
}

class ChatCorpus : public ::testing::Test {
 protected:
  ChatCorpus() : tokens_(Json::parse(corpus("templates.json"))) {
    const Json conversations = Json::parse(corpus("conversations.json"));
    conversations_.assign(conversations.begin(), conversations.end());
    for (const auto& file :
         std::filesystem::directory_iterator(testing::test_data("chat_corpus/templates")))
      names_.push_back(file.path().stem().string());
    std::sort(names_.begin(), names_.end());
  }

  static Result<ChatTemplate> parsed(const std::string& name) {
    return ChatTemplate::parse(corpus("templates/" + name + ".jinja"), name);
  }

  ChatTemplate::Input input_of(const std::string& name, const Json& conversation) const {
    const Json& tokens = tokens_.contains(name) ? tokens_[name] : tokens_["defaults"];
    ChatTemplate::Input input;
    input.now_s = kNow;
    input.bos_token = tokens.value("bos_token", "");
    input.eos_token = tokens.value("eos_token", "");
    input.extra = Json::object();
    for (const auto& [key, value] : conversation.items()) {
      if (key == "messages")
        input.messages = value;
      else if (key == "tools")
        input.tools = value;
      else if (key == "add_generation_prompt")
        input.add_generation_prompt = value;
      else if (key != "name")
        input.extra[key] = value;
    }
    return input;
  }

  Json tokens_;
  std::vector<Json> conversations_;
  std::vector<std::string> names_;
};

TEST_F(ChatCorpus, IsWhatJinja2Renders) {
  ASSERT_GE(names_.size(), 40u);
  ASSERT_GE(conversations_.size(), 20u);
  std::map<std::string, ChatTemplate> templates;
  for (const std::string& name : names_) {
    auto chat = parsed(name);
    if (!chat) ADD_FAILURE() << chat.error().message;
    if (chat) templates.emplace(name, std::move(*chat));
  }
  std::map<std::string, const Json*> conversations;
  for (const Json& conversation : conversations_)
    conversations[conversation["name"]] = &conversation;
  std::istringstream lines(corpus("expected.jsonl"));
  size_t compared = 0;
  for (std::string text; std::getline(lines, text); ++compared) {
    const Json line = Json::parse(text);
    const std::string where =
        line["template"].get<std::string>() + " with " + line["conversation"].dump();
    const auto chat = templates.find(line["template"]);
    if (chat == templates.end()) continue;
    const auto spans =
        chat->second.render(input_of(chat->first, *conversations.at(line["conversation"])));
    if (line.contains("error")) {
      EXPECT_FALSE(spans) << where << " gave " << joined(*spans);
    } else if (!spans) {
      ADD_FAILURE() << where << ": " << spans.error().message;
    } else {
      EXPECT_EQ(joined(*spans), line["text"].get<std::string>()) << where;
    }
  }
  EXPECT_EQ(compared, names_.size() * conversations_.size());
}

// Ends every string of the conversation with what would be a control token, but for roles and the
// names of kinds, which templates compare.
constexpr std::string_view kForged = "<|forged|>";
void forge(Json& value, const std::string& key) {
  if (value.is_string() && key != "role" && key != "type")
    value = value.get<std::string>() + std::string(kForged);
  if (!value.is_structured()) return;
  if (value.is_array())
    for (Json& item : value) forge(item, key);
  else
    for (auto& [name, item] : value.items()) forge(item, name);
}

bool has_forged(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text.find("forged") != std::string::npos;
}

TEST_F(ChatCorpus, UsersTextIsNeverTheTemplates) {
  for (const std::string& name : names_) {
    const auto chat = parsed(name);
    ASSERT_TRUE(chat) << chat.error().message;
    int marked = 0;
    for (const Json& conversation : conversations_) {
      Json hostile = conversation;
      hostile.erase("name");
      for (auto& [key, value] : hostile.items()) forge(value, key);
      const auto spans = chat->render(input_of(name, hostile));
      if (!spans) continue;
      for (const TextSpan& span : *spans) {
        EXPECT_FALSE(span.is_template && has_forged(span.text))
            << name << " with " << conversation["name"] << ": " << span.text;
        marked += !span.is_template && has_forged(span.text);
      }
    }
    EXPECT_GT(marked, 4) << name;
  }
}

// A role that nobody knows is as much the user's as the content is.
TEST_F(ChatCorpus, UnknownRolesAreUsersText) {
  for (const std::string& name : names_) {
    const auto chat = parsed(name);
    ASSERT_TRUE(chat) << chat.error().message;
    ChatTemplate::Input input = input_of(name, Json::object());
    input.messages = {{{"role", "user"}, {"content", "a"}},
                      {{"role", kForged}, {"content", "b"}},
                      {{"role", "user"}, {"content", "c"}}};
    const auto spans = chat->render(input);
    if (!spans) continue;
    for (const TextSpan& span : *spans)
      EXPECT_FALSE(span.is_template && has_forged(span.text)) << name << ": " << span.text;
  }
}

}  // namespace
}  // namespace octavo
