#include "server/api_answer.h"

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "server/api_json.h"
#include "server/api_logprobs.h"
#include "server/read_answer.h"

namespace octavo {
namespace {

using Json = nlohmann::ordered_json;

Json stop_reason_json(const StopReason& reason) {
  if (const auto* text = std::get_if<std::string>(&reason)) return *text;
  if (const auto* id = std::get_if<TokenId>(&reason)) return raw(*id);
  return nullptr;
}

// reasoning_tokens: nothing where reasoning is not looked for.
Json usage_json(const Usage& usage, std::optional<int64_t> reasoning_tokens) {
  Json json = {{"prompt_tokens", usage.prompt_tokens},
               {"completion_tokens", usage.completion_tokens},
               {"total_tokens", usage.prompt_tokens + usage.completion_tokens},
               {"prompt_tokens_details", {{"cached_tokens", usage.cached_tokens}}}};
  Json details = Json::object();
  if (reasoning_tokens) details["reasoning_tokens"] = *reasoning_tokens;
  if (usage.drafts) {
    details["accepted_prediction_tokens"] = usage.drafts->accepted;
    details["rejected_prediction_tokens"] = usage.drafts->tokens - usage.drafts->accepted;
  }
  if (!details.empty()) json["completion_tokens_details"] = std::move(details);
  return json;
}

double per_second(int64_t count, double seconds) {
  return count > 0 && seconds > 0 ? static_cast<double>(count) / seconds : 0;
}

double ms_per_token(int64_t count, double seconds) {
  return count > 0 ? seconds * 1e3 / static_cast<double>(count) : 0;
}

// With llama.cpp's names. The first token of each choice is made by the prefill, so it is no part
// of the rate.
Json timings_json(const Timings& timings, int64_t num_choices) {
  const Usage& usage = timings.usage;
  const int64_t computed = usage.prompt_tokens - usage.cached_tokens;
  const int64_t decoded = usage.completion_tokens - num_choices;
  Json json = {{"queue_ms", timings.queue_s * 1e3},
               {"cache_n", usage.cached_tokens},
               {"prompt_n", computed},
               {"prompt_ms", timings.prefill_s * 1e3},
               {"prompt_per_token_ms", ms_per_token(computed, timings.prefill_s)},
               {"prompt_per_second", per_second(computed, timings.prefill_s)},
               {"predicted_n", usage.completion_tokens},
               {"predicted_ms", timings.decode_s * 1e3},
               {"predicted_per_token_ms", ms_per_token(decoded, timings.decode_s)},
               {"predicted_per_second", per_second(decoded, timings.decode_s)}};
  if (usage.drafts) {
    json["draft_n"] = usage.drafts->tokens;
    json["draft_n_accepted"] = usage.drafts->accepted;
  }
  return json;
}

// All of a choice, or what it gained.
struct Part {
  int index;  // of all choices
  bool is_first;
  std::string_view text;
  std::span<const TokenId> token_ids;
  std::span<const TokenLogprobs> logprobs;
  std::optional<FinishReason> finish_reason;
  const StopReason& stop_reason;
  const RequestOutput* prompt;  // nullptr: not known, or told before
  bool must_tell = true;        // even if there is no text
};

class Writer : public AnswerWriter {
 public:
  Writer(const GenerationRequest& request, const Tokenizer& tokenizer, AnswerHead head,
         std::string_view object)
      : tokenizer_(tokenizer),
        names_{tokenizer, request.return_tokens_as_token_ids},
        head_(std::move(head)),
        object_(object),
        n_(request.params.n),
        logprobs_(request.params.logprobs),
        include_usage_(request.include_usage),
        return_token_ids_(request.return_token_ids),
        return_prompt_logprobs_(request.return_prompt_logprobs),
        event_head_(open_head(object_ + event_suffix(object))) {}

  std::string whole(std::span<const RequestOutput> outputs, const Timings& timings) override;
  std::vector<std::string> events(const ChoiceEvent& event, const Usage* usage,
                                  const RequestOutput* prompt) override;
  std::string usage_event(const Usage& usage, const Timings& timings, uint64_t seed) override;

 protected:
  // The choice, but for what is the same for both endpoints; of an event, any number of steps.
  virtual std::vector<Json> choices(const Part& part, bool is_event) = 0;
  virtual bool has_prompt_in_choice() const = 0;
  virtual std::string_view reason_name(const Part& part) const { return name(*part.finish_reason); }
  virtual std::optional<int64_t> reasoning_tokens() const { return std::nullopt; }

