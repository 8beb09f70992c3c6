#include "text/builtin_templates.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <vector>

namespace octavo {
namespace {

// Roles that a family has no turn for are refused, so that no message is left out in silence.

constexpr std::string_view kAlpaca = R"({%- for m in messages -%}
  {%- if m.role == 'system' -%}{{ (m.content or '') ~ '\n\n' }}
  {%- elif m.role == 'user' -%}{{ '### Instruction:\n' ~ (m.content or '') ~ '\n\n' }}
  {%- elif m.role == 'assistant' -%}{{ '### Response:\n' ~ (m.content or '') ~ eos_token ~ '\n\n' }}
  {%- else -%}{{ raise_exception('this template has no turn for the role ' ~ m.role) }}
  {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ '### Response:\n' }}{%- endif -%})";

// Qwen, SmolLM, Yi and many fine-tuned models.
constexpr std::string_view kChatml = R"({%- for m in messages -%}
  {{- '<|im_start|>' ~ m.role ~ '\n' ~ (m.content or '') ~ '<|im_end|>\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ '<|im_start|>assistant\n' }}{%- endif -%})";

// Gemma knows no system: its text goes before the first question.
constexpr std::string_view kGemma = R"({{- bos_token -}}
{%- set turns = messages -%}
{%- set opening = '' -%}
{%- if messages[0].role == 'system' -%}
  {%- set opening = (messages[0].content or '') ~ '\n\n' -%}
  {%- set turns = messages[1:] -%}
{%- endif -%}
{%- for m in turns -%}
  {%- if m.role == 'user' -%}
    {{- '<start_of_turn>user\n' ~ (opening if loop.first else '') ~ (m.content or '') | trim ~ '<end_of_turn>\n' -}}
  {%- elif m.role == 'assistant' -%}
    {{- '<start_of_turn>model\n' ~ (m.content or '') | trim ~ '<end_of_turn>\n' -}}
  {%- else -%}
    {{- raise_exception('this template has no turn for the role ' ~ m.role) -}}
  {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ '<start_of_turn>model\n' }}{%- endif -%})";

constexpr std::string_view kGranite = R"({%- for m in messages -%}
  {{- '<|start_of_role|>' ~ m.role ~ '<|end_of_role|>' ~ (m.content or '') ~ '<|end_of_text|>\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ '<|start_of_role|>assistant<|end_of_role|>' }}{%- endif -%})";

// Each pair of question and answer is a text of its own. A system text stands inside the first
// question.
constexpr std::string_view kLlama2 = R"({%- set turns = messages -%}
{%- set opening = '' -%}
{%- if messages[0].role == 'system' -%}
  {%- set opening = '<<SYS>>\n' ~ (messages[0].content or '') ~ '\n<</SYS>>\n\n' -%}
  {%- set turns = messages[1:] -%}
{%- endif -%}
{%- for m in turns -%}
  {%- if m.role == 'user' -%}
    {{- bos_token ~ '[INST] ' ~ (opening if loop.first else '') ~ (m.content or '') | trim ~ ' [/INST]' -}}
  {%- elif m.role == 'assistant' -%}
    {{- ' ' ~ (m.content or '') | trim ~ ' ' ~ eos_token -}}
  {%- else -%}
    {{- raise_exception('this template has no turn for the role ' ~ m.role) -}}
  {%- endif -%}
{%- endfor -%})";

constexpr std::string_view kLlama3 = R"({{- bos_token -}}
{%- for m in messages -%}
  {{- '<|start_header_id|>' ~ m.role ~ '<|end_header_id|>\n\n' ~ (m.content or '') | trim ~ '<|eot_id|>' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{%- endif -%})";

// Mistral and Mixtral; a system text goes before the first question.
constexpr std::string_view kMistral = R"({{- bos_token -}}
{%- set turns = messages -%}
{%- set opening = '' -%}
{%- if messages[0].role == 'system' -%}
  {%- set opening = (messages[0].content or '') ~ '\n\n' -%}
  {%- set turns = messages[1:] -%}
{%- endif -%}
{%- for m in turns -%}
  {%- if m.role == 'user' -%}
    {{- '[INST] ' ~ (opening if loop.first else '') ~ (m.content or '') ~ ' [/INST]' -}}
  {%- elif m.role == 'assistant' -%}
    {{- ' ' ~ (m.content or '') | trim ~ eos_token -}}
  {%- else -%}
    {{- raise_exception('this template has no turn for the role ' ~ m.role) -}}
  {%- endif -%}
{%- endfor -%})";

constexpr std::string_view kOlmo2 = R"({{- bos_token -}}
{%- for m in messages -%}
  {%- if m.role == 'assistant' -%}{{ '<|assistant|>\n' ~ (m.content or '') ~ eos_token ~ ('' if loop.last else '\n') }}
  {%- else -%}{{ '<|' ~ m.role ~ '|>\n' ~ (m.content or '') ~ '\n' }}
  {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ '<|assistant|>\n' }}{%- endif -%})";

