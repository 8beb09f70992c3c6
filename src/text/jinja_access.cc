#include "text/jinja_access.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "text/jinja_callable.h"
#include "text/jinja_strings.h"

namespace octavo::jinja {
namespace {

Value no_attribute(const Value& object, std::string_view name) {
  return undefined(
      fmt::format("a {} has no attribute '{}'", type_name(object), name.substr(0, 80)));
}

Result<Value> neighbour(const Loop& loop, size_t index, std::string_view which) {
  if (index < loop.items->items.size()) return loop.items->items[index];
  return Value(undefined(fmt::format("there is no {} item", which)));
}

Result<Value> loop_attribute(const Loop& loop, const Value& object, std::string_view name) {
  const auto count = static_cast<int64_t>(loop.items->items.size());
  const auto index = static_cast<int64_t>(loop.index);
  if (name == "index") return index + 1;
  if (name == "index0") return index;
  if (name == "revindex") return count - index;
  if (name == "revindex0") return count - index - 1;
  if (name == "first") return index == 0;
  if (name == "last") return index + 1 == count;
  if (name == "length") return count;
  if (name == "depth") return int64_t{loop.level} + 1;
  if (name == "depth0") return int64_t{loop.level};
  if (name == "previtem") return neighbour(loop, loop.index - 1, "previous");
  if (name == "nextitem") return neighbour(loop, loop.index + 1, "next");
  return no_attribute(object, name);
}

// A method, a field of a namespace or a property of a loop; unset if there is none.
Result<std::optional<Value>> own_attribute(Context& context, const Value& object,
                                           std::string_view name) {
  if (const Function* method = find_method(object, name)) {
    if (method->mutates)
      return Value(undefined(
          fmt::format("'{}' would change a {}, which templates may not", name, type_name(object))));
    return context.method(object, *method);
  }
  if (const auto* space = get_if<Namespace*>(object)) {
    OCTAVO_CHECK_OK(context.spend((*space)->fields.size() / 8));
    if (const Value* field = (*space)->find(name)) return *field;
  }
  if (const auto* space = get_if<Namespace*>(object);
      space && (*space)->kind == Namespace::Kind::cycler && name == "current")
    return (*space)->items[(*space)->position];
  if (const Sequence* group = as_sequence(object); group && group->is_group) {
    if (name == "grouper") return group->items[0];
    if (name == "list") return group->items[1];
  }
  if (const auto* loop = get_if<LoopPtr>(object)) return loop_attribute(**loop, object, name);
  return std::nullopt;
}

Result<Value> by_index(Context& context, const Value& object, int64_t index) {
  const Text* text = as_text(object);
  const Sequence* sequence = as_sequence(object);
  const bool indexed = text || (sequence && sequence->kind != Sequence::Kind::view &&
                                sequence->kind != Sequence::Kind::iterator);
  if (!indexed) return Value(undefined(fmt::format("a {} has no items", type_name(object))));
  if (text) OCTAVO_CHECK_OK(context.handle_bytes(text->size()));
  const auto size =
      static_cast<int64_t>(text ? count_chars(text->bytes()) : sequence->items.size());
  const int64_t at = index < 0 ? index + size : index;
  if (at < 0 || at >= size)
    return Value(undefined(fmt::format("a {} has no item {}", type_name(object), index)));
  if (sequence) return sequence->items[static_cast<size_t>(at)];
  return context.text(slice_chars(*text, at, at + 1, 1));
}

struct Range {
  int64_t start, stop, step;
};

Result<int64_t> bound_or(Context& context, const Value& value, int64_t otherwise) {
  if (is<None>(value)) return otherwise;
  if (const auto integer = as_integer(value)) return *integer;
  return context.error(fmt::format("a slice needs ints, not a {}", type_name(value)));
}

// Python's slice.indices(size).
Result<Range> resolve(Context& context, const SliceBounds& bounds, int64_t size) {
  OCTAVO_TRY(int64_t step, bound_or(context, bounds.step, 1));
  if (step == 0) return context.error("the step of a slice cannot be 0");
  step = std::clamp(step, -size - 1, size + 1);
  const int64_t low = step > 0 ? 0 : -1;
  const int64_t high = step > 0 ? size : size - 1;
  const auto place = [&](int64_t at) { return std::clamp(at < 0 ? at + size : at, low, high); };
  OCTAVO_TRY(int64_t start, bound_or(context, bounds.start, 0));
  OCTAVO_TRY(int64_t stop, bound_or(context, bounds.stop, 0));
  start = is<None>(bounds.start) ? (step > 0 ? low : high) : place(start);
  stop = is<None>(bounds.stop) ? (step > 0 ? high : low) : place(stop);
  return Range{start, stop, step};
}

}  // namespace

Result<Value> get_attribute(Context& context, const Value& object, std::string_view name) {
  if (const auto* missing = get_if<Undefined>(object)) return context.undefined_used(*missing);
  OCTAVO_TRY(std::optional<Value> own, own_attribute(context, object, name));
  if (own) return std::move(*own);
  if (const Dict* dict = as_dict(object))
    if (const Value* item = dict->find(name)) return *item;
  return no_attribute(object, name);
}

Result<Value> get_item(Context& context, const Value& object, const Value& key) {
  if (const auto* missing = get_if<Undefined>(object)) return context.undefined_used(*missing);
  if (const Dict* dict = as_dict(object)) {
    OCTAVO_CHECK_OK(context.handle_key(key));
    if (const Value* item = dict->find(key)) return *item;
  }
  if (const auto index = as_integer(key); index && !as_dict(object))
    return by_index(context, object, *index);
  const Text* name = as_text(key);
  if (!name) return Value(undefined(fmt::format("a {} has no such item", type_name(object))));
  OCTAVO_TRY(std::optional<Value> own, own_attribute(context, object, name->bytes()));
  return own ? std::move(*own) : no_attribute(object, name->bytes());
}

Result<Value> get_slice(Context& context, const Value& object, const SliceBounds& bounds) {
  if (const auto* missing = get_if<Undefined>(object)) return context.undefined_used(*missing);
  if (const Text* text = as_text(object)) {
    OCTAVO_CHECK_OK(context.handle_bytes(16 * text->size()));
    OCTAVO_TRY(const Range range,
               resolve(context, bounds, static_cast<int64_t>(count_chars(text->bytes()))));
    return context.text(slice_chars(*text, range.start, range.stop, range.step));
  }
  const Sequence* sequence = as_sequence(object);
  if (!sequence || sequence->kind == Sequence::Kind::view ||
      sequence->kind == Sequence::Kind::iterator)
    return context.error(fmt::format("a {} cannot be sliced", type_name(object)));
  OCTAVO_TRY(const Range range,
             resolve(context, bounds, static_cast<int64_t>(sequence->items.size())));
  std::vector<Value> items;
  for (int64_t i = range.start; range.step > 0 ? i < range.stop : i > range.stop; i += range.step)
    items.push_back(sequence->items[static_cast<size_t>(i)]);
  return context.sequence(sequence->kind, std::move(items));
}

Result<Value> get_path(Context& context, const Value& object, const Value& path) {
  const Text* text = as_text(path);
  if (!text) return get_item(context, object, path);
  OCTAVO_CHECK_OK(context.handle_bytes(text->size()));
  Value at = object;
  for (const Text& part : split(*text, ".", -1, false)) {
    int64_t index = 0;
    const std::string_view name = part.bytes();
    const auto [end, bad] = std::from_chars(name.data(), name.data() + name.size(), index);
    const bool number = bad == std::errc() && end == name.data() + name.size() && name[0] != '-';
    OCTAVO_TRY(const Value key, number ? Result<Value>(index) : context.text(part));
    OCTAVO_TRY(at, get_item(context, at, key));
  }
  return at;
}

}  // namespace octavo::jinja
