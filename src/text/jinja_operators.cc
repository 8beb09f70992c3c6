#include "text/jinja_operators.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "text/jinja_format.h"
#include "text/jinja_markup.h"
#include "text/jinja_strings.h"

namespace octavo::jinja {
namespace {

constexpr std::string_view kSymbols[] = {"+", "-", "*", "/", "//", "%", "**"};

tl::unexpected<Error> mismatch(Context& context, std::string_view op, const Value& left,
                               const Value& right) {
  if (const auto* missing = get_if<Undefined>(left)) return context.undefined_used(*missing);
  if (const auto* missing = get_if<Undefined>(right)) return context.undefined_used(*missing);
  return context.error(
      fmt::format("'{}' does not work on {} and {}", op, type_name(left), type_name(right)));
}

tl::unexpected<Error> too_large(Context& context) {
  return context.unsupported("an integer beyond 64 bits");
}

Result<Value> power(Context& context, int64_t base, int64_t exponent) {
  if (exponent < 0) {
    if (base == 0) return context.error("0 cannot be raised to a negative power");
    return std::pow(static_cast<double>(base), static_cast<double>(exponent));
  }
  if (base == 0 || base == 1) return exponent == 0 ? 1 : base;
  if (base == -1) return exponent % 2 == 0 ? int64_t{1} : int64_t{-1};
  int64_t result = 1;
  for (; exponent > 0; --exponent)  // at most 63 rounds: |base| >= 2
    if (__builtin_mul_overflow(result, base, &result)) return too_large(context);
  return result;
}

Result<Value> floor_divide(Context& context, int64_t a, int64_t b, bool want_remainder) {
  if (b == 0) return context.error("division by zero");
  if (b == -1) {  // INT64_MIN / -1 is the one quotient that does not fit
    if (want_remainder) return int64_t{0};
    int64_t negated;
    if (__builtin_sub_overflow(int64_t{0}, a, &negated)) return too_large(context);
    return negated;
  }
  const int64_t remainder = a % b;
  const bool adjust = remainder != 0 && (remainder < 0) != (b < 0);
  if (want_remainder) return adjust ? remainder + b : remainder;
  return a / b - (adjust ? 1 : 0);
}

Result<Value> integers(Context& context, BinaryOp op, int64_t a, int64_t b) {
  int64_t result = 0;
  bool overflow = false;
  switch (op) {
    case BinaryOp::add:
      overflow = __builtin_add_overflow(a, b, &result);
      break;
    case BinaryOp::subtract:
      overflow = __builtin_sub_overflow(a, b, &result);
      break;
    case BinaryOp::multiply:
      overflow = __builtin_mul_overflow(a, b, &result);
      break;
    case BinaryOp::divide:
      if (b == 0) return context.error("division by zero");
      return static_cast<double>(a) / static_cast<double>(b);
    case BinaryOp::floor_divide:
      return floor_divide(context, a, b, false);
    case BinaryOp::modulo:
      return floor_divide(context, a, b, true);
    case BinaryOp::power:
      return power(context, a, b);
  }
  if (overflow) return too_large(context);
  return result;
}

double float_modulo(double a, double b) {
  const double remainder = std::fmod(a, b);
  if (remainder == 0) return std::copysign(0.0, b);
  return (remainder < 0) != (b < 0) ? remainder + b : remainder;
}

Result<Value> floats(Context& context, BinaryOp op, double a, double b) {
  const bool divides =
      op == BinaryOp::divide || op == BinaryOp::floor_divide || op == BinaryOp::modulo;
  if (divides && b == 0) return context.error("division by zero");
  switch (op) {
    case BinaryOp::add:
      return a + b;
    case BinaryOp::subtract:
      return a - b;
    case BinaryOp::multiply:
      return a * b;
    case BinaryOp::divide:
      return a / b;
    case BinaryOp::floor_divide:
      return std::round((a - float_modulo(a, b)) / b);
    case BinaryOp::modulo:
      return float_modulo(a, b);
    case BinaryOp::power:
      break;
  }
  if (a < 0 && std::floor(b) != b) return context.unsupported("a complex number");
  if (a == 0 && b < 0) return context.error("0 cannot be raised to a negative power");
  return std::pow(a, b);
}

Result<Value> join_texts(Context& context, const Text& left, const Text& right) {
  OCTAVO_CHECK_OK(context.handle_bytes(left.size() + right.size()));
  Text joined = left;
  if (!left.is_markup() && right.is_markup()) {
    OCTAVO_TRY(joined, escaped(context, left));
  }
  if (left.is_markup() && !right.is_markup()) {
    OCTAVO_TRY(const Text safe, escaped(context, right));
    joined.append(safe);
  } else {
    joined.append(right);
  }
  return context.text(std::move(joined));
}

Result<Value> join_sequences(Context& context, const Sequence& left, const Sequence& right) {
  OCTAVO_CHECK_OK(context.spend(left.items.size() + right.items.size()));
  std::vector<Value> items = left.items;
  items.insert(items.end(), right.items.begin(), right.items.end());
  return context.sequence(left.kind, std::move(items));
}

// The length after repeating, refused before any of it is made.
Result<size_t> repeated_size(Context& context, size_t size, int64_t count, size_t limit) {
  const size_t times = count < 0 ? 0 : static_cast<size_t>(count);
  size_t total = 0;
  if (__builtin_mul_overflow(size, times, &total) || total > limit)
    return context.exceeded(fmt::format("a result of more than {} elements", limit));
  OCTAVO_CHECK_OK(context.spend(1 + total / 8));
  return total;
}

Result<Value> repeat(Context& context, const Value& value, int64_t count) {
  if (const Text* text = as_text(value)) {
    OCTAVO_TRY(const size_t total, repeated_size(context, text->size(), count, kMaxStringBytes));
    Text result;
    while (result.size() < total) result.append(*text);
    result.set_markup(text->is_markup());
    return context.text(std::move(result));
  }
  const Sequence& sequence = *as_sequence(value);
  OCTAVO_TRY(const size_t total, repeated_size(context, sequence.items.size(), count, kMaxItems));
  std::vector<Value> items;
  items.reserve(total);
  while (items.size() < total)
    items.insert(items.end(), sequence.items.begin(), sequence.items.end());
  return context.sequence(sequence.kind, std::move(items));
}

bool is_list_or_tuple(const Value& value) {
  const Sequence* sequence = as_sequence(value);
  return sequence &&
         (sequence->kind == Sequence::Kind::list || sequence->kind == Sequence::Kind::tuple);
}

bool repeatable(const Value& value) { return as_text(value) || is_list_or_tuple(value); }

Result<bool> same_items(Context& context, const std::vector<Value>& a,
                        const std::vector<Value>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    OCTAVO_TRY(const bool same, equals(context, a[i], b[i]));
    if (!same) return false;
  }
  return true;
}

Result<bool> same_entries(Context& context, const Dict& a, const Dict& b) {
  if (a.entries.size() != b.entries.size()) return false;
  for (const auto& [key, value] : a.entries) {
    OCTAVO_CHECK_OK(context.handle_key(key));
    const Value* other = b.find(key);
    if (!other) return false;
    OCTAVO_TRY(const bool same, equals(context, value, *other));
    if (!same) return false;
  }
  return true;
}

Result<bool> items_less(Context& context, const Sequence& a, const Sequence& b) {
  for (size_t i = 0; i < a.items.size() && i < b.items.size(); ++i) {
    OCTAVO_TRY(const bool same, equals(context, a.items[i], b.items[i]));
    if (!same) return less_than(context, a.items[i], b.items[i]);
  }
  return a.items.size() < b.items.size();
}

}  // namespace

