#include "text/builtin_templates.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "support/paths.h"
#include "text/chat_input.h"
#include "text/chat_template.h"

namespace octavo {
namespace {

using Json = nlohmann::ordered_json;

ChatTemplate builtin(std::string_view name) {
  auto parsed = ChatTemplate::parse(find_builtin_template(name)->source, std::string(name));
  EXPECT_TRUE(parsed) << name << ": " << parsed.error().message;
  return std::move(*parsed);
}

Result<std::string> rendered(std::string_view name, const Json& messages) {
  ChatTemplate::Input input;
  input.messages = messages;
  input.add_generation_prompt = true;
  input.bos_token = "<s>";
  input.eos_token = "</s>";
  OCTAVO_TRY(const std::vector<TextSpan> spans, builtin(name).render(input));
  std::string text;
  for (const TextSpan& span : spans) text += span.text;
  return text;
}

const Json kTurns = {{{"role", "system"}, {"content", "Be brief."}},
                     {{"role", "user"}, {"content", "Hi"}},
                     {{"role", "assistant"}, {"content", "Hello."}},
                     {{"role", "user"}, {"content", "Bye"}}};

// What the models of each family were trained on.
TEST(BuiltinTemplates, WriteTheTurnsOfTheirFamilies) {
  const std::map<std::string, std::string> expected = {
      {"alpaca",
       "Be brief.\n\n### Instruction:\nHi\n\n### Response:\nHello.</s>\n\n### "
       "Instruction:\nBye\n\n### Response:\n"},
      {"chatml",
       "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n"
       "<|im_start|>assistant\nHello.<|im_end|>\n<|im_start|>user\nBye<|im_end|>\n"
       "<|im_start|>assistant\n"},
      {"gemma",
       "<s><start_of_turn>user\nBe brief.\n\nHi<end_of_turn>\n<start_of_turn>model\n"
       "Hello.<end_of_turn>\n<start_of_turn>user\nBye<end_of_turn>\n<start_of_turn>model\n"},
      {"granite",
       "<|start_of_role|>system<|end_of_role|>Be brief.<|end_of_text|>\n"
       "<|start_of_role|>user<|end_of_role|>Hi<|end_of_text|>\n"
       "<|start_of_role|>assistant<|end_of_role|>Hello.<|end_of_text|>\n"
       "<|start_of_role|>user<|end_of_role|>Bye<|end_of_text|>\n"
       "<|start_of_role|>assistant<|end_of_role|>"},
      {"llama2",
       "<s>[INST] <<SYS>>\nBe brief.\n<</SYS>>\n\nHi [/INST] Hello. </s><s>[INST] Bye [/INST]"},
      {"llama3",
       "<s><|start_header_id|>system<|end_header_id|>\n\nBe brief.<|eot_id|>"
       "<|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>"
       "<|start_header_id|>assistant<|end_header_id|>\n\nHello.<|eot_id|>"
       "<|start_header_id|>user<|end_header_id|>\n\nBye<|eot_id|>"
       "<|start_header_id|>assistant<|end_header_id|>\n\n"},
      {"mistral", "<s>[INST] Be brief.\n\nHi [/INST] Hello.</s>[INST] Bye [/INST]"},
      {"olmo2",
       "<s><|system|>\nBe brief.\n<|user|>\nHi\n<|assistant|>\nHello.</s>\n<|user|>\nBye\n"
       "<|assistant|>\n"},
      {"phi3",
       "<|system|>\nBe brief.<|end|>\n<|user|>\nHi<|end|>\n<|assistant|>\nHello.<|end|>\n"
       "<|user|>\nBye<|end|>\n<|assistant|>\n"},
      {"vicuna", "Be brief. USER: Hi ASSISTANT: Hello.</s>USER: Bye ASSISTANT:"},
      {"zephyr",
       "<|system|>\nBe brief.</s>\n<|user|>\nHi</s>\n<|assistant|>\nHello.</s>\n<|user|>\nBye</s>\n"
       "<|assistant|>\n"}};
  ASSERT_EQ(expected.size(), builtin_templates().size());
  for (const auto& [name, text] : expected) {
    const auto prompt = rendered(name, kTurns);
    ASSERT_TRUE(prompt) << name << ": " << prompt.error().message;
    EXPECT_EQ(*prompt, text) << name;
  }
}

// Whatever the template: a message is in the prompt, or the conversation is refused.
TEST(BuiltinTemplates, LeaveNoMessageOut) {
  for (const BuiltinTemplate& t : builtin_templates())
    for (const std::string role : {"system", "tool", "developer"}) {
      const auto prompt = rendered(t.name, {{{"role", "user"}, {"content", "Hi"}},
                                            {{"role", role}, {"content", "remember the milk"}},
                                            {{"role", "user"}, {"content", "Bye"}}});
      if (prompt)
        EXPECT_NE(prompt->find("remember the milk"), std::string::npos) << t.name << ", " << role;
      else
        EXPECT_EQ(prompt.error().code, ErrorCode::template_error);
    }
}

// The models' own templates, of conversations that any of them can have.
TEST(BuiltinTemplates, EqualTheTemplatesOfModelsThatHaveOne) {
  const std::map<std::string, std::string> own = {{"chatml", "chat_corpus/templates/chatml.jinja"},
                                                  {"gemma", "chat_corpus/templates/gemma2.jinja"},
                                                  {"llama3", "chat_corpus/templates/llama3.jinja"},
                                                  {"llama2", "chat_corpus/templates/llama2.jinja"},
                                                  {"olmo2", "chat_corpus/templates/olmo2.jinja"}};
  const Json messages = {{{"role", "user"}, {"content", " What is\n\n2 + 2? "}},
                         {{"role", "assistant"}, {"content", "4"}},
                         {{"role", "user"}, {"content", "Stra\u00dfe <|x|>"}}};
  for (const auto& [name, path] : own) {
    const auto reference = ChatTemplate::parse(testing::read_file(testing::test_data(path)));
    ASSERT_TRUE(reference) << path;
    ChatTemplate::Input input;
    input.messages = messages;
    input.add_generation_prompt = true;
    input.bos_token = "<s>";
    input.eos_token = "</s>";
    const auto spans = reference->render(input);
    ASSERT_TRUE(spans) << spans.error().message;
    std::string text;
    for (const TextSpan& span : *spans) text += span.text;
    EXPECT_EQ(*rendered(name, messages), text) << name;
  }
}

TEST(BuiltinTemplates, AreFoundByName) {
  EXPECT_EQ(find_builtin_template("llama4"), nullptr);
  EXPECT_EQ(find_builtin_template(""), nullptr);
  EXPECT_EQ(find_builtin_template("gemma")->marker, "<start_of_turn>");
  EXPECT_NE(builtin_template_names().find("chatml, gemma"), std::string::npos);
}

}  // namespace
}  // namespace octavo
