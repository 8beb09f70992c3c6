#include "text/template_probe.h"

#include <nlohmann/json.hpp>
#include <string>

#include "text/chat_input.h"
#include "text/chat_messages.h"

namespace octavo {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kAnswer = "octavo-probe-answer";

std::string spelled(const Tokenizer& tokenizer, std::optional<TokenId> id) {
  return id ? tokenizer.piece(*id) : std::string();
}

Result<std::vector<TextSpan>> render(const ChatTemplate& chat_template,
                                     const Tokenizer& tokenizer) {
  const Json messages = {{{"role", "user"}, {"content", "x"}},
                         {{"role", "assistant"}, {"content", kAnswer}},
                         {{"role", "user"}, {"content", "y"}}};
  ChatTemplate::Input input;
  input.messages = shape_messages(messages, chat_template.traits());
  input.bos_token = spelled(tokenizer, tokenizer.bos());
  input.eos_token = spelled(tokenizer, tokenizer.eos());
  return chat_template.render(input);
}

// The spans after the answer; none if it is not there as it was given.
std::vector<TextSpan> after_answer(const std::vector<TextSpan>& spans) {
  for (size_t i = 0; i < spans.size(); ++i) {
    const size_t at = spans[i].text.find(kAnswer);
    if (at == std::string::npos) continue;
    std::vector<TextSpan> rest(spans.begin() + static_cast<ptrdiff_t>(i), spans.end());
    rest.front().text.erase(0, at + kAnswer.size());
    return rest;
  }
  return {};
}

// What stands at the beginning, white space aside, if it is a control token.
std::optional<TokenId> first_control(std::vector<TextSpan> spans, const Tokenizer& tokenizer) {
  for (TextSpan& span : spans) {
    const size_t text = span.text.find_first_not_of(" \t\r\n");
    if (text != std::string::npos) {
      span.text.erase(0, text);
      break;
    }
    span.text.clear();
  }
  const auto ids = tokenizer.encode(spans);
  if (!ids || ids->empty() || !tokenizer.is_control(ids->front())) return std::nullopt;
  return ids->front();
}

}  // namespace

TemplateProbe probe_template(const ChatTemplate& chat_template, const Tokenizer& tokenizer) {
  TemplateProbe probe;
  const auto spans = render(chat_template, tokenizer);
  if (!spans) return probe;
  probe.turn_end = first_control(after_answer(*spans), tokenizer);
  for (const TokenId id : tokenizer.encode(*spans).value_or(std::vector<TokenId>()))
    if (tokenizer.is_control(id)) probe.control_tokens.push_back(id);
  return probe;
}

void end_turns_with(const ChatTemplate& chat_template, Tokenizer& tokenizer) {
  if (const auto end = probe_template(chat_template, tokenizer).turn_end)
    tokenizer.end_answers_with(*end, EndReason::chat_template);
}

}  // namespace octavo
