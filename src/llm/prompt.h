// What text is generated after: text, token ids, or a conversation.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/ids.h"

namespace octavo {

class LoraAdapter;

struct Prompt {
  Prompt(std::string text) : content(std::move(text)) {}
  Prompt(std::string_view text) : content(std::string(text)) {}
  Prompt(const char* text) : content(std::string(text)) {}
  Prompt(std::vector<TokenId> token_ids) : content(std::move(token_ids)) {}

  // Text is encoded as it is, control tokens in it being ordinary text, after the BOS token where
  // the model's file asks for one. To token ids nothing is added.
  std::variant<std::string, std::vector<TokenId>> content;
  int priority = 0;  // lower goes first; only under SchedulingPolicy::priority
  // Made by LLM::load_lora(); nullptr: the engine's own (EngineOptions::lora), if it has one.
  std::shared_ptr<const LoraAdapter> adapter = {};
  std::string cache_salt = {};  // prompts share cached prefixes only with those of the same salt
};

struct ChatToolCall {
  std::string id, name;
  std::string arguments;  // a JSON object
};
struct ChatMessage {
  std::string role;  // "system", "user", "assistant", "tool"
  std::string content;
  std::vector<ChatToolCall> tool_calls = {};  // of the assistant
  std::string tool_call_id = {};              // of a tool: what it answers
  std::string reasoning_content = {};         // of the assistant
};
using ChatMessages = std::vector<ChatMessage>;

struct ChatOptions {
  // The prompt ends where the assistant's answer begins. Unset: unless it goes on from the last
  // message.
  std::optional<bool> add_generation_prompt = {};
  // The prompt ends with the content of the last message, which is the assistant's, to the byte,
  // and the answer goes on from there.
  bool continue_final_message = false;
  // What the model may call: a JSON list as in OpenAI's API. Empty: nothing.
  std::string tools = {};
  // Words of text/effort_variables.h, for chat templates that can tell the model; empty: unset.
  std::string reasoning_effort = {}, verbosity = {};
};

}  // namespace octavo