  const Tokenizer& tokenizer_;
  const TokenNames names_;
  AnswerHead head_;

 private:
  static std::string event_suffix(std::string_view object) {
    return object == "chat.completion" ? ".chunk" : "";
  }
  Json head_json(const std::string& object) const;
  std::string open_head(const std::string& object) const;
  std::vector<Json> choices_json(const Part& part, bool is_event);
  std::string event_line(const Json& choice, const Usage* usage, const RequestOutput* prompt) const;
  void add_prompt(Json& json, const RequestOutput& prompt, bool is_event) const;

  std::string object_;
  int n_;

 protected:
  std::optional<int> logprobs_;

 private:
  bool include_usage_, return_token_ids_, return_prompt_logprobs_;
  std::string event_head_;  // up to the list of choices
  std::set<int> begun_;     // choices that had an event
};

Json Writer::head_json(const std::string& object) const {
  return {{"id", head_.id},
          {"object", object},
          {"created", head_.created},
          {"model", head_.model},
          {"system_fingerprint",
           head_.system_fingerprint.empty() ? Json(nullptr) : Json(head_.system_fingerprint)}};
}

std::string Writer::open_head(const std::string& object) const {
  std::string text = to_line(head_json(object));
  text.back() = ',';
  return text + "\"choices\":[";
}

// A whole answer has null where nothing was asked for, since clients of vLLM read attributes.
void Writer::add_prompt(Json& json, const RequestOutput& prompt, bool is_event) const {
  if (return_token_ids_)
    json["prompt_token_ids"] = ids_json(prompt.prompt_token_ids);
  else if (!is_event)
    json["prompt_token_ids"] = nullptr;
  if (return_prompt_logprobs_)
    json["prompt_logprobs"] = prompt_logprobs_json(prompt.prompt_logprobs, tokenizer_);
  else if (!is_event)
    json["prompt_logprobs"] = nullptr;
}

// The first has all that is told but once, the last the end.
std::vector<Json> Writer::choices_json(const Part& part, bool is_event) {
  std::vector<Json> all = choices(part, is_event);
  for (Json& json : all) {
    const bool is_last = &json == &all.back(), is_first = &json == &all.front();
    const bool ends = part.finish_reason && is_last;
    json["finish_reason"] = ends ? Json(reason_name(part)) : Json(nullptr);
    if (ends) json["stop_reason"] = stop_reason_json(part.stop_reason);
    if (return_token_ids_)
      json["token_ids"] = is_first ? ids_json(part.token_ids) : Json::array();
    else if (!is_event)
      json["token_ids"] = nullptr;
    if (is_first && part.prompt && has_prompt_in_choice()) add_prompt(json, *part.prompt, is_event);
  }
  return all;
}

std::string Writer::whole(std::span<const RequestOutput> outputs, const Timings& timings) {
  Json json = head_json(object_);
  Json& list = json["choices"] = Json::array();
  for (size_t i = 0; i < outputs.size(); ++i)
    for (const CompletionOutput& output : outputs[i].outputs) {
      list.push_back(choices_json({.index = static_cast<int>(i) * n_ + output.index,
                                   .is_first = true,
                                   .text = output.text,
                                   .token_ids = output.token_ids,
                                   .logprobs = output.logprobs,
                                   .finish_reason = output.finish_reason,
                                   .stop_reason = output.stop_reason,
                                   .prompt = &outputs[i]},
                                  /*is_event=*/false)
                         .front());
      if (outputs.size() > 1) list.back()["seed"] = outputs[i].seed;
    }
  if (!outputs.empty() && !has_prompt_in_choice()) add_prompt(json, outputs[0], /*is_event=*/false);
  json["usage"] = usage_json(timings.usage, reasoning_tokens());
  json["seed"] = outputs.empty() ? Json(nullptr) : Json(outputs[0].seed);
  json["timings"] = timings_json(timings, n_ * std::ssize(outputs));
  return to_line(json);
}

std::vector<std::string> Writer::events(const ChoiceEvent& event, const Usage* usage,
                                        const RequestOutput* prompt) {
  const int index = event.prompt_index * n_ + event.choice;
  const bool is_first = begun_.insert(index).second;
  std::vector<std::string> lines;
  for (const Json& choice : choices_json({.index = index,
                            .is_first = is_first,
                            .text = event.text,
                            .token_ids = event.token_ids,
                            .logprobs = event.logprobs,
                            .finish_reason = event.finish_reason,
                            .stop_reason = event.stop_reason,
                            .prompt = prompt,
                            .must_tell = is_first || event.finish_reason || usage || prompt ||
                                          logprobs_ || return_token_ids_},
                                         /*is_event=*/true))
    lines.push_back(event_line(choice, usage, lines.empty() ? prompt : nullptr));
  return lines;
}

std::string Writer::event_line(const Json& choice, const Usage* usage,
                               const RequestOutput* prompt) const {
  const std::string text = event_head_ + to_line(choice) + "]";
  Json rest = Json::object();
  if (prompt) {
    rest["seed"] = prompt->seed;
    if (!has_prompt_in_choice()) add_prompt(rest, *prompt, /*is_event=*/true);
  }
  if (usage)
    rest["usage"] = usage_json(*usage, reasoning_tokens());
  else if (include_usage_)
    rest["usage"] = nullptr;
  if (rest.empty()) return text + "}";
  return text + "," + to_line(rest).substr(1);
}

std::string Writer::usage_event(const Usage& usage, const Timings& timings, uint64_t seed) {
  const Json rest = {{"usage", usage_json(usage, reasoning_tokens())},
                     {"seed", seed},
                     {"timings", timings_json(timings, std::ssize(begun_))}};
  return event_head_ + "]," + to_line(rest).substr(1);
}

class ChatWriter final : public Writer {
 public:
  ChatWriter(const ChatRequest& request, const Tokenizer& tokenizer, AnswerHead head)
      : Writer(request, tokenizer, std::move(head), "chat.completion"),
        format_(request.format),
        shows_reasoning_(request.format.reasoning && request.include_reasoning),
        skip_special_(request.params.skip_special_tokens),
        shown_(request.shown_control_tokens) {}

