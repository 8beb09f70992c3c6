// What a template computes with: Python's values as far as templates meet them. All are immutable
// but Namespace and the position of an iterator. Values made while rendering die with the rendering
// (jinja_context.h).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "text/jinja_text.h"

namespace octavo::jinja {

struct Sequence;
struct Dict;
struct Namespace;
struct Macro;
struct Loop;
struct BoundMethod;
struct Function;

// Falsy, prints as nothing, has no elements; any other use is an error that gives the reason.
struct Undefined {
  std::shared_ptr<const std::string> reason;  // null: nothing known
};
struct None {};

using TextPtr = std::shared_ptr<const Text>;
using SequencePtr = std::shared_ptr<const Sequence>;
using DictPtr = std::shared_ptr<const Dict>;
using MacroPtr = std::shared_ptr<const Macro>;
using LoopPtr = std::shared_ptr<const Loop>;
using MethodPtr = std::shared_ptr<const BoundMethod>;

// Namespaces can contain themselves, so the rendering owns them and values only point to them.
using Value = std::variant<Undefined, None, bool, int64_t, double, TextPtr, SequencePtr, DictPtr,
                           Namespace*, MacroPtr, LoopPtr, MethodPtr, const Function*>;

struct Sequence {
  // iterator: can be walked once and has no length, as Python's generators; view: dict.keys() and
  // its like.
  enum class Kind { list, tuple, range, view, iterator };
  Kind kind;
  std::vector<Value> items;
  mutable size_t next = 0;  // iterator: items before it are used up
  int depth = 1;            // 1 + the deepest element's
};

// Keeps the order of insertion. Keys are compared as Python compares them: 1, 1.0 and true are one
// key.
struct Dict {
  std::vector<std::pair<Value, Value>> entries;
  std::unordered_map<std::string, size_t> index;  // hash_key() to entry
  int depth = 1;

  const Value* find(std::string_view name) const;  // by a string key
  const Value* find(const Value& key) const;       // null also for a key that cannot be one
};

struct Namespace {
  std::vector<std::pair<std::string, Value>> fields;
  Value* find(std::string_view name);
};

// The variable `loop`. Its position moves while a template can hold it.
struct Loop {
  SequencePtr items;
  mutable size_t index = 0;
  int depth = 1;
};

struct BoundMethod {
  Value self;
  const Function* function;
  int depth = 1;
};

template <class T>
const T* get_if(const Value& value) {
  return std::get_if<T>(&value);
}
template <class T>
bool is(const Value& value) {
  return std::holds_alternative<T>(value);
}
const Text* as_text(const Value& value);          // null if not a string
const Sequence* as_sequence(const Value& value);  // null if not a sequence
const Dict* as_dict(const Value& value);
bool is_iterator(const Value& value);

// The value as a whole number: integers and booleans.
std::optional<int64_t> as_integer(const Value& value);
// The value as a number: integers, booleans, floats.
std::optional<double> as_number(const Value& value);

Undefined undefined(std::string reason);

std::string_view type_name(const Value& value);  // as Python names it: "str", "NoneType"
bool truthy(const Value& value);
int depth_of(const Value& value);
// A string equal for equal keys and different for others; unset if the value cannot be a key
// (lists, dicts).
std::optional<std::string> hash_key(const Value& value);

}  // namespace octavo::jinja
