#include "server/api_answer.h"

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "server/api_json.h"
#include "server/api_logprobs.h"

namespace octavo {
namespace {

using Json = nlohmann::ordered_json;

Json stop_reason_json(const StopReason& reason) {
  if (const auto* text = std::get_if<std::string>(&reason)) return *text;
  if (const auto* id = std::get_if<TokenId>(&reason)) return raw(*id);
  return nullptr;
}

Json usage_json(const Usage& usage) {
  return {{"prompt_tokens", usage.prompt_tokens},
          {"completion_tokens", usage.completion_tokens},
          {"total_tokens", usage.prompt_tokens + usage.completion_tokens},
          {"prompt_tokens_details", {{"cached_tokens", usage.cached_tokens}}}};
}

double per_second(int64_t count, double seconds) {
  return count > 0 && seconds > 0 ? static_cast<double>(count) / seconds : 0;
}

// With llama.cpp's names. The first token of each choice is made by the prefill, so it is no part
// of the rate.
Json timings_json(const Timings& timings, int64_t num_choices) {
  const Usage& usage = timings.usage;
  const int64_t computed = usage.prompt_tokens - usage.cached_tokens;
  return {{"queue_ms", timings.queue_s * 1e3},
          {"cache_n", usage.cached_tokens},
          {"prompt_n", computed},
          {"prompt_ms", timings.prefill_s * 1e3},
          {"prompt_per_second", per_second(computed, timings.prefill_s)},
          {"predicted_n", usage.completion_tokens},
          {"predicted_ms", timings.decode_s * 1e3},
          {"predicted_per_second",
           per_second(usage.completion_tokens - num_choices, timings.decode_s)}};
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
};

class Writer : public AnswerWriter {
 public:
  Writer(const GenerationRequest& request, const Tokenizer& tokenizer, AnswerHead head,
         std::string_view object)
      : tokenizer_(tokenizer),
        head_(std::move(head)),
        object_(object),
        n_(request.params.n),
        logprobs_(request.params.logprobs),
        include_usage_(request.include_usage),
        return_token_ids_(request.return_token_ids),
        return_prompt_logprobs_(request.return_prompt_logprobs),
        event_head_(open_head(object_ + event_suffix(object))) {}

  std::string whole(std::span<const RequestOutput> outputs, const Timings& timings) override;
  std::string event(const ChoiceEvent& event, const Usage* usage,
                    const RequestOutput* prompt) override;
  std::string usage_event(const Usage& usage, const Timings& timings, uint64_t seed) override;

 protected:
  // The choice, but for what is the same for both endpoints.
  virtual Json choice(const Part& part, bool is_event) = 0;
  virtual bool has_prompt_in_choice() const = 0;

  const Tokenizer& tokenizer_;
  AnswerHead head_;