 private:
  bool has_prompt_in_choice() const override { return false; }
  std::string_view reason_name(const Part& part) const override;
  std::optional<int64_t> reasoning_tokens() const override;
  std::vector<Json> choices(const Part& part, bool is_event) override;

  Json choice(const Part& part, const char* key, Json said, bool is_first) const;
  ReadAnswer& answer_of(int index);
  std::vector<Json> deltas(const Part& part, ReadAnswer& answer) const;
  Json message(const Part& part, ReadAnswer& answer) const;
  Json call_json(const Part& part, size_t call, const ToolCall& told) const;

  AnswerFormat format_;
  bool shows_reasoning_, skip_special_;
  std::vector<TokenId> shown_;
  std::map<int, ReadAnswer> answers_;  // by index of the choice
};

ReadAnswer& ChatWriter::answer_of(int index) {
  return answers_
      .try_emplace(index, format_,
                   Detokenizer(tokenizer_, skip_special_, SpacePrefix::keep, shown_))
      .first->second;
}

std::string_view ChatWriter::reason_name(const Part& part) const {
  const auto answer = answers_.find(part.index);
  const bool calls = answer != answers_.end() && answer->second.num_calls() > 0;
  return calls && part.finish_reason == FinishReason::stop ? "tool_calls"
                                                           : name(*part.finish_reason);
}

std::optional<int64_t> ChatWriter::reasoning_tokens() const {
  if (!format_.reasoning) return std::nullopt;
  int64_t count = 0;
  for (const auto& [index, answer] : answers_) count += answer.reasoning_tokens();
  return count;
}

std::vector<Json> ChatWriter::choices(const Part& part, bool is_event) {
  const char* key = is_event ? "delta" : "message";
  if (format_.is_plain()) {
    Json said = Json::object();
    if (part.is_first) said["role"] = "assistant";
    said["content"] = part.text;
    if (part.is_first) said["refusal"] = nullptr;
    return std::vector<Json>(1, choice(part, key, std::move(said), true));
  }
  ReadAnswer& answer = answer_of(part.index);
  if (!is_event) return std::vector<Json>(1, choice(part, key, message(part, answer), true));
  std::vector<Json> all;
  for (Json& delta : deltas(part, answer))
    all.push_back(choice(part, key, std::move(delta), all.empty()));
  return all;
}

Json ChatWriter::choice(const Part& part, const char* key, Json said, bool is_first) const {
  Json logprobs = nullptr;
  if (logprobs_ && is_first)
    logprobs = {{"content", chat_logprobs_json(part.logprobs, *logprobs_, names_)},
                {"refusal", nullptr}};
  return {{"index", part.index}, {key, std::move(said)}, {"logprobs", std::move(logprobs)}};
}

Json ChatWriter::call_json(const Part& part, size_t call, const ToolCall& told) const {
  return {
      {"id", call_id(head_.call_seed, part.index, call, format_.tools && format_.tools->short_ids)},
      {"type", "function"},
      {"function", {{"name", told.name}, {"arguments", told.arguments}}}};
}

Json ChatWriter::message(const Part& part, ReadAnswer& answer) const {
  const AnswerParts parts = answer.read(part.text, part.token_ids, /*is_end=*/true);
  Json json = {{"role", "assistant"}, {"content", parts.content}, {"refusal", nullptr}};
  if (parts.content.empty() && !parts.calls.empty()) json["content"] = nullptr;
  if (shows_reasoning_)
    json["reasoning_content"] = parts.reasoning.empty() ? Json(nullptr) : Json(parts.reasoning);
  for (size_t i = 0; i < parts.calls.size(); ++i)
    json["tool_calls"].push_back(call_json(part, i, parts.calls[i]));
  return json;
}

// A call is told in two steps, its name and then its arguments, as clients expect.
std::vector<Json> ChatWriter::deltas(const Part& part, ReadAnswer& answer) const {
  size_t index = answer.num_calls();
  const AnswerParts parts = answer.read(part.text, part.token_ids, part.finish_reason.has_value());
  Json first = Json::object(), second = Json::object();
  if (part.is_first) first["role"] = "assistant";
  if (part.is_first || !parts.content.empty()) first["content"] = parts.content;
  if (part.is_first) first["refusal"] = nullptr;
  if (shows_reasoning_ && !parts.reasoning.empty()) first["reasoning_content"] = parts.reasoning;
  for (const ToolCall& call : parts.calls) {
    Json head = {{"index", index}};
    head.update(call_json(part, index, {call.name, ""}));
    first["tool_calls"].push_back(std::move(head));
    second["tool_calls"].push_back(
        {{"index", index}, {"function", {{"arguments", call.arguments}}}});
    ++index;
  }
  if (parts.calls.empty() && first.empty() && !part.must_tell) return {};
  std::vector<Json> steps;
  steps.push_back(std::move(first));
  if (!parts.calls.empty()) steps.push_back(std::move(second));
  return steps;
}

class CompletionWriter final : public Writer {
 public:
  CompletionWriter(const CompletionRequest& request, const Tokenizer& tokenizer, AnswerHead head)
      : Writer(request, tokenizer, std::move(head), "text_completion"),
        echo_(request.echo),
        skip_special_(request.params.skip_special_tokens),
        is_truncated_(request.truncate_prompt_tokens.has_value()) {}

