// What may follow `is`, and the names that select() and its kin take.
#include <fmt/format.h>

#include "text/jinja_callable.h"
#include "text/jinja_operators.h"
#include "text/jinja_print.h"
#include "text/jinja_strings.h"

namespace octavo::jinja {
namespace {

template <class... T>
Result<Value> is_one_of(const Call& call) {
  return (is<T>(call.self) || ...);
}

Result<Value> is_defined(const Call& call) { return !is<Undefined>(call.self); }

template <bool wanted>
Result<Value> is_exactly(const Call& call) {
  const auto* boolean = get_if<bool>(call.self);
  return boolean && *boolean == wanted;
}

Result<Value> is_sequence(const Call& call) {
  const Sequence* sequence = as_sequence(call.self);
  const bool indexed = sequence && sequence->kind != Sequence::Kind::iterator &&
                       sequence->kind != Sequence::Kind::view;
  return indexed || is<TextPtr>(call.self) || is<DictPtr>(call.self) || is<Undefined>(call.self);
}

// The remainder as Python has it: never negative for a positive divisor.
Result<Value> remainder_is(const Call& call, const Value& divisor, int64_t wanted) {
  OCTAVO_TRY(const Value rest, binary(call.context, BinaryOp::modulo, call.self, divisor));
  OCTAVO_TRY(const bool same, equals(call.context, rest, Value(wanted)));
  return same;
}
Result<Value> is_even(const Call& call) { return remainder_is(call, Value(int64_t{2}), 0); }
Result<Value> is_odd(const Call& call) { return remainder_is(call, Value(int64_t{2}), 1); }
Result<Value> is_divisible(const Call& call) { return remainder_is(call, *call.arguments[0], 0); }

template <CompareOp op>
Result<Value> compares(const Call& call) {
  OCTAVO_TRY(const bool holds, compare(call.context, op, call.self, *call.arguments[0]));
  return holds;
}

// True if there are cased characters and all of them have the case.
template <bool (*wanted)(char32_t), bool (*other)(char32_t)>
Result<Value> has_case(const Call& call) {
  OCTAVO_TRY(const Text text, to_text(call.context, call.self));
  OCTAVO_CHECK_OK(call.context.handle_bytes(text.size()));
  bool found = false;
  for (size_t at = 0; at < text.size(); at += char_bytes(text.bytes()[at])) {
    const char32_t c = decode_char(text.bytes(), at);
    if (other(c)) return false;
    found |= wanted(c);
  }
  return found;
}

template <class T>
bool same_object(const Value& a, const Value& b) {
  return is<T>(a) && is<T>(b) && std::get<T>(a) == std::get<T>(b);
}

// Identity means something only for objects and for the values that exist once.
Result<Value> is_same(const Call& call) {
  const Value& other = *call.arguments[0];
  if (is<None>(call.self) || is<None>(other)) return call.self.index() == other.index();
  const auto* a = get_if<bool>(call.self);
  const auto* b = get_if<bool>(other);
  if (a || b) return a && b && *a == *b;
  if (call.self.index() != other.index()) return false;
  if (is<TextPtr>(other) || as_number(other) || is<Undefined>(other))
    return call.context.unsupported(fmt::format("'sameas' of a {}", type_name(other)));
  return same_object<DictPtr>(call.self, other) || same_object<SequencePtr>(call.self, other) ||
         same_object<Namespace*>(call.self, other) || same_object<MacroPtr>(call.self, other) ||
         same_object<LoopPtr>(call.self, other);
}

Result<Value> is_callable(const Call& call) {
  const auto* space = get_if<Namespace*>(call.self);
  return is<Undefined>(call.self) || is<MacroPtr>(call.self) || is<MethodPtr>(call.self) ||
         is<const Function*>(call.self) || is<LoopPtr>(call.self) ||
         (space && (*space)->kind == Namespace::Kind::joiner);
}

Result<Value> is_escaped(const Call& call) {
  const Text* text = as_text(call.self);
  return text && text->is_markup();
}

template <const Function* (*find)(std::string_view)>
Result<Value> is_name_of(const Call& call) {
  const Text* name = as_text(call.self);
  return name && find(name->bytes());
}

constexpr auto is_iterable = is_one_of<TextPtr, SequencePtr, DictPtr, LoopPtr, Undefined>;

constexpr Function kTests[] = {
    {"defined", "", 0, is_defined},
    {"undefined", "", 0, is_one_of<Undefined>},
    {"none", "", 0, is_one_of<None>},
    {"boolean", "", 0, is_one_of<bool>},
    {"true", "", 0, is_exactly<true>},
    {"false", "", 0, is_exactly<false>},
    {"integer", "", 0, is_one_of<int64_t>},
    {"float", "", 0, is_one_of<double>},
    {"number", "", 0, is_one_of<bool, int64_t, double>},
    {"string", "", 0, is_one_of<TextPtr>},
    {"mapping", "", 0, is_one_of<DictPtr>},
    {"sequence", "", 0, is_sequence},
    {"iterable", "", 0, is_iterable},
    {"callable", "", 0, is_callable},
    {"escaped", "", 0, is_escaped},
    {"sameas", "other", 1, is_same},
    {"lower", "", 0, has_case<is_lower, is_upper>},
    {"upper", "", 0, has_case<is_upper, is_lower>},
    {"odd", "", 0, is_odd},
    {"even", "", 0, is_even},
    {"divisibleby", "num", 1, is_divisible},
    {"filter", "", 0, is_name_of<find_filter>},
    {"test", "", 0, is_name_of<find_test>},
    {"in", "seq", 1, compares<CompareOp::in>},
    {"==", "b", 1, compares<CompareOp::equal>},
    {"eq", "b", 1, compares<CompareOp::equal>},
    {"equalto", "b", 1, compares<CompareOp::equal>},
    {"!=", "b", 1, compares<CompareOp::not_equal>},
    {"ne", "b", 1, compares<CompareOp::not_equal>},
    {">", "b", 1, compares<CompareOp::greater>},
    {"gt", "b", 1, compares<CompareOp::greater>},
    {"greaterthan", "b", 1, compares<CompareOp::greater>},
    {">=", "b", 1, compares<CompareOp::greater_equal>},
    {"ge", "b", 1, compares<CompareOp::greater_equal>},
    {"<", "b", 1, compares<CompareOp::less>},
    {"lt", "b", 1, compares<CompareOp::less>},
    {"lessthan", "b", 1, compares<CompareOp::less>},
    {"<=", "b", 1, compares<CompareOp::less_equal>},
    {"le", "b", 1, compares<CompareOp::less_equal>},
};

}  // namespace

const Function* find_test(std::string_view name) { return find_function(kTests, name); }

}  // namespace octavo::jinja
