#include "text/chat_template.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>

#include "text/chat_input.h"
#include "text/jinja_eval.h"
#include "text/jinja_json.h"
#include "text/jinja_parser.h"

namespace octavo {
namespace {

using Json = nlohmann::ordered_json;
using jinja::Context;
using jinja::Value;

// Roles that no user invents. Some templates write '<|' + role + '|>', so these must be able to
// become control tokens.
constexpr std::string_view kRoles[] = {"system", "developer", "user",     "assistant",
                                       "tool",   "model",     "function", "ipython"};

bool is_usual_role(std::string_view role) {
  return std::find(std::begin(kRoles), std::end(kRoles), role) != std::end(kRoles);
}

// The message with its role marked as the template's text, if it is a usual one.
Result<Value> trust_role(Context& context, const Value& message) {
  const jinja::Dict* dict = jinja::as_dict(message);
  const Value* role = dict ? dict->find("role") : nullptr;
  const jinja::Text* text = role ? jinja::as_text(*role) : nullptr;
  if (!text || !is_usual_role(text->bytes())) return message;
  auto entries = dict->entries;
  for (auto& [key, value] : entries) {
    const jinja::Text* name = jinja::as_text(key);
    if (!name || name->bytes() != "role") continue;
    OCTAVO_TRY(value, context.text(text->bytes(), true));
  }
  return context.dict(std::move(entries));
}

Result<Value> messages_value(Context& context, const Json& messages) {
  OCTAVO_TRY(Value all, jinja::from_json(context, messages, "messages"));
  const jinja::Sequence* list = jinja::as_sequence(all);
  if (!list) return all;
  std::vector<Value> trusted;
  for (const Value& message : list->items) {
    OCTAVO_TRY(Value item, trust_role(context, message));
    trusted.push_back(std::move(item));
  }
  return context.sequence(jinja::Sequence::Kind::list, std::move(trusted));
}

Result<void> add_token(Context& context, jinja::Evaluator::Variables& variables,
                       std::string_view name, const std::string& token) {
  if (token.empty()) return {};
  OCTAVO_TRY(Value value, context.text(token, true));
  variables.emplace_back(name, std::move(value));
  return {};
}

Result<void> add_extra(Context& context, jinja::Evaluator::Variables& variables,
                       const Json& extra) {
  constexpr std::string_view kReserved[] = {"messages", "tools", "add_generation_prompt"};
  if (extra.is_null()) return {};
  if (!extra.is_object())
    return fail(ErrorCode::invalid_argument, "chat_template_kwargs must be an object");
  for (const auto& [name, json] : extra.items()) {
    if (std::find(std::begin(kReserved), std::end(kReserved), name) != std::end(kReserved))
      return fail(
          ErrorCode::invalid_argument,
          fmt::format("chat_template_kwargs cannot set '{}'; the request has a field for it",
                      name));
    OCTAVO_TRY(Value value, jinja::from_json(context, json, "chat_template_kwargs." + name));
    variables.emplace_back(name, std::move(value));
  }
  return {};
}

// The variables that Transformers gives to a template. Later ones replace earlier ones of the same
// name.
Result<jinja::Evaluator::Variables> variables_of(Context& context,
                                                 const ChatTemplate::Input& input) {
  jinja::Evaluator::Variables variables;
  OCTAVO_TRY(Value messages, messages_value(context, input.messages));
  OCTAVO_TRY(Value tools, jinja::from_json(context, input.tools, "tools"));
  variables.emplace_back("messages", std::move(messages));
  variables.emplace_back("tools", std::move(tools));
  variables.emplace_back("documents", jinja::None{});
  variables.emplace_back("add_generation_prompt", input.add_generation_prompt);
  OCTAVO_CHECK_OK(add_token(context, variables, "bos_token", input.bos_token));
  OCTAVO_CHECK_OK(add_token(context, variables, "eos_token", input.eos_token));
  for (const auto& [name, token] : input.more_tokens)
    OCTAVO_CHECK_OK(add_token(context, variables, name, token));
  OCTAVO_CHECK_OK(add_extra(context, variables, input.extra));
  return variables;
}

Result<std::vector<TextSpan>> render_body(const jinja::Body& body, std::string_view name,
                                          const ChatTemplate::Input& input,
                                          uint64_t max_steps = jinja::kMaxSteps) {
  Context context(name, input.now_s, max_steps, input.stop);
  OCTAVO_TRY(auto variables, variables_of(context, input));
  jinja::Evaluator evaluator(context, std::move(variables));
  OCTAVO_TRY(const jinja::Text text, evaluator.render(body));
  return text.spans();
}

constexpr uint64_t kProbeSteps = 500'000;  // published templates take below 1000 for one message

// What it writes; empty: it refuses.
std::string render_probe(const jinja::Body& body, const Json& messages, const Json& tools) {
  ChatTemplate::Input input;
  input.messages = messages;
  input.tools = tools;
  input.bos_token = input.eos_token = "<probe>";
  std::string text;
  if (const auto spans = render_body(body, "probe", input, kProbeSteps))
    for (const TextSpan& span : *spans) text += span.text;
  return text;
}

}  // namespace

struct ChatTemplate::Program {
  std::string name;
  jinja::Body body;
  ChatTraits traits;
  std::set<std::string, std::less<>> variables;
};

ChatTemplate::ChatTemplate(std::unique_ptr<const Program> program) : program_(std::move(program)) {}
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;
ChatTemplate::~ChatTemplate() = default;

Result<ChatTemplate> ChatTemplate::parse(std::string_view source, std::string name) {
  OCTAVO_TRY(jinja::ParsedTemplate parsed, jinja::parse_template(source, name));
  const ChatProbe render = [&parsed](const Json& messages, const Json& tools) {
    return render_probe(parsed.body, messages, tools);
  };
  Program program{.name = std::move(name),
                  .body = {},
                  .traits = find_chat_traits(source, render),
                  .variables = std::move(parsed.variables)};
  program.body = std::move(parsed.body);
  return ChatTemplate(std::make_unique<const Program>(std::move(program)));
}

Result<std::vector<TextSpan>> ChatTemplate::render(const Input& input) const {
  return render_body(program_->body, program_->name, input);
}

const ChatTraits& ChatTemplate::traits() const { return program_->traits; }

bool ChatTemplate::reads(std::string_view variable) const {
  return program_->variables.find(variable) != program_->variables.end();
}

}  // namespace octavo
