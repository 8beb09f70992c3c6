#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "text/jinja_access.h"
#include "text/jinja_filters.h"
#include "text/jinja_operators.h"
#include "text/jinja_print.h"
#include "text/jinja_strings.h"

namespace octavo::jinja {
namespace {

using Kind = Sequence::Kind;

Result<Value> do_length(const Call& call) {
  if (const Text* text = as_text(call.self)) {
    OCTAVO_CHECK_OK(call.context.handle_bytes(text->size()));
    return static_cast<int64_t>(count_chars(text->bytes()));
  }
  const Dict* dict = as_dict(call.self);
  const Sequence* sequence = as_sequence(call.self);
  if (dict) return static_cast<int64_t>(dict->entries.size());
  if (sequence && sequence->kind != Kind::iterator)
    return static_cast<int64_t>(sequence->items.size());
  if (is<Undefined>(call.self)) return int64_t{0};
  return call.context.error(fmt::format("a {} has no length", type_name(call.self)));
}

Result<Value> do_list(const Call& call) {
  OCTAVO_TRY(const SequencePtr items, elements(call.context, call.self));
  return call.context.sequence(Kind::list, items->items);
}

Result<Value> do_first(const Call& call) {
  if (is_iterator(call.self)) {
    const Sequence& iterator = *as_sequence(call.self);
    if (iterator.next < iterator.items.size()) return iterator.items[iterator.next++];
  } else if (const Text* text = as_text(call.self); text && !text->empty()) {
    Text character;  // as Python walks: no markup
    character.append(*text, 0, char_bytes(text->bytes()[0]));
    return call.context.text(std::move(character));
  } else {
    OCTAVO_TRY(const SequencePtr items, elements(call.context, call.self));
    if (!items->items.empty()) return items->items.front();
  }
  return Value(undefined("the first item of nothing"));
}

Result<Value> do_last(const Call& call) {
  if (is_iterator(call.self)) return call.context.error("a generator has no last item");
  if (const Text* text = as_text(call.self); text && !text->empty())
    return call.context.text(text->slice(previous_char(text->bytes(), text->size()), text->size()));
  OCTAVO_TRY(const SequencePtr items, elements(call.context, call.self));
  if (!items->items.empty()) return items->items.back();
  return Value(undefined("the last item of nothing"));
}

Result<Value> do_reverse(const Call& call) {
  if (const Text* text = as_text(call.self)) {
    OCTAVO_CHECK_OK(call.context.handle_bytes(text->size()));
    return call.context.text(reverse(*text));
  }
  const bool was_iterator = is_iterator(call.self);
  OCTAVO_TRY(const SequencePtr items, elements(call.context, call.self));
  std::vector<Value> reversed(items->items.rbegin(), items->items.rend());
  return call.context.sequence(was_iterator ? Kind::list : Kind::iterator, std::move(reversed));
}

Result<Value> do_join(const Call& call) {
  Text separator;
  if (call.arguments[0]) {
    OCTAVO_TRY(separator, to_text(call.context, *call.arguments[0]));
  }
  OCTAVO_TRY(const SequencePtr items, elements(call.context, call.self));
  Text joined;
  for (size_t i = 0; i < items->items.size(); ++i) {
    Value item = items->items[i];
    if (call.arguments.given(1)) {
      OCTAVO_TRY(item, get_path(call.context, item, *call.arguments[1]));
    }
    OCTAVO_TRY(const Text piece, to_text(call.context, item));
    if (i > 0) OCTAVO_CHECK_OK(call.context.append(joined, separator));
    OCTAVO_CHECK_OK(call.context.append(joined, piece));
  }
  return call.context.text(std::move(joined));
}

Result<Value> pairs_of(Context& context, const Dict& dict, Kind kind) {
  std::vector<Value> pairs;
  for (const auto& [key, value] : dict.entries) {
    OCTAVO_TRY(Value pair, context.sequence(Kind::tuple, {key, value}));
    pairs.push_back(std::move(pair));
  }
  return context.sequence(kind, std::move(pairs));
}

Result<Value> do_items(const Call& call) {
  if (is<Undefined>(call.self)) return call.context.sequence(Kind::iterator, {});
  if (const Dict* dict = as_dict(call.self)) return pairs_of(call.context, *dict, Kind::iterator);
  return call.context.error(fmt::format("a {} has no items", type_name(call.self)));
}

// What sort, unique, min and max compare: the item or its attribute, strings in lower case unless
// told otherwise.
Result<Value> sort_key(const Call& call, const Value& item, const Value* attribute,
                       bool case_sensitive) {
  Value key = item;
  if (attribute && !is<None>(*attribute)) {
    OCTAVO_TRY(key, get_path(call.context, item, *attribute));
  }
  const Text* text = as_text(key);
  if (case_sensitive || !text) return key;
  OCTAVO_CHECK_OK(call.context.handle_bytes(16 * text->size()));
  return call.context.text(change_case(*text, Case::lower));
}

struct Keyed {
  std::vector<Value> keys;
  Value item;
};

// Stable, as Python's sort, in both directions.
Result<Value> sort_keyed(const Call& call, std::vector<Keyed> rows, bool descending) {
  Result<void> status;
  const auto key_less = [&](const Value& a, const Value& b) {
    if (!status) return false;
    const Result<bool> less = less_than(call.context, a, b);
    if (!less) status = tl::make_unexpected(less.error());
    return less.value_or(false);
  };
  std::stable_sort(rows.begin(), rows.end(), [&](const Keyed& a, const Keyed& b) {
    const Keyed& low = descending ? b : a;
    const Keyed& high = descending ? a : b;
    for (size_t i = 0; i < low.keys.size(); ++i) {
      if (key_less(low.keys[i], high.keys[i])) return true;
      if (key_less(high.keys[i], low.keys[i])) return false;
    }
    return false;
  });
  OCTAVO_CHECK_OK(status);
  std::vector<Value> items;
  for (Keyed& row : rows) items.push_back(std::move(row.item));
  return call.context.sequence(Kind::list, std::move(items));
}

// The comma-separated attributes of sort(); one null entry for the item itself.
Result<std::vector<std::optional<Value>>> sort_attributes(const Call& call,
                                                          const Value* attribute) {
  std::vector<std::optional<Value>> attributes;
  const Text* names = attribute ? as_text(*attribute) : nullptr;
  if (!names) {
    attributes.push_back(attribute ? std::optional(*attribute) : std::nullopt);
    return attributes;
  }
  OCTAVO_CHECK_OK(call.context.handle_bytes(names->size()));
  for (const Text& name : split(*names, ",", -1, false)) {
    OCTAVO_TRY(Value value, call.context.text(name));
    attributes.emplace_back(std::move(value));
  }
  return attributes;
}

Result<Value> do_sort(const Call& call) {
  OCTAVO_TRY(const SequencePtr items, elements(call.context, call.self));
  OCTAVO_TRY(const auto attributes, sort_attributes(call, call.arguments[2]));
  std::vector<Keyed> rows;
  for (const Value& item : items->items) {
    Keyed row{{}, item};
    for (const auto& attribute : attributes) {
      OCTAVO_TRY(Value key, sort_key(call, item, attribute ? &*attribute : nullptr,
                                     boolean_or(call, 1, false)));
      row.keys.push_back(std::move(key));
    }
    rows.push_back(std::move(row));
  }
  return sort_keyed(call, std::move(rows), boolean_or(call, 0, false));
}

Result<Value> do_dictsort(const Call& call) {
  const Dict* dict = as_dict(call.self);
  if (!dict) return call.context.error(fmt::format("dictsort of a {}", type_name(call.self)));
  bool by_value = false;
  if (call.arguments[1]) {
    OCTAVO_TRY(const Text* by, text_argument(call, 1));
    by_value = by->bytes() == "value";
    if (!by_value && by->bytes() != "key")
      return call.context.error("dictsort sorts by 'key' or 'value'");
  }
  std::vector<Keyed> rows;
  for (const auto& [key, value] : dict->entries) {
    OCTAVO_TRY(Value pair, call.context.sequence(Kind::tuple, {key, value}));
    OCTAVO_TRY(Value by,
               sort_key(call, by_value ? value : key, nullptr, boolean_or(call, 0, false)));
    rows.push_back({{std::move(by)}, std::move(pair)});
  }
  return sort_keyed(call, std::move(rows), boolean_or(call, 2, false));
}

Result<Value> do_unique(const Call& call) {
  OCTAVO_TRY(const SequencePtr items, elements(call.context, call.self));
  std::set<std::string> seen;
  std::vector<Value> unique;
  for (const Value& item : items->items) {
    OCTAVO_TRY(const Value key,
               sort_key(call, item, call.arguments[1], boolean_or(call, 0, false)));
    OCTAVO_CHECK_OK(call.context.handle_key(key));
    const auto hash = hash_key(key);
    if (!hash) return call.context.error(fmt::format("a {} cannot be hashed", type_name(key)));
    if (seen.insert(*hash).second) unique.push_back(item);
  }
  return call.context.sequence(Kind::iterator, std::move(unique));
}

Result<Value> extreme(const Call& call, bool largest) {
  OCTAVO_TRY(const SequencePtr items, elements(call.context, call.self));
  std::optional<std::pair<Value, Value>> best;  // key, item
  for (const Value& item : items->items) {
    OCTAVO_TRY(Value key, sort_key(call, item, call.arguments[1], boolean_or(call, 0, false)));
    bool better = !best;
    if (best) {
      OCTAVO_TRY(better,
                 less_than(call.context, largest ? best->first : key, largest ? key : best->first));
    }
    if (better) best.emplace(std::move(key), item);
  }
  return best ? std::move(best->second) : Value(undefined("the extreme of nothing"));
}
Result<Value> do_min(const Call& call) { return extreme(call, false); }
Result<Value> do_max(const Call& call) { return extreme(call, true); }

Result<Value> do_sum(const Call& call) {
  OCTAVO_TRY(const SequencePtr items, elements(call.context, call.self));
  Value total = call.arguments[1] ? *call.arguments[1] : Value(int64_t{0});
  if (as_text(total)) return call.context.error("sum() of strings; use join");
  for (Value item : items->items) {
    if (call.arguments.given(0)) {
      OCTAVO_TRY(item, get_path(call.context, item, *call.arguments[0]));
    }
    OCTAVO_TRY(total, binary(call.context, BinaryOp::add, total, item));
  }
  return total;
}

// The arguments that are left for a filter or test named by an argument.
Arguments arguments_from(const Arguments& all, size_t first) {
  Arguments rest;
  for (size_t i = first; i < all.positional.size(); ++i)
    rest.positional.push_back(all.positional[i]);
  rest.named = all.named;
  return rest;
}

Result<const Function*> named_function(const Call& call, size_t position, std::string_view kind,
                                       const Function* (*find)(std::string_view)) {
  const Text* name = as_text(call.arguments.all().positional[position]);
  const Function* function = name ? find(name->bytes()) : nullptr;
  if (function) return function;
  return call.context.unsupported(
      fmt::format("unknown {} '{}'", kind, name ? name->bytes().substr(0, 80) : "(not a string)"));
}

Result<Value> map_attribute(const Call& call, const SequencePtr& items) {
  const Value* attribute = nullptr;
  const Value* otherwise = nullptr;
  for (const auto& [name, value] : call.arguments.all().named) {
    if (name != "attribute" && name != "default")
      return call.context.error(fmt::format("'map' has no parameter '{}'", name));
    (name == "attribute" ? attribute : otherwise) = &value;
  }
  if (!attribute) return call.context.error("'map' needs a filter's name or an attribute");
  std::vector<Value> mapped;
  for (const Value& item : items->items) {
    OCTAVO_TRY(Value found, get_path(call.context, item, *attribute));
    const bool missing = otherwise && !is<None>(*otherwise) && is<Undefined>(found);
    mapped.push_back(missing ? *otherwise : std::move(found));
  }
  return call.context.sequence(Kind::iterator, std::move(mapped));
}

// map, select and their kin make nothing of what is false, be it a list or not.
Result<SequencePtr> elements_or_none(const Call& call) {
  if (!truthy(call.self)) return std::make_shared<const Sequence>();
  return elements(call.context, call.self);
}

Result<Value> do_map(const Call& call) {
  OCTAVO_TRY(const SequencePtr items, elements_or_none(call));
  const Arguments& all = call.arguments.all();
  if (all.positional.empty()) return map_attribute(call, items);
  OCTAVO_TRY(const Function* filter, named_function(call, 0, "filter", find_filter));
  const Arguments arguments = arguments_from(all, 1);
  std::vector<Value> mapped;
  for (const Value& item : items->items) {
    OCTAVO_TRY(Value result, invoke(call.context, *filter, item, arguments));
    mapped.push_back(std::move(result));
  }
  return call.context.sequence(Kind::iterator, std::move(mapped));
}

// select, reject: by the item; selectattr, rejectattr: by the attribute named first.
Result<Value> pick(const Call& call, bool by_attribute, bool keep) {
  OCTAVO_TRY(const SequencePtr items, elements_or_none(call));
  const Arguments& all = call.arguments.all();
  const size_t test_at = by_attribute ? 1 : 0;
  if (all.positional.size() < test_at) return call.context.error("an attribute's name is missing");
  const Function* test = nullptr;
  if (all.positional.size() > test_at) {
    OCTAVO_TRY(test, named_function(call, test_at, "test", find_test));
  }
  const Arguments arguments = arguments_from(all, test_at + 1);
  std::vector<Value> picked;
  for (const Value& item : items->items) {
    OCTAVO_TRY(Value tested, by_attribute ? get_path(call.context, item, all.positional[0])
                                          : Result<Value>(item));
    if (test) {
      OCTAVO_TRY(tested, invoke(call.context, *test, tested, arguments));
    }
    if (truthy(tested) == keep) picked.push_back(item);
  }
  return call.context.sequence(Kind::iterator, std::move(picked));
}
Result<Value> do_select(const Call& call) { return pick(call, false, true); }
Result<Value> do_reject(const Call& call) { return pick(call, false, false); }
Result<Value> do_selectattr(const Call& call) { return pick(call, true, true); }
Result<Value> do_rejectattr(const Call& call) { return pick(call, true, false); }

constexpr Function kSequenceFilters[] = {
    {"count", "", 0, do_length},
    {"dictsort", "case_sensitive by reverse", 0, do_dictsort},
    {"first", "", 0, do_first},
    {"items", "", 0, do_items},
    {"join", "d attribute", 0, do_join},
    {"last", "", 0, do_last},
    {"length", "", 0, do_length},
    {"list", "", 0, do_list},
    {"map", "*", 0, do_map},
    {"max", "case_sensitive attribute", 0, do_max},
    {"min", "case_sensitive attribute", 0, do_min},
    {"reject", "*", 0, do_reject},
    {"rejectattr", "*", 0, do_rejectattr},
    {"reverse", "", 0, do_reverse},
    {"select", "*", 0, do_select},
    {"selectattr", "*", 0, do_selectattr},
    {"sort", "reverse case_sensitive attribute", 0, do_sort},
    {"sum", "attribute start", 0, do_sum},
    {"unique", "case_sensitive attribute", 0, do_unique},
};

}  // namespace

std::span<const Function> sequence_filters() { return kSequenceFilters; }

}  // namespace octavo::jinja
