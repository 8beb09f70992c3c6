// Requests to a server of OpenAI's API, and what its streams say.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "bench/dialogues.h"
#include "bench/result.h"
#include "http/client.h"

namespace octavo {

inline constexpr std::string_view kCompletions = "/v1/completions";
inline constexpr std::string_view kChatCompletions = "/v1/chat/completions";

struct RequestOptions {
  std::string model = {};
  bool chat = false;       // messages instead of a prompt
  bool token_ids = false;  // made-up prompts are sent as ids; else as words
  bool ignore_eos = true;
  std::optional<double> temperature = 0;
  nlohmann::json extra_body = nlohmann::json::object();  // wins; null takes a member away
};

// What all requests have in common.
class RequestForm {
 public:
  // Errors: invalid_argument if extra_body is no object or has what is not its to say.
  static Result<RequestForm> make(const RequestOptions& options);

  bool chat() const { return chat_; }
  bool token_ids() const { return token_ids_; }
  // `prompt` is JSON: of a chat the list of messages.
  std::string body(std::string_view prompt, std::optional<int> output_tokens) const;

 private:
  bool chat_ = false, token_ids_ = false, sets_limit_ = true;
  std::string members_;  // "model":"a","stream":true
};

// One dialogue as far as it has come.
class DialogueSoFar {
 public:
  // The prompt of the next turn, with all that was said before it, as JSON. Errors:
  // invalid_argument for a turn that cannot be asked so: messages of a completion, ids of a chat.
  Result<std::string> ask(const Turn& turn, const RequestForm& form);
  void hear(std::string_view answer);

 private:
  std::string text_;      // of a completion
  std::string messages_;  // of a chat, without the brackets
  bool chat_ = false;
};

// The events of one answer.
class AnswerReader {
 public:
  explicit AnswerReader(bool keep_text) : keep_text_(keep_text) {}

  void read(std::string_view data, double time_s);
  // How it ended: "stop", "length", or a kind of failure: "status 429", "cut stream", "no answer".
  // A call of a tool is an answer too ("stop"), and so is one of no tokens that says why it ended.
  std::string finish(const http::CallResult& call) const;
  // One line that says more of a failure; may be empty.
  std::string why(const http::CallResult& call) const;
  void fill(RequestRecord& record) const;

  const std::string& text() const { return text_; }
  bool has_usage() const { return completion_tokens_.has_value(); }
  bool has_reason() const { return !finish_reason_.empty(); }  // of its end

 private:
  void read_usage(const nlohmann::json& usage);
  void read_choice(const nlohmann::json& choice, double time_s);
  std::string how_it_ended() const;

  bool keep_text_;
  std::vector<double> token_s_;
  std::string text_, finish_reason_, error_;
  std::optional<int> prompt_tokens_, completion_tokens_;
  int cached_tokens_ = 0;
  bool is_done_ = false;  // [DONE] has come
};

}  // namespace octavo
