#include "llm/requests.h"

namespace octavo {

RunItem request_of(const LoadedEngine& engine, const Prompt& prompt, const SamplingParams& params) {
  Request request{.prompt_token_ids = {},
                  .params = params,
                  .priority = prompt.priority,
                  .cache_salt = prompt.cache_salt,
                  .adapter = prompt.adapter};
  const auto* text = std::get_if<std::string>(&prompt.content);
  if (!text) {
    request.prompt_token_ids = std::get<std::vector<TokenId>>(prompt.content);
    return {std::move(request), {}, params.n};
  }
  auto ids = engine.tokenizer->encode(*text, {.parse_special = false, .add_special = true});
  if (!ids) return {tl::make_unexpected(ids.error()), *text, params.n};
  request.prompt_token_ids = std::move(*ids);
  return {std::move(request), *text, params.n};
}

RunItem request_of(const LoadedEngine& engine, const nlohmann::ordered_json& messages,
                   const ChatOptions& chat, const SamplingParams& params, TemplateExtras extras) {
  if (!chat.tools.empty()) {
    auto tools = parse_tools(chat.tools);
    if (!tools) return {tl::make_unexpected(tools.error()), {}, params.n};
    extras.tools = std::move(*tools);
  }
  auto prompt = render_chat(engine, messages, chat, extras);
  if (!prompt) return {tl::make_unexpected(prompt.error()), {}, params.n};
  return {Request{.prompt_token_ids = std::move(prompt->ids),
                  .params = params,
                  .priority = 0,
                  .cache_salt = {}},
          std::move(prompt->text), params.n, std::move(prompt->warnings)};
}

void fill_outputs(RequestOutput& output, int num_choices) {
  if (!output.embedding.empty()) return;  // it has no choices
  const int wanted = num_choices >= 1 && num_choices <= kMaxChoices ? num_choices : 1;
  const FinishReason reason = output.error ? FinishReason::error : FinishReason::abort;
  for (int i = static_cast<int>(output.outputs.size()); i < wanted; ++i) {
    output.outputs.emplace_back().index = i;
    output.outputs.back().finish_reason = reason;
  }
}

}  // namespace octavo
