// A parsed template. Immutable: one tree is rendered by many threads at once.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "text/jinja_callable.h"
#include "text/jinja_operators.h"
#include "text/jinja_value.h"

namespace octavo::jinja {

struct Expr;
using ExprPtr = std::unique_ptr<Expr>;

struct CallArguments {
  std::vector<ExprPtr> positional;
  std::vector<std::pair<std::string, ExprPtr>> named;
  ExprPtr more_positional, more_named;  // *expr and **expr; null if there are none
};

struct Literal {
  Value value;
};
struct Name {
  std::string name;
};
struct ListDisplay {
  Sequence::Kind kind;  // list or tuple
  std::vector<ExprPtr> items;
};
struct DictDisplay {
  std::vector<std::pair<ExprPtr, ExprPtr>> entries;
};
struct GetAttribute {
  ExprPtr object;
  std::string name;
};
struct GetItem {
  ExprPtr object, key;
};
struct GetSlice {
  ExprPtr object, start, stop, step;  // bounds are null where left out
};
struct CallExpr {
  ExprPtr callee;
  CallArguments arguments;
};
struct FilterExpr {
  ExprPtr input;  // null: the text of the enclosing {% filter %} or {% set %} block
  const Function* filter;
  CallArguments arguments;
  std::string unknown = {};  // its name, where `filter` is null: an error once it is reached
};
struct TestExpr {
  ExprPtr input;
  const Function* test;
  CallArguments arguments;
  std::string unknown = {};
};
enum class UnaryOp { negate, plus, logical_not };
struct Unary {
  UnaryOp op;
  ExprPtr operand;
};
struct Binary {
  BinaryOp op;
  ExprPtr left, right;
};
struct Logical {
  bool is_and;
  ExprPtr left, right;
};
struct Concat {
  std::vector<ExprPtr> parts;
};
struct Comparison {
  ExprPtr first;
  std::vector<std::pair<CompareOp, ExprPtr>> rest;
};
struct Conditional {
  ExprPtr test, then, otherwise;  // otherwise may be null
};

struct Expr {
  int line;
  int depth;  // 1 + the deepest part's
  std::variant<Literal, Name, ListDisplay, DictDisplay, GetAttribute, GetItem, GetSlice, CallExpr,
               FilterExpr, TestExpr, Unary, Binary, Logical, Concat, Comparison, Conditional>
      node;
};

// What an assignment writes to: a name, a namespace's field, or several of them.
struct Target {
  int line;
  std::string name;
  std::string field;          // of the namespace `name`; empty: the name itself
  std::vector<Target> items;  // not empty: unpacks into these
};

struct Statement;
using Body = std::vector<Statement>;

struct Output {
  ExprPtr expression;  // printed; template text is a Literal
};
struct If {
  std::vector<std::pair<ExprPtr, Body>> branches;
  Body otherwise;
};
struct For {
  Target target;
  ExprPtr items;
  ExprPtr filter;  // may be null
  Body body, otherwise;
  bool recursive = false;  // the body may call `loop` with further items
};
struct Set {
  Target target;
  ExprPtr value;
};
struct SetBlock {
  Target target;
  ExprPtr filter;  // may be null; its innermost input is the block's text
  Body body;
};
struct MacroDefinition {
  std::string name;
  struct Parameter {
    std::string name;
    ExprPtr otherwise;  // may be null
  };
  std::vector<Parameter> parameters;
  Body body;
  bool uses_varargs = false, uses_kwargs = false, uses_caller = false;
};
struct CallBlock {
  ExprPtr call;
  MacroDefinition caller;
};
struct FilterBlock {
  ExprPtr filter;
  Body body;
};
struct With {
  std::vector<std::pair<Target, ExprPtr>> values;
  Body body;
};
struct ScopedBlock {  // {% generation %}: only its variables are its own
  Body body;
};
struct Break {};
struct Continue {};

struct Statement {
  int line;
  std::variant<Output, If, For, Set, SetBlock, MacroDefinition, CallBlock, FilterBlock, With,
               ScopedBlock, Break, Continue>
      node;
};

}  // namespace octavo::jinja
