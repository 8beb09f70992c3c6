// Filters that make lists of lists.
#include <fmt/format.h>

#include <algorithm>

#include "text/jinja_access.h"
#include "text/jinja_filters.h"
#include "text/jinja_operators.h"
#include "text/jinja_strings.h"

namespace octavo::jinja {
namespace {

using Kind = Sequence::Kind;

struct Member {
  Value attribute, key, item;  // key: what is compared
};

Result<Member> member_of(const Call& call, const Value& item) {
  OCTAVO_TRY(Value attribute, get_path(call.context, item, *call.arguments[0]));
  if (is<Undefined>(attribute) && call.arguments.given(1)) attribute = *call.arguments[1];
  Value key = attribute;
  if (const Text* text = as_text(key); text && !boolean_or(call, 2, false)) {
    OCTAVO_CHECK_OK(call.context.handle_bytes(16 * text->size()));
    OCTAVO_TRY(key, call.context.text(change_case(*text, Case::lower)));
  }
  return Member{std::move(attribute), std::move(key), item};
}

Result<void> sort_members(Context& context, std::vector<Member>& members) {
  Result<void> status;
  std::stable_sort(members.begin(), members.end(), [&](const Member& a, const Member& b) {
    if (!status) return false;
    const Result<bool> less = less_than(context, a.key, b.key);
    if (!less) status = tl::make_unexpected(less.error());
    return less.value_or(false);
  });
  return status;
}

Result<Value> group_of(Context& context, Value grouper, std::vector<Value> items) {
  OCTAVO_TRY(Value list, context.sequence(Kind::list, std::move(items)));
  OCTAVO_TRY(const Value pair,
             context.sequence(Kind::tuple, {std::move(grouper), std::move(list)}));
  auto group = std::make_shared<Sequence>(*as_sequence(pair));
  group->is_group = true;
  return SequencePtr(std::move(group));
}

Result<Value> do_groupby(const Call& call) {
  OCTAVO_TRY(const SequencePtr items, elements(call.context, call.self));
  std::vector<Member> members;
  for (const Value& item : items->items) {
    OCTAVO_TRY(Member member, member_of(call, item));
    members.push_back(std::move(member));
  }
  OCTAVO_CHECK_OK(sort_members(call.context, members));
  std::vector<Value> groups;
  for (size_t begin = 0, end = 0; begin < members.size(); begin = end) {
    std::vector<Value> group;
    for (bool same = true; same && end < members.size();) {
      OCTAVO_TRY(same, equals(call.context, members[begin].key, members[end].key));
      if (same) group.push_back(members[end++].item);
    }
    if (group.empty()) return call.context.error("a group by what does not equal itself");
    OCTAVO_TRY(Value made,
               group_of(call.context, std::move(members[begin].attribute), std::move(group)));
    groups.push_back(std::move(made));
  }
  return call.context.sequence(Kind::list, std::move(groups));
}

Result<Value> do_batch(const Call& call) {
  OCTAVO_TRY(const SequencePtr items, elements(call.context, call.self));
  OCTAVO_TRY(const int64_t size, integer_or(call, 0, 0));
  std::vector<Value> batches, batch;
  const auto finish = [&]() -> Result<void> {
    OCTAVO_TRY(Value list, call.context.sequence(Kind::list, std::move(batch)));
    batches.push_back(std::move(list));
    batch.clear();
    return {};
  };
  for (const Value& item : items->items) {
    if (static_cast<int64_t>(batch.size()) == size) OCTAVO_CHECK_OK(finish());
    batch.push_back(item);
  }
  if (!batch.empty()) {
    const bool fill = call.arguments.given(1) && size > 0;
    if (fill && size > static_cast<int64_t>(kMaxItems))
      return call.context.exceeded(fmt::format("a list of more than {} items", kMaxItems));
    if (fill) batch.resize(std::max(static_cast<size_t>(size), batch.size()), *call.arguments[1]);
    OCTAVO_CHECK_OK(finish());
  }
  return call.context.sequence(Kind::iterator, std::move(batches));
}

// Columns as equal as can be, the first ones one longer where that does not come out even.
Result<Value> do_slice(const Call& call) {
  OCTAVO_TRY(const SequencePtr items, elements(call.context, call.self));
  OCTAVO_TRY(const int64_t columns, integer_or(call, 0, 0));
  if (columns == 0) return call.context.error("slice() into 0 columns");
  if (columns > static_cast<int64_t>(kMaxItems))
    return call.context.exceeded(fmt::format("a list of more than {} items", kMaxItems));
  const auto count = static_cast<int64_t>(items->items.size());
  std::vector<Value> made;
  auto next = items->items.begin();
  for (int64_t i = 0; i < columns; ++i) {
    const bool longer = i < count % columns;
    const auto end = next + (count / columns + (longer ? 1 : 0));
    std::vector<Value> column(next, end);
    next = end;
    // Even where it comes out even, as the reference has it.
    if (call.arguments.given(1) && !longer) column.push_back(*call.arguments[1]);
    OCTAVO_TRY(Value list, call.context.sequence(Kind::list, std::move(column)));
    made.push_back(std::move(list));
  }
  return call.context.sequence(Kind::iterator, std::move(made));
}

constexpr Function kGroupFilters[] = {
    {"batch", "linecount fill_with", 1, do_batch},
    {"groupby", "attribute default case_sensitive", 1, do_groupby},
    {"slice", "slices fill_with", 1, do_slice},
};

}  // namespace

std::span<const Function> group_filters() { return kGroupFilters; }

}  // namespace octavo::jinja