 private:
  bool has_prompt_in_choice() const override { return true; }

  std::vector<Json> choices(const Part& part, bool) override {
    const bool echoes = echo_ && part.is_first && part.prompt;
    const std::string prompt = echoes ? prompt_text(*part.prompt) : std::string();
    Json logprobs = nullptr;
    if (logprobs_) {
      CompletionLogprobs& places =
          logprobs_of_.try_emplace(part.index, names_, skip_special_).first->second;
      if (echoes) places.add_prompt(*part.prompt, prompt);
      places.add(part.logprobs);
      logprobs = places.take();
    }
    Json json = {{"index", part.index},
                 {"text", prompt + std::string(part.text)},
                 {"logprobs", std::move(logprobs)}};
    return std::vector<Json>(1, std::move(json));
  }

  std::string prompt_text(const RequestOutput& output) const {
    if (output.prompt && !is_truncated_) return *output.prompt;
    // What a client gave as ids it gets back whole; a text has no tokens of the server's own.
    return tokenizer_.decode(output.prompt_token_ids, /*skip_special=*/output.prompt.has_value(),
                             SpacePrefix::strip);
  }

  bool echo_, skip_special_, is_truncated_;
  std::map<int, CompletionLogprobs> logprobs_of_;  // by index of the choice
};

}  // namespace

std::unique_ptr<AnswerWriter> make_answer_writer(const ChatRequest& request,
                                                 const Tokenizer& tokenizer, AnswerHead head) {
  return std::make_unique<ChatWriter>(request, tokenizer, std::move(head));
}

std::unique_ptr<AnswerWriter> make_answer_writer(const CompletionRequest& request,
                                                 const Tokenizer& tokenizer, AnswerHead head) {
  return std::make_unique<CompletionWriter>(request, tokenizer, std::move(head));
}

}  // namespace octavo
