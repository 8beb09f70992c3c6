// Arbitrary bytes as an answer of every format, whole and cut where the input says: the parts are
// the same, a call has a name and arguments that are a JSON object, and nothing is invented.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "text/answer_parser.h"
#include "text/json_pieces.h"

namespace {

using octavo::AnswerFormat;
using octavo::AnswerParts;

void expect(bool holds) {
  if (!holds) std::abort();
}

void add(AnswerParts& all, const AnswerParts& part) {
  all.reasoning += part.reasoning;
  all.content += part.content;
  all.calls.insert(all.calls.end(), part.calls.begin(), part.calls.end());
}

// Pieces of step bytes.
AnswerParts parse_cut(std::string_view text, const AnswerFormat& format, size_t step) {
  octavo::AnswerParser parser(format);
  AnswerParts all;
  for (size_t i = 0; i < text.size(); i += step) add(all, parser.push(text.substr(i, step)));
  add(all, parser.finish());
  return all;
}

void check(std::string_view text, const AnswerFormat& format, size_t step) {
  const AnswerParts whole = octavo::parse_answer(text, format);
  expect(parse_cut(text, format, step) == whole);
  expect(whole.reasoning.size() + whole.content.size() <= text.size());
  for (const octavo::ToolCall& call : whole.calls)
    expect(!call.name.empty() && call.arguments.starts_with('{') &&
           octavo::is_json(call.arguments));
  if (whole.calls.empty() && !format.reasoning) expect(whole.content == text);
}

}  // namespace

// The first byte chooses the formats, the second the pieces.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const auto reasonings = octavo::reasoning_formats();
  const auto tools = octavo::tool_formats();
  AnswerFormat format;
  const size_t reasoning = data[0] % (reasonings.size() + 1);
  const size_t tool = data[0] / 16 % (tools.size() + 1);
  if (reasoning < reasonings.size()) format.reasoning = &reasonings[reasoning];
  if (tool < tools.size()) format.tools = &tools[tool];
  format.begins_in_reasoning = data[1] & 64;
  format.parallel_calls = !(data[1] & 128);
  check({reinterpret_cast<const char*>(data) + 2, size - 2}, format, 1 + data[1] % 16);
  return 0;
}