Result<Value> binary(Context& context, BinaryOp op, const Value& left, const Value& right) {
  const auto a = as_integer(left);
  const auto b = as_integer(right);
  if (a && b) return integers(context, op, *a, *b);
  const auto x = as_number(left);
  const auto y = as_number(right);
  if (x && y) return floats(context, op, *x, *y);
  if (op == BinaryOp::add) {
    const Text* first = as_text(left);
    const Text* second = as_text(right);
    if (first && second) return join_texts(context, *first, *second);
    if (is_list_or_tuple(left) && is_list_or_tuple(right) &&
        as_sequence(left)->kind == as_sequence(right)->kind)
      return join_sequences(context, *as_sequence(left), *as_sequence(right));
  }
  if (op == BinaryOp::multiply && repeatable(left) && b) return repeat(context, left, *b);
  if (op == BinaryOp::multiply && repeatable(right) && a) return repeat(context, right, *a);
  if (op == BinaryOp::modulo && as_text(left))
    return percent_format(context, *as_text(left), right);
  return mismatch(context, kSymbols[static_cast<size_t>(op)], left, right);
}

Result<Value> negate(Context& context, const Value& value) {
  if (const auto integer = as_integer(value))
    return integers(context, BinaryOp::subtract, 0, *integer);
  if (const auto* number = get_if<double>(value)) return -*number;
  return mismatch(context, "-", value, value);
}

Result<Value> plus(Context& context, const Value& value) {
  if (const auto integer = as_integer(value)) return *integer;
  if (is<double>(value)) return value;
  return mismatch(context, "+", value, value);
}