constexpr std::string_view kPhi3 = R"({%- for m in messages -%}
  {{- '<|' ~ m.role ~ '|>\n' ~ (m.content or '') ~ '<|end|>\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ '<|assistant|>\n' }}{%- endif -%})";

constexpr std::string_view kVicuna = R"({%- for m in messages -%}
  {%- if m.role == 'system' -%}{{ (m.content or '') ~ ' ' }}
  {%- elif m.role == 'user' -%}{{ 'USER: ' ~ (m.content or '') ~ ' ' }}
  {%- elif m.role == 'assistant' -%}{{ 'ASSISTANT: ' ~ (m.content or '') ~ eos_token }}
  {%- else -%}{{ raise_exception('this template has no turn for the role ' ~ m.role) }}
  {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ 'ASSISTANT:' }}{%- endif -%})";

constexpr std::string_view kZephyr = R"({%- for m in messages -%}
  {{- '<|' ~ m.role ~ '|>\n' ~ (m.content or '') ~ eos_token ~ '\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ '<|assistant|>\n' }}{%- endif -%})";

constexpr std::array kTemplates = {
    BuiltinTemplate{"alpaca", "", kAlpaca},
    BuiltinTemplate{"chatml", "<|im_start|>", kChatml},
    BuiltinTemplate{"gemma", "<start_of_turn>", kGemma},
    BuiltinTemplate{"granite", "<|start_of_role|>", kGranite},
    BuiltinTemplate{"llama2", "", kLlama2},
    BuiltinTemplate{"llama3", "<|start_header_id|>", kLlama3},
    BuiltinTemplate{"mistral", "[INST]", kMistral},
    BuiltinTemplate{"olmo2", "", kOlmo2},
    BuiltinTemplate{"phi3", "<|end|>", kPhi3},
    BuiltinTemplate{"vicuna", "", kVicuna},
    BuiltinTemplate{"zephyr", "", kZephyr},
};

}  // namespace

std::span<const BuiltinTemplate> builtin_templates() { return kTemplates; }

const BuiltinTemplate* find_builtin_template(std::string_view name) {
  const auto found = std::find_if(kTemplates.begin(), kTemplates.end(),
                                  [&](const BuiltinTemplate& t) { return t.name == name; });
  return found == kTemplates.end() ? nullptr : &*found;
}

std::string builtin_template_names() {
  std::vector<std::string_view> names;
  for (const BuiltinTemplate& t : kTemplates) names.push_back(t.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string template_advice(const Tokenizer& tokenizer) {
  std::string advice =
      fmt::format("give it one with --chat-template, a file or the name of a built-in one ({})",
                  builtin_template_names());
  for (const BuiltinTemplate& t : kTemplates)
    if (!t.marker.empty() && tokenizer.find_control(t.marker))
      return fmt::format("{}; {} fits: the vocabulary has {}", advice, t.name, t.marker);
  return advice;
}

}  // namespace octavo
