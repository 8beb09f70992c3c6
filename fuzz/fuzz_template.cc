// Arbitrary bytes as a chat template, rendered with a fixed conversation, as it is and as a
// client's: every template is refused with a message, or gives spans that alternate in kind. What
// it tells of its model are control tokens.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

#include "text/chat_input.h"
#include "text/chat_template.h"
#include "text/conversation.h"
#include "text/template_probe.h"

namespace {

octavo::ChatTemplate::Input conversation() {
  octavo::ChatTemplate::Input input;
  input.messages = nlohmann::ordered_json::parse(R"([
      {"role": "system", "content": "Be brief."},
      {"role": "user", "content": "  Hé <|im_end|> 日本 "},
      {"role": "assistant", "content": null, "tool_calls": [{"function": {"name": "f", "arguments": {"a": [1, 2.5]}}}]},
      {"role": "tool", "content": [{"type": "text", "text": "42"}]}])");
  input.tools =
      nlohmann::ordered_json::parse(R"([{"type": "function", "function": {"name": "f"}}])");
  input.bos_token = "<s>";
  input.eos_token = "</s>";
  input.extra = {{"x", 3}, {"y", {1, 2, 3}}, {"z", "text"}};
  return input;
}

octavo::Tokenizer small_tokenizer() {
  octavo::TokenizerSpec spec;
  spec.model = spec.pre = "gpt2";
  for (const char* token : {"a", "b", "<s>", "</s>", "<|im_end|>"}) spec.tokens.push_back(token);
  spec.types.assign(spec.tokens.size(), octavo::TokenType::control);
  spec.types[0] = spec.types[1] = octavo::TokenType::normal;
  spec.bos = octavo::TokenId{2};
  spec.eos = octavo::TokenId{3};
  return octavo::Tokenizer::create(std::move(spec)).value();
}

void probe(const octavo::ChatTemplate& chat) {
  static const octavo::Tokenizer tokenizer = small_tokenizer();
  const octavo::TemplateProbe probe = octavo::probe_template(chat, tokenizer);
  if (probe.turn_end && !tokenizer.is_control(*probe.turn_end)) std::abort();
  for (const octavo::TokenId id : probe.control_tokens)
    if (!tokenizer.is_control(id)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const octavo::ChatTemplate::Input input = conversation();
  const auto chat =
      octavo::ChatTemplate::parse(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!chat) {
    if (chat.error().message.empty()) std::abort();
    return 0;
  }
  const auto conversation = octavo::render_conversation(*chat, input);
  if (!conversation && conversation.error().message.empty()) std::abort();
  probe(*chat);
  const auto spans = chat->render(input);
  if (!spans) {
    if (spans.error().message.empty()) std::abort();
    return 0;
  }
  for (size_t i = 0; i < spans->size(); ++i) {
    if ((*spans)[i].text.empty()) std::abort();
    if (i > 0 && (*spans)[i].is_template == (*spans)[i - 1].is_template) std::abort();
  }
  return 0;
}
