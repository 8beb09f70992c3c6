// Finds calls of tools in an answer, byte by byte, so that the parts do not depend on how the text
// was cut.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/answer_format.h"
#include "text/json_pieces.h"
#include "text/marker_finder.h"

namespace octavo {

struct ToolCall {
  std::string name;
  std::string arguments;  // a JSON object, as the model wrote it

  bool operator==(const ToolCall&) const = default;
};

// A call is told when it is complete, so each that is told can be carried out. What begins like a
// call and is none stays content, to the byte. White space around a call belongs to it.
class ToolCallParser {
 public:
  explicit ToolCallParser(ToolSyntax syntax);

  void push(std::string_view text, std::string& content, std::vector<ToolCall>& calls);
  void finish(std::string& content);  // what was held back

 private:
  enum class State : uint8_t {
    text,
    gap,     // after the marker that opens a call
    header,  // mistral: a name up to its arguments
    json,
    tail,  // hermes: up to the marker that closes a call
  };

  void push(char byte, std::string& content, std::vector<ToolCall>& calls);
  void push_text(char byte, std::string& content);
  void push_gap(char byte, std::string& content);
  void push_header(char byte, std::string& content);
  void push_json(char byte, std::string& content, std::vector<ToolCall>& calls);
  void push_tail(char byte, std::string& content);
  void begin_json();
  void show(std::string_view text, std::string& content);
  void refuse(char byte, std::string& content);
  void take(std::vector<ToolCall> found, std::string& content, std::vector<ToolCall>& calls);

  ToolSyntax syntax_;
  State state_ = State::text;
  MarkerFinder open_, close_;
  std::string spaces_;  // text: white space that belongs to a call if one follows
  std::string raw_;     // of the call so far, and the white space before it
  size_t call_begin_ = 0, json_begin_ = 0;  // in raw_: after the marker, and of the JSON
  JsonEnd json_;
  bool may_begin_ = true;    // nothing has been said but calls
  bool after_call_ = false;  // nothing has been said since a call
};

}  // namespace octavo
