// Methods of lists, dicts, loops and cyclers: Python's and Jinja's names and parameters.
#include <fmt/format.h>

#include "text/jinja_callable.h"
#include "text/jinja_operators.h"

namespace octavo::jinja {
namespace {

const Dict& self_dict(const Call& call) { return *as_dict(call.self); }

Result<Value> do_get(const Call& call) {
  const Value& key = *call.arguments[0];
  OCTAVO_CHECK_OK(call.context.handle_key(key));
  if (!hash_key(key))
    return call.context.error(fmt::format("a {} cannot be a key", type_name(key)));
  if (const Value* item = self_dict(call).find(key)) return *item;
  return call.arguments[1] ? *call.arguments[1] : Value(None{});
}

Result<Value> dict_view(const Call& call, bool keys, bool values) {
  std::vector<Value> items;
  for (const auto& [key, value] : self_dict(call).entries) {
    if (keys && values) {
      OCTAVO_TRY(Value pair, call.context.sequence(Sequence::Kind::tuple, {key, value}));
      items.push_back(std::move(pair));
    } else {
      items.push_back(keys ? key : value);
    }
  }
  return call.context.sequence(Sequence::Kind::view, std::move(items));
}
Result<Value> do_keys(const Call& call) { return dict_view(call, true, false); }
Result<Value> do_values(const Call& call) { return dict_view(call, false, true); }
Result<Value> do_items(const Call& call) { return dict_view(call, true, true); }

Result<Value> do_dict_copy(const Call& call) { return call.context.dict(self_dict(call).entries); }

Result<Value> do_list_copy(const Call& call) {
  return call.context.sequence(Sequence::Kind::list, as_sequence(call.self)->items);
}

Result<Value> do_list_count(const Call& call) {
  int64_t count = 0;
  for (const Value& item : as_sequence(call.self)->items) {
    OCTAVO_TRY(const bool same, equals(call.context, item, *call.arguments[0]));
    count += same;
  }
  return count;
}

Result<Value> do_list_index(const Call& call) {
  const auto& items = as_sequence(call.self)->items;
  for (size_t i = 0; i < items.size(); ++i) {
    OCTAVO_TRY(const bool same, equals(call.context, items[i], *call.arguments[0]));
    if (same) return static_cast<int64_t>(i);
  }
  return call.context.error("the item is not in the list");
}

Result<Value> do_cycle(const Call& call) {
  const auto& choices = call.arguments.all().positional;
  if (choices.empty()) return call.context.error("loop.cycle() needs something to choose from");
  return choices[std::get<LoopPtr>(call.self)->index % choices.size()];
}

// True unless the values are those of the call before.
Result<Value> do_changed(const Call& call) {
  const Loop& loop = *std::get<LoopPtr>(call.self);
  const auto& values = call.arguments.all().positional;
  bool same = loop.has_seen && loop.last_seen->size() == values.size();
  for (size_t i = 0; same && i < values.size(); ++i) {
    OCTAVO_TRY(same, equals(call.context, (*loop.last_seen)[i], values[i]));
  }
  loop.has_seen = true;
  if (!same) *loop.last_seen = values;
  return !same;
}

Namespace& self_cycler(const Call& call) { return *std::get<Namespace*>(call.self); }

Result<Value> do_next(const Call& call) {
  Namespace& cycler = self_cycler(call);
  Value current = cycler.items[cycler.position];
  cycler.position = (cycler.position + 1) % cycler.items.size();
  return current;
}

Result<Value> do_reset(const Call& call) {
  self_cycler(call).position = 0;
  return None{};
}

constexpr Function kDictMethods[] = {
    {"get", "key default", 1, do_get},  {"keys", "", 0, do_keys},
    {"values", "", 0, do_values},       {"items", "", 0, do_items},
    {"copy", "", 0, do_dict_copy},      {"fromkeys", "*", 0},
    {"clear", "*", 0, nullptr, true},   {"pop", "*", 0, nullptr, true},
    {"popitem", "*", 0, nullptr, true}, {"setdefault", "*", 0, nullptr, true},
    {"update", "*", 0, nullptr, true},
};

constexpr Function kListMethods[] = {
    {"copy", "", 0, do_list_copy},        {"count", "value", 1, do_list_count},
    {"index", "value", 1, do_list_index}, {"append", "*", 0, nullptr, true},
    {"clear", "*", 0, nullptr, true},     {"extend", "*", 0, nullptr, true},
    {"insert", "*", 0, nullptr, true},    {"pop", "*", 0, nullptr, true},
    {"remove", "*", 0, nullptr, true},    {"reverse", "*", 0, nullptr, true},
    {"sort", "*", 0, nullptr, true},
};

constexpr Function kTupleMethods[] = {{"count", "value", 1, do_list_count},
                                      {"index", "value", 1, do_list_index}};
constexpr Function kLoopMethods[] = {{"cycle", "*", 0, do_cycle}, {"changed", "*", 0, do_changed}};
constexpr Function kCyclerMethods[] = {{"next", "", 0, do_next}, {"reset", "", 0, do_reset}};

std::span<const Function> methods_of(const Value& object) {
  if (as_text(object)) return text_methods();
  if (as_dict(object)) return kDictMethods;
  if (is<LoopPtr>(object)) return kLoopMethods;
  if (const auto* space = get_if<Namespace*>(object))
    return (*space)->kind == Namespace::Kind::cycler ? std::span<const Function>(kCyclerMethods)
                                                     : std::span<const Function>();
  const Sequence* sequence = as_sequence(object);
  if (sequence && sequence->kind == Sequence::Kind::list) return kListMethods;
  if (sequence && sequence->kind == Sequence::Kind::tuple) return kTupleMethods;
  return {};
}

}  // namespace

const Function* find_method(const Value& object, std::string_view name) {
  return find_function(methods_of(object), name);
}

}  // namespace octavo::jinja
