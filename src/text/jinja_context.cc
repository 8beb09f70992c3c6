#include "text/jinja_context.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "text/jinja_callable.h"
#include "text/jinja_unicode.h"

namespace octavo::jinja {
namespace {

constexpr uint64_t kStringOverhead = 96;  // headers of a Text, its marks and its allocations
constexpr uint64_t kEntryOverhead = 128;  // of a Dict's entry: its hash node and key

Result<int> one_deeper(const Context& context, int depth) {
  if (depth >= kMaxValueDepth)
    return context.exceeded(fmt::format("more than {} lists inside each other", kMaxValueDepth));
  return depth + 1;
}

Result<SequencePtr> characters(Context& context, const Text& text) {
  std::vector<Value> items;
  for (size_t at = 0; at < text.size();) {
    const size_t end = at + char_bytes(text.bytes()[at]);
    Text character;  // as Python walks: no markup
    character.append(text, at, end);
    OCTAVO_TRY(Value one, context.text(std::move(character)));
    items.push_back(std::move(one));
    at = end;
  }
  OCTAVO_TRY(const Value list, context.sequence(Sequence::Kind::list, std::move(items)));
  return std::get<SequencePtr>(list);
}

Result<SequencePtr> keys(Context& context, const Dict& dict) {
  std::vector<Value> items;
  for (const auto& entry : dict.entries) items.push_back(entry.first);
  OCTAVO_TRY(const Value list, context.sequence(Sequence::Kind::list, std::move(items)));
  return std::get<SequencePtr>(list);
}

Result<SequencePtr> rest(Context& context, const Sequence& iterator) {
  const auto begin = iterator.items.begin() + static_cast<std::ptrdiff_t>(iterator.next);
  std::vector<Value> items(begin, iterator.items.end());
  iterator.next = iterator.items.size();
  OCTAVO_TRY(const Value list, context.sequence(Sequence::Kind::list, std::move(items)));
  return std::get<SequencePtr>(list);
}

}  // namespace

tl::unexpected<Error> located(ErrorCode code, std::string_view name, std::string_view message,
                              int line) {
  return fail(code, fmt::format("{}: {} at line {}", name, message, line));
}

tl::unexpected<Error> Context::error(std::string_view message) const {
  return located(ErrorCode::template_error, name_, message, line_);
}

tl::unexpected<Error> Context::unsupported(std::string_view message) const {
  return located(ErrorCode::unsupported, name_, message, line_);
}

tl::unexpected<Error> Context::exceeded(std::string_view limit) const {
  return located(ErrorCode::resource_exhausted, name_, limit, line_);
}

tl::unexpected<Error> Context::undefined_used(const Undefined& value) const {
  return error(value.reason ? *value.reason : "an undefined value is used");
}

Result<void> Context::spend(uint64_t steps) {
  steps_ += std::min(steps, kMaxSteps + 1);
  if (steps_ > max_steps_) return exceeded(fmt::format("more than {} steps", max_steps_));
  if (stop_.stop_requested())
    return located(ErrorCode::cancelled, name_, "it was stopped, as nobody wanted it any more",
                   line_);
  return {};
}

Result<void> Context::handle_bytes(uint64_t bytes) { return spend(1 + bytes / 64); }

Result<void> Context::handle_matches(uint64_t matches) {
  return spend(std::min(matches, kMaxSteps + 1) * 2);
}

Result<void> Context::handle_key(const Value& key) {
  uint64_t bytes = 0;
  const auto add = [&](const Value& part) {
    if (const Text* text = as_text(part)) bytes += text->size();
  };
  add(key);
  if (const Sequence* tuple = as_sequence(key)) {
    OCTAVO_CHECK_OK(spend(tuple->items.size()));
    for (const Value& item : tuple->items) add(item);
  }
  if (bytes > kMaxStringBytes)
    return exceeded(fmt::format("a key of more than {} bytes", kMaxStringBytes));
  return handle_bytes(bytes);
}

Result<void> Context::allocate(uint64_t bytes) {
  memory_ += std::min(bytes, kMaxMemoryBytes + 1);
  if (memory_ > kMaxMemoryBytes)
    return exceeded(fmt::format("more than {} bytes of values", kMaxMemoryBytes));
  return {};
}

Result<void> Context::append(Text& out, const Text& piece) {
  if (out.size() + piece.size() > kMaxStringBytes)
    return exceeded(fmt::format("a string of more than {} bytes", kMaxStringBytes));
  OCTAVO_CHECK_OK(handle_bytes(piece.size()));
  out.append(piece);
  return {};
}

Result<Value> Context::text(Text text) {
  if (text.size() > kMaxStringBytes)
    return exceeded(fmt::format("a string of more than {} bytes", kMaxStringBytes));
  OCTAVO_CHECK_OK(handle_bytes(text.size()));
  OCTAVO_CHECK_OK(allocate(text.size() + kStringOverhead));
  return std::make_shared<const Text>(std::move(text));
}

Result<Value> Context::text(std::string_view bytes, bool is_template) {
  return text(Text(bytes, is_template));
}

Result<Value> Context::sequence(Sequence::Kind kind, std::vector<Value> items) {
  if (items.size() > kMaxItems)
    return exceeded(fmt::format("a list of more than {} items", kMaxItems));
  OCTAVO_CHECK_OK(spend(items.size()));
  OCTAVO_CHECK_OK(allocate(sizeof(Sequence) + items.size() * sizeof(Value)));
  int deepest = 0;
  for (const Value& item : items) deepest = std::max(deepest, depth_of(item));
  OCTAVO_TRY(const int depth, one_deeper(*this, deepest));
  return std::make_shared<const Sequence>(Sequence{kind, std::move(items), 0, depth, false});
}

Result<Value> Context::dict(std::vector<std::pair<Value, Value>> entries) {
  if (entries.size() > kMaxItems)
    return exceeded(fmt::format("a dict of more than {} entries", kMaxItems));
  OCTAVO_CHECK_OK(spend(entries.size()));
  auto dict = std::make_shared<Dict>();
  int deepest = 0;
  for (auto& [key, value] : entries) {
    OCTAVO_CHECK_OK(handle_key(key));
    auto hash = hash_key(key);
    if (!hash) return error(fmt::format("a {} cannot be a key", type_name(key)));
    OCTAVO_CHECK_OK(allocate(kEntryOverhead + hash->size()));
    deepest = std::max({deepest, depth_of(key), depth_of(value)});
    const auto [place, is_new] = dict->index.emplace(std::move(*hash), dict->entries.size());
    if (is_new)
      dict->entries.emplace_back(std::move(key), std::move(value));
    else
      dict->entries[place->second].second = std::move(value);
  }
  OCTAVO_TRY(dict->depth, one_deeper(*this, deepest));
  return DictPtr(std::move(dict));
}

Result<Value> Context::method(const Value& self, const Function& function) {
  OCTAVO_TRY(const int depth, one_deeper(*this, depth_of(self)));
  OCTAVO_CHECK_OK(allocate(sizeof(BoundMethod)));
  return std::make_shared<const BoundMethod>(BoundMethod{self, &function, depth});
}

Result<LoopPtr> Context::loop(SequencePtr items, int level) {
  OCTAVO_TRY(const int depth, one_deeper(*this, items->depth));
  OCTAVO_CHECK_OK(allocate(sizeof(Loop) + sizeof(std::vector<Value>)));
  Loop loop{.items = std::move(items), .depth = depth, .level = level};
  loop.last_seen = &seen_by_loops_.emplace_back();
  return std::make_shared<const Loop>(std::move(loop));
}

Result<Namespace*> Context::make_namespace() {
  OCTAVO_CHECK_OK(allocate(sizeof(Namespace)));
  return &namespaces_.emplace_back();
}

Result<SequencePtr> elements(Context& context, const Value& value) {
  if (const auto* loop = get_if<LoopPtr>(value)) return (*loop)->items;
  if (const auto* sequence = get_if<SequencePtr>(value)) {
    if ((*sequence)->kind == Sequence::Kind::iterator) return rest(context, **sequence);
    return *sequence;
  }
  if (const Text* text = as_text(value)) return characters(context, *text);
  if (const Dict* dict = as_dict(value)) return keys(context, *dict);
  if (is<Undefined>(value)) return std::make_shared<const Sequence>();
  return context.error(fmt::format("a {} cannot be walked through", type_name(value)));
}

}  // namespace octavo::jinja
