#include "text/jinja_value.h"

#include <cmath>
#include <type_traits>

#include "text/jinja_callable.h"
#include "text/jinja_print.h"

namespace octavo::jinja {
namespace {

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;

std::string number_key(double number) {
  constexpr double kExact = 9.2e18;
  if (std::floor(number) == number && std::fabs(number) < kExact)
    return "n" + std::to_string(static_cast<int64_t>(number));
  return "n" + float_repr(number);
}

// Tuples in tuples are refused: one that holds itself twice, many times over, has an endless key.
std::optional<std::string> tuple_key(const Sequence& tuple) {
  if (tuple.kind != Sequence::Kind::tuple || tuple.depth > 1) return std::nullopt;
  std::string key = "(";
  for (const Value& item : tuple.items) {
    const auto part = hash_key(item);
    if (!part) return std::nullopt;
    key += std::to_string(part->size()) + ":" + *part;
  }
  return key;
}

std::string_view sequence_name(const Sequence& sequence) {
  switch (sequence.kind) {
    case Sequence::Kind::list:
      return "list";
    case Sequence::Kind::tuple:
      return "tuple";
    case Sequence::Kind::range:
      return "range";
    case Sequence::Kind::view:
      return "dict view";
    case Sequence::Kind::iterator:
      return "generator";
  }
  return "sequence";
}

std::string_view namespace_name(const Namespace& space) {
  return space.kind == Namespace::Kind::plain    ? "Namespace"
         : space.kind == Namespace::Kind::cycler ? "Cycler"
                                                 : "Joiner";
}

}  // namespace

const Value* Dict::find(std::string_view name) const {
  const auto found = index.find("s" + std::string(name));
  return found == index.end() ? nullptr : &entries[found->second].second;
}

const Value* Dict::find(const Value& key) const {
  const auto hash = hash_key(key);
  if (!hash) return nullptr;
  const auto found = index.find(*hash);
  return found == index.end() ? nullptr : &entries[found->second].second;
}

Value* Namespace::find(std::string_view name) {
  for (auto& [field, value] : fields)
    if (field == name) return &value;
  return nullptr;
}

const Text* as_text(const Value& value) {
  const auto* text = get_if<TextPtr>(value);
  return text ? text->get() : nullptr;
}

const Sequence* as_sequence(const Value& value) {
  const auto* sequence = get_if<SequencePtr>(value);
  return sequence ? sequence->get() : nullptr;
}

const Dict* as_dict(const Value& value) {
  const auto* dict = get_if<DictPtr>(value);
  return dict ? dict->get() : nullptr;
}

bool is_iterator(const Value& value) {
  const Sequence* sequence = as_sequence(value);
  return sequence && sequence->kind == Sequence::Kind::iterator;
}

std::optional<int64_t> as_integer(const Value& value) {
  if (const auto* integer = get_if<int64_t>(value)) return *integer;
  if (const auto* boolean = get_if<bool>(value)) return *boolean ? 1 : 0;
  return std::nullopt;
}

std::optional<double> as_number(const Value& value) {
  if (const auto* number = get_if<double>(value)) return *number;
  if (const auto integer = as_integer(value)) return static_cast<double>(*integer);
  return std::nullopt;
}

Undefined undefined(std::string reason) {
  return {std::make_shared<const std::string>(std::move(reason))};
}

std::string_view type_name(const Value& value) {
  return std::visit(Overloaded{
                        [](const Undefined&) -> std::string_view { return "Undefined"; },
                        [](None) -> std::string_view { return "NoneType"; },
                        [](bool) -> std::string_view { return "bool"; },
                        [](int64_t) -> std::string_view { return "int"; },
                        [](double) -> std::string_view { return "float"; },
                        [](const TextPtr&) -> std::string_view { return "str"; },
                        [](const SequencePtr& sequence) { return sequence_name(*sequence); },
                        [](const DictPtr&) -> std::string_view { return "dict"; },
                        [](const Namespace* space) { return namespace_name(*space); },
                        [](const MacroPtr&) -> std::string_view { return "Macro"; },
                        [](const LoopPtr&) -> std::string_view { return "LoopContext"; },
                        [](const MethodPtr&) -> std::string_view { return "method"; },
                        [](const Function*) -> std::string_view { return "function"; },
                    },
                    value);
}

bool truthy(const Value& value) {
  if (is<Undefined>(value) || is<None>(value)) return false;
  if (const auto number = as_number(value)) return *number != 0;
  if (const Text* text = as_text(value)) return !text->empty();
  if (const Dict* dict = as_dict(value)) return !dict->entries.empty();
  if (const auto* loop = get_if<LoopPtr>(value)) return !(*loop)->items->items.empty();
  if (const Sequence* sequence = as_sequence(value))
    return sequence->kind == Sequence::Kind::iterator || !sequence->items.empty();
  return true;
}

int depth_of(const Value& value) {
  if (const Sequence* sequence = as_sequence(value)) return sequence->depth;
  if (const Dict* dict = as_dict(value)) return dict->depth;
  if (const auto* loop = get_if<LoopPtr>(value)) return (*loop)->depth;
  if (const auto* method = get_if<MethodPtr>(value)) return (*method)->depth;
  return 0;
}

std::optional<std::string> hash_key(const Value& value) {
  if (const Text* text = as_text(value)) return "s" + std::string(text->bytes());
  if (const auto integer = as_integer(value)) return "n" + std::to_string(*integer);
  if (const auto* number = get_if<double>(value)) return number_key(*number);
  if (is<None>(value)) return "0";
  if (is<Undefined>(value)) return "u";
  if (const Sequence* sequence = as_sequence(value)) return tuple_key(*sequence);
  return std::nullopt;
}

}  // namespace octavo::jinja
