// An answer as its parts: reasoning, content and calls of tools. It knows nothing of how they are
// sent.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/answer_format.h"
#include "text/reasoning_splitter.h"
#include "text/tool_call_parser.h"

namespace octavo {

struct AnswerFormat {
  const ReasoningFormat* reasoning = nullptr;  // nullptr: not looked for
  bool begins_in_reasoning = false;
  const ToolFormat* tools = nullptr;
  bool parallel_calls = true;  // else the first call alone is kept

  bool is_plain() const { return !reasoning && !tools; }
};

struct AnswerParts {
  std::string reasoning, content;
  std::vector<ToolCall> calls;

  bool operator==(const AnswerParts&) const = default;
};

class AnswerParser {
 public:
  explicit AnswerParser(const AnswerFormat& format);

  // What the answer gained; the gains together are those of the whole text, however it was cut.
  AnswerParts push(std::string_view text);
  AnswerParts finish();

  // Bytes of the answer so far that are reasoning, markers included.
  size_t reasoning_bytes() const { return reasoning_ ? reasoning_->block_bytes() : 0; }

 private:
  void add_content(std::string_view text, AnswerParts& parts);

  bool parallel_calls_;
  size_t num_calls_ = 0;
  std::optional<ReasoningSplitter> reasoning_;
  std::optional<ToolCallParser> tools_;
};

AnswerParts parse_answer(std::string_view text, const AnswerFormat& format);

}  // namespace octavo
