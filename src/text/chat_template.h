// A model's chat template: a Jinja program that writes a conversation as one prompt. Byte-equal to
// what Transformers renders with jinja2 (trim_blocks, lstrip_blocks, immutable sandbox, loop
// controls, its own tojson). Parsed once, immutable, rendered by any number of threads at once.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
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

  // True if the template wants a message's content as a list of parts and cannot print a string.
  bool expects_content_parts() const;
  // True if the template shows a definition of a tool that is given to it.
  bool shows_tools() const;
  // True if the template looks at a message's tool_calls; they would be lost otherwise.
  bool shows_tool_calls() const;
  // True if the template wants a call's arguments as JSON text and cannot write an object.
  bool expects_argument_text() const;

  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;
  ~ChatTemplate();

 private:
  struct Program;
  explicit ChatTemplate(std::unique_ptr<const Program> program);

  std::unique_ptr<const Program> program_;
};

// Messages as a client sends them, in the shape that the template expects: text parts joined
// without anything between them, content as a string or as one text part; the arguments of calls,
// which clients send as JSON text, as an object. A missing content is null and allowed for the
// assistant only. invalid_argument, naming the place, for anything but a non-empty list of objects
// with a role, for parts that are no text and for calls that are none or that the template would
// not show.
Result<nlohmann::ordered_json> normalize_messages(const nlohmann::ordered_json& messages,
                                                  const ChatTemplate& chat_template);

}  // namespace octavo
