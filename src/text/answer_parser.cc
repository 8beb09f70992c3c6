#include "text/answer_parser.h"

#include <iterator>
#include <utility>

namespace octavo {

AnswerParser::AnswerParser(const AnswerFormat& format) : parallel_calls_(format.parallel_calls) {
  if (format.reasoning) reasoning_.emplace(*format.reasoning, format.begins_in_reasoning);
  if (format.tools) tools_.emplace(format.tools->syntax);
}

AnswerParts AnswerParser::push(std::string_view text) {
  AnswerParts parts;
  std::string rest;
  if (reasoning_) {
    reasoning_->push(text, parts.reasoning, rest);
    text = rest;
  }
  add_content(text, parts);
  return parts;
}

AnswerParts AnswerParser::finish() {
  AnswerParts parts;
  std::string rest;
  if (reasoning_) reasoning_->finish(parts.reasoning, rest);
  add_content(rest, parts);
  if (tools_) tools_->finish(parts.content);
  return parts;
}

void AnswerParser::add_content(std::string_view text, AnswerParts& parts) {
  if (!tools_) {
    parts.content += text;
    return;
  }
  tools_->push(text, parts.content, parts.calls);
  const size_t room = parallel_calls_ ? parts.calls.size() : size_t{num_calls_ == 0};
  if (parts.calls.size() > room) parts.calls.resize(room);
  num_calls_ += parts.calls.size();
}

AnswerParts parse_answer(std::string_view text, const AnswerFormat& format) {
  AnswerParser parser(format);
  AnswerParts parts = parser.push(text);
  AnswerParts rest = parser.finish();
  parts.reasoning += rest.reasoning;
  parts.content += rest.content;
  std::move(rest.calls.begin(), rest.calls.end(), std::back_inserter(parts.calls));
  return parts;
}

}  // namespace octavo