 private:
  static std::string event_suffix(std::string_view object) {
    return object == "chat.completion" ? ".chunk" : "";
  }
  Json head_json(const std::string& object) const;
  std::string open_head(const std::string& object) const;
  Json choice_json(const Part& part, bool is_event);
  void add_prompt(Json& json, const RequestOutput& prompt) const;

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

void Writer::add_prompt(Json& json, const RequestOutput& prompt) const {
  if (return_token_ids_) json["prompt_token_ids"] = ids_json(prompt.prompt_token_ids);
  if (return_prompt_logprobs_)
    json["prompt_logprobs"] = prompt_logprobs_json(prompt.prompt_logprobs, tokenizer_);
}

Json Writer::choice_json(const Part& part, bool is_event) {
  Json json = choice(part, is_event);
  json["finish_reason"] = part.finish_reason ? Json(name(*part.finish_reason)) : Json(nullptr);
  if (part.finish_reason) json["stop_reason"] = stop_reason_json(part.stop_reason);
  if (return_token_ids_) json["token_ids"] = ids_json(part.token_ids);
  if (part.prompt && has_prompt_in_choice()) add_prompt(json, *part.prompt);
  return json;
}

std::string Writer::whole(std::span<const RequestOutput> outputs, const Timings& timings) {
  Json json = head_json(object_);
  Json& choices = json["choices"] = Json::array();
  for (size_t i = 0; i < outputs.size(); ++i)
    for (const CompletionOutput& output : outputs[i].outputs) {
      choices.push_back(choice_json({.index = static_cast<int>(i) * n_ + output.index,
                                     .is_first = true,
                                     .text = output.text,
                                     .token_ids = output.token_ids,
                                     .logprobs = output.logprobs,
                                     .finish_reason = output.finish_reason,
                                     .stop_reason = output.stop_reason,
                                     .prompt = &outputs[i]},
                                    /*is_event=*/false));
      if (outputs.size() > 1) choices.back()["seed"] = outputs[i].seed;
    }
  if (!outputs.empty() && !has_prompt_in_choice()) add_prompt(json, outputs[0]);
  json["usage"] = usage_json(timings.usage);
  json["seed"] = outputs.empty() ? Json(nullptr) : Json(outputs[0].seed);
  json["timings"] = timings_json(timings, n_ * std::ssize(outputs));
  return to_line(json);
}

std::string Writer::event(const ChoiceEvent& event, const Usage* usage,
                          const RequestOutput* prompt) {
  const int index = event.prompt_index * n_ + event.choice;
  const bool is_first = begun_.insert(index).second;
  std::string text = event_head_ +
                     to_line(choice_json({.index = index,
                                          .is_first = is_first,
                                          .text = event.text,
                                          .token_ids = event.token_ids,
                                          .logprobs = event.logprobs,
                                          .finish_reason = event.finish_reason,
                                          .stop_reason = event.stop_reason,
                                          .prompt = prompt},
                                         /*is_event=*/true)) +
                     "]";
  Json rest = Json::object();
  if (prompt) {
    rest["seed"] = prompt->seed;
    if (!has_prompt_in_choice()) add_prompt(rest, *prompt);
  }
  if (usage)
    rest["usage"] = usage_json(*usage);
  else if (include_usage_)
    rest["usage"] = nullptr;
  if (rest.empty()) return text + "}";
  return text + "," + to_line(rest).substr(1);
}

std::string Writer::usage_event(const Usage& usage, const Timings& timings, uint64_t seed) {
  const Json rest = {{"usage", usage_json(usage)},
                     {"seed", seed},
                     {"timings", timings_json(timings, std::ssize(begun_))}};
  return event_head_ + "]," + to_line(rest).substr(1);
}

class ChatWriter final : public Writer {
 public:
  ChatWriter(const ChatRequest& request, const Tokenizer& tokenizer, AnswerHead head)
      : Writer(request, tokenizer, std::move(head), "chat.completion") {}

 private:
  bool has_prompt_in_choice() const override { return false; }
  Json choice(const Part& part, bool is_event) override {
    Json message = Json::object();
    if (part.is_first) message["role"] = "assistant";
    message["content"] = part.text;
    Json logprobs = nullptr;
    if (logprobs_)
      logprobs = {{"content", chat_logprobs_json(part.logprobs, *logprobs_, tokenizer_)}};
    return {{"index", part.index},
            {is_event ? "delta" : "message", std::move(message)},
            {"logprobs", std::move(logprobs)}};
  }
};

class CompletionWriter final : public Writer {
 public:
  CompletionWriter(const CompletionRequest& request, const Tokenizer& tokenizer, AnswerHead head)
      : Writer(request, tokenizer, std::move(head), "text_completion"),
        echo_(request.echo),
        skip_special_(request.params.skip_special_tokens),
        is_truncated_(request.truncate_prompt_tokens.has_value()) {}

 private:
  bool has_prompt_in_choice() const override { return true; }

  Json choice(const Part& part, bool) override {
    const bool echoes = echo_ && part.is_first && part.prompt;
    const std::string prompt = echoes ? prompt_text(*part.prompt) : std::string();
    Json logprobs = nullptr;
    if (logprobs_) {
      CompletionLogprobs& places =
          logprobs_of_.try_emplace(part.index, tokenizer_, skip_special_).first->second;
      if (echoes) places.add_prompt(*part.prompt, prompt);
      places.add(part.logprobs);
      logprobs = places.take();
    }
    return {{"index", part.index},
            {"text", prompt + std::string(part.text)},
            {"logprobs", std::move(logprobs)}};
  }

  std::string prompt_text(const RequestOutput& output) const {
    if (output.prompt && !is_truncated_) return *output.prompt;
    return tokenizer_.decode(output.prompt_token_ids, skip_special_, SpacePrefix::strip);
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
