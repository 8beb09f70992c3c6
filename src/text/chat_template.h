// A model's chat template: a Jinja program that writes a conversation as one prompt. Byte-equal to
// what Transformers renders with jinja2 (trim_blocks, lstrip_blocks, immutable sandbox, loop
// controls, its own tojson). Parsed once, immutable, rendered by any number of threads at once.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/chat_traits.h"
#include "text/text_span.h"

namespace octavo {

class ChatTemplate {
 public:
  struct Input;  // text/chat_input.h

  // name: what messages call the template. Errors: template_error for what is not Jinja,
  // unsupported for what is not known here, resource_exhausted for a limit of text/jinja_limits.h;
  // all name the line.
  static Result<ChatTemplate> parse(std::string_view source, std::string name = "chat_template");

  // The prompt; neighbouring spans differ in kind. Text of the template, bos_token and eos_token
  // are template spans, everything out of messages, tools and extra is content, but for the usual
  // role names, which templates build control tokens of. Errors: template_error if the template
  // refuses ("the chat template refused the conversation: ...") or cannot work with the input,
  // invalid_argument for an input that is no text, unsupported and resource_exhausted.
  Result<std::vector<TextSpan>> render(const Input& input) const;

  const ChatTraits& traits() const;
  // False: no expression has a variable of this name, so setting it has no effect.
  bool reads(std::string_view variable) const;

  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;
  ~ChatTemplate();

 private:
  struct Program;
  explicit ChatTemplate(std::unique_ptr<const Program> program);

  std::unique_ptr<const Program> program_;
};

}  // namespace octavo