Result<bool> equals(Context& context, const Value& left, const Value& right) {
  OCTAVO_CHECK_OK(context.spend(1));
  const auto a = as_integer(left);
  const auto b = as_integer(right);
  if (a && b) return *a == *b;
  const auto x = as_number(left);
  const auto y = as_number(right);
  if (x && y) return *x == *y;
  const Text* first = as_text(left);
  const Text* second = as_text(right);
  if (first && second) {
    if (first->size() != second->size()) return false;
    OCTAVO_CHECK_OK(context.handle_bytes(first->size()));
    return first->bytes() == second->bytes();
  }
  if (is_list_or_tuple(left) && is_list_or_tuple(right))
    return as_sequence(left)->kind == as_sequence(right)->kind
               ? same_items(context, as_sequence(left)->items, as_sequence(right)->items)
               : false;
  if (as_dict(left) && as_dict(right))
    return same_entries(context, *as_dict(left), *as_dict(right));
  if (left.index() != right.index()) return false;
  if (is<None>(left) || is<Undefined>(left)) return true;
  if (const auto* space = get_if<Namespace*>(left)) return *space == std::get<Namespace*>(right);
  if (const auto* loop = get_if<LoopPtr>(left)) return *loop == std::get<LoopPtr>(right);
  if (const auto* macro = get_if<MacroPtr>(left)) return *macro == std::get<MacroPtr>(right);
  return context.unsupported(fmt::format("comparing two values of type {}", type_name(left)));
}

Result<bool> less_than(Context& context, const Value& left, const Value& right) {
  OCTAVO_CHECK_OK(context.spend(1));
  const auto a = as_integer(left);
  const auto b = as_integer(right);
  if (a && b) return *a < *b;
  const auto x = as_number(left);
  const auto y = as_number(right);
  if (x && y) return *x < *y;
  const Text* first = as_text(left);
  const Text* second = as_text(right);
  if (first && second) {
    OCTAVO_CHECK_OK(context.handle_bytes(std::min(first->size(), second->size())));
    return first->bytes() < second->bytes();  // UTF-8 sorts as its characters
  }
  if (is_list_or_tuple(left) && is_list_or_tuple(right) &&
      as_sequence(left)->kind == as_sequence(right)->kind)
    return items_less(context, *as_sequence(left), *as_sequence(right));
  return mismatch(context, "<", left, right);
}

Result<bool> contains(Context& context, const Value& container, const Value& item) {
  if (const Text* text = as_text(container)) {
    const Text* part = as_text(item);
    if (!part) return mismatch(context, "in", item, container);
    OCTAVO_CHECK_OK(context.handle_bytes(text->size()));
    return find_part(text->bytes(), part->bytes(), 0) != std::string_view::npos;
  }
  if (const Dict* dict = as_dict(container)) {
    OCTAVO_CHECK_OK(context.handle_key(item));
    if (!hash_key(item)) return context.error(fmt::format("a {} cannot be a key", type_name(item)));
    return dict->find(item) != nullptr;
  }
  OCTAVO_TRY(const SequencePtr items, elements(context, container));
  for (const Value& candidate : items->items) {
    OCTAVO_TRY(const bool same, equals(context, candidate, item));
    if (same) return true;
  }
  return false;
}

Result<Value> replace_text(Context& context, const Text& text, const Text& from, const Text& to,
                           int64_t limit) {
  OCTAVO_CHECK_OK(context.handle_bytes(text.size() + from.size()));
  const size_t matches = count_replacements(text, from.bytes(), limit);
  OCTAVO_CHECK_OK(context.handle_matches(matches));
  const size_t bytes = text.size() - matches * from.size() + matches * to.size();
  if (bytes > kMaxStringBytes)
    return context.exceeded(fmt::format("a string of more than {} bytes", kMaxStringBytes));
  OCTAVO_CHECK_OK(context.handle_bytes(bytes));
  return context.text(replace(text, from.bytes(), to, limit));
}

Result<bool> compare(Context& context, CompareOp op, const Value& left, const Value& right) {
  switch (op) {
    case CompareOp::equal:
      return equals(context, left, right);
    case CompareOp::not_equal:
      return equals(context, left, right).map(std::logical_not<>());
    case CompareOp::less:
      return less_than(context, left, right);
    case CompareOp::greater:
      return less_than(context, right, left);
    case CompareOp::less_equal:
    case CompareOp::greater_equal:
      break;
    case CompareOp::in:
      return contains(context, right, left);
    case CompareOp::not_in:
      return contains(context, right, left).map(std::logical_not<>());
  }
  // Not the negation of `>`: NaN is neither below, above nor equal.
  const bool less = op == CompareOp::less_equal;
  OCTAVO_TRY(const bool below, less_than(context, less ? left : right, less ? right : left));
  return below ? Result<bool>(true) : equals(context, left, right);
}

}  // namespace octavo::jinja
