#include "bench/serve_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "bench/json_fields.h"
#include "formats/quote.h"
#include "formats/shallow_json.h"

namespace octavo {
namespace {

using http::CallEnd;
using nlohmann::json;

constexpr int kMaxEventDepth = 32;
constexpr size_t kMaxWhyBytes = 200;

std::string dump(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string ids_json(const std::vector<TokenId>& ids) {
  std::string out = "[";
  for (const TokenId id : ids) {
    if (out.size() > 1) out += ',';
    const fmt::format_int number(static_cast<int>(id));
    out.append(number.data(), number.size());
  }
  return out + "]";
}

std::string text_of(const Turn& turn) {
  return turn.made_up ? words_of(turn.token_ids) : turn.text;
}

std::string message_json(std::string_view role, std::string_view content) {
  return fmt::format(R"({{"role":"{}","content":{}}})", role, dump(json(content)));
}

Result<void> check_extra(const json& extra) {
  if (!extra.is_object())
    return fail(ErrorCode::invalid_argument, "--extra-body is not a JSON object");
  for (const char* name : {"prompt", "messages", "stream"})
    if (extra.contains(name))
      return fail(ErrorCode::invalid_argument,
                  fmt::format("--extra-body has '{}', which the requests bring themselves", name));
  return {};
}

const json* member(const json& object, const char* name) {
  const auto it = object.is_object() ? object.find(name) : object.end();
  return it == object.end() || it->is_null() ? nullptr : &*it;
}

std::optional<int> count_in(const json& object, const char* name) {
  const json* value = member(object, name);
  const auto count = value ? integer_between(*value, 0, INT32_MAX) : std::nullopt;
  return count ? std::optional(static_cast<int>(*count)) : std::nullopt;
}

const std::string* text_in(const json& object, const char* name) {
  const json* value = member(object, name);
  return value && value->is_string() ? value->get_ptr<const std::string*>() : nullptr;
}

// Whether a part of a tool's call came, which is as good as text.
bool calls_tool(const json& choice) {
  const json* delta = member(choice, "delta");
  const json* calls = delta ? member(*delta, "tool_calls") : nullptr;
  return calls && calls->is_array() && !calls->empty();
}

// Of a completion `text`; of a chat what the model says, or thinks.
const std::string* choice_text(const json& choice) {
  if (const std::string* text = text_in(choice, "text")) return text;
  const json* delta = member(choice, "delta");
  if (!delta) return nullptr;
  const std::string* empty = nullptr;
  for (const char* name : {"content", "reasoning_content", "reasoning"})
    if (const std::string* text = text_in(*delta, name)) {
      if (!text->empty()) return text;
      empty = text;
    }
  return empty;
}

// A token that is no whole character yet has an empty text; so have the events that open and close
// an answer, which are no tokens.
bool is_token(const json& choice, const std::string& text) {
  if (!text.empty()) return true;
  const json* delta = member(choice, "delta");
  return !member(choice, "finish_reason") && !(delta && member(*delta, "role"));
}

std::string message_of(std::string_view body) {
  const auto [root, too_deep] = parse_shallow_json(body, kMaxEventDepth);
  if (!too_deep) {
    const json* error = member(root, "error");
    const std::string* message = error ? text_in(*error, "message") : text_in(root, "message");
    if (message) return *message;
  }
  return std::string(body);
}

}  // namespace

Result<RequestForm> RequestForm::make(const RequestOptions& options) {
  OCTAVO_CHECK_OK(check_extra(options.extra_body));
  json members = {
      {"model", options.model}, {"stream", true}, {"stream_options", {{"include_usage", true}}}};
  if (options.temperature) members["temperature"] = *options.temperature;
  if (options.ignore_eos) members["ignore_eos"] = true;
  RequestForm form;
  for (const auto& [name, value] : options.extra_body.items()) {
    if (name == "max_tokens" || name == "max_completion_tokens") form.sets_limit_ = false;
    members[name] = value;
    if (value.is_null()) members.erase(name);
  }
  const std::string text = dump(members);
  form.members_ = text.substr(1, text.size() - 2);
  form.chat_ = options.chat;
  form.token_ids_ = options.token_ids;
  return form;
}

std::string RequestForm::body(std::string_view prompt, std::optional<int> output_tokens) const {
  std::string out = fmt::format("{{\"{}\":{},{}", chat_ ? "messages" : "prompt", prompt, members_);
  if (output_tokens && sets_limit_) out += fmt::format(",\"max_tokens\":{}", *output_tokens);
  return out + "}";
}

Result<std::string> DialogueSoFar::ask(const Turn& turn, const RequestForm& form) {
  chat_ = form.chat();
  if (!turn.messages.empty()) {
    if (!chat_)
      return fail(ErrorCode::invalid_argument, "'messages' need --endpoint /v1/chat/completions");
    messages_ = turn.messages.substr(1, turn.messages.size() - 2);
    return turn.messages;
  }
  if (!turn.token_ids.empty() && (form.token_ids() || !turn.made_up)) {
    if (chat_)
      return fail(ErrorCode::invalid_argument, "token ids need --endpoint /v1/completions");
    return ids_json(turn.token_ids);
  }
  if (!chat_) {
    text_ += (text_.empty() ? "" : "\n") + text_of(turn);
    return dump(json(text_));
  }
  messages_ += (messages_.empty() ? "" : ",") + message_json("user", text_of(turn));
  return fmt::format("[{}]", messages_);
}

void DialogueSoFar::hear(std::string_view answer) {
  if (chat_)
    messages_ += "," + message_json("assistant", answer);
  else
    text_ += answer;
}

void AnswerReader::read(std::string_view data, double time_s) {
  if (data == "[DONE]") {
    is_done_ = true;
    return;
  }
  const auto [root, too_deep] = parse_shallow_json(data, kMaxEventDepth);
  if (too_deep || !root.is_object()) {
    error_ = "an event is not a JSON object";
    return;
  }
  if (member(root, "error")) error_ = message_of(data);
  if (const json* usage = member(root, "usage")) read_usage(*usage);
  const json* choices = member(root, "choices");
  if (!choices || !choices->is_array()) return;
  for (const json& choice : *choices) read_choice(choice, time_s);
}

void AnswerReader::read_usage(const json& usage) {
  if (const auto tokens = count_in(usage, "prompt_tokens")) prompt_tokens_ = tokens;
  if (const auto tokens = count_in(usage, "completion_tokens")) completion_tokens_ = tokens;
  if (const json* details = member(usage, "prompt_tokens_details"))
    cached_tokens_ = count_in(*details, "cached_tokens").value_or(cached_tokens_);
}

void AnswerReader::read_choice(const json& choice, double time_s) {
  if (const std::string* reason = text_in(choice, "finish_reason")) finish_reason_ = *reason;
  const std::string* text = choice_text(choice);
  const bool calls = calls_tool(choice);
  if (!calls && (!text || !is_token(choice, *text))) return;
  // The first token is the first text that somebody could read.
  if (token_s_.empty() && !calls && text->empty()) return;
  if (token_s_.size() == kMaxLength) error_ = "the answer does not end";
  if (!error_.empty()) return;
  token_s_.push_back(time_s);
  if (keep_text_ && text) text_ += *text;
}

// Of a stream that came to its end.
std::string AnswerReader::how_it_ended() const {
  if (finish_reason_ == "tool_calls" || finish_reason_ == "function_call") return "stop";
  if (!finish_reason_.empty()) return finish_reason_;
  if (token_s_.empty()) return "no answer";
  // Some servers never give a reason; [DONE] says that nothing is missing.
  return is_done_ ? "stop" : "cut stream";
}

std::string AnswerReader::finish(const http::CallResult& call) const {
  if (call.status != 0 && call.status != 200) return fmt::format("status {}", call.status);
  if (!error_.empty()) return "error event";
  if (is_done_) return how_it_ended();
  switch (call.end) {
    case CallEnd::answered:
      break;
    case CallEnd::refused:
      return "refused";
    case CallEnd::unreachable:
      return "unreachable";
    case CallEnd::timed_out:
      return "timeout";
    case CallEnd::cut:
      return "cut stream";
    case CallEnd::not_http:
      return "not HTTP";
    case CallEnd::cancelled:
      return "cancelled";
  }
  if (!call.content_type.starts_with("text/event-stream")) return "no stream";
  return how_it_ended();
}

std::string AnswerReader::why(const http::CallResult& call) const {
  std::string why = error_.empty() ? call.message : error_;
  if (!call.body.empty()) why = message_of(call.body);
  return why.empty() ? "" : quote(why, kMaxWhyBytes);
}

void AnswerReader::fill(RequestRecord& record) const {
  record.token_s = token_s_;
  // A count of zero is none where something came.
  if (completion_tokens_ != 0 || token_s_.empty()) record.reported_tokens = completion_tokens_;
  record.prompt_tokens = prompt_tokens_.value_or(record.prompt_tokens);
  record.cached_tokens = std::min(cached_tokens_, record.prompt_tokens);
}

}  // namespace octavo
