// What a template computes with: Python's values as far as templates meet them. All are immutable
// but Namespace and the position of an iterator. Values made while rendering die with the rendering
// (jinja_context.h).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
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
struct For;
struct Scope;

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
  bool is_group = false;    // a tuple that groupby() made: its items are called grouper and list
};

// Keeps the order of insertion. Keys are compared as Python compares them: 1, 1.0 and true are one
// key.
struct Dict {
  std::vector<std::pair<Value, Value>> entries;
  // hash_key() to entry. Ordered: a conversation could choose names that all hash alike.
  std::map<std::string, size_t> index;
  int depth = 1;

  const Value* find(std::string_view name) const;  // by a string key
  const Value* find(const Value& key) const;       // null also for a key that cannot be one
};

// What a template can change: a namespace(), and the cycler() and joiner() of Jinja.
struct Namespace {
  enum class Kind { plain, cycler, joiner };
  std::vector<std::pair<std::string, Value>> fields;
  Kind kind = Kind::plain;
  std::vector<Value> items = {};  // of a cycler; the joiner's text
  size_t position = 0;            // of a cycler
  bool used = false;              // of a joiner
  Value* find(std::string_view name);
};

// The variable `loop`. Its position moves while a template can hold it.
struct Loop {
  SequencePtr items;
  mutable size_t index = 0;
  int depth = 1;
  int level = 0;  // loops that called this one
  // Of a recursive loop, for calling it again; null for others.
  mutable const For* statement = nullptr;
  mutable std::shared_ptr<Scope> scope = nullptr;
  std::vector<Value>* last_seen = nullptr;  // by loop.changed(); the rendering owns it
  mutable bool has_seen = false;
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
