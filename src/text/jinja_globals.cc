// Functions a template can call by name.
#include <fmt/format.h>

#include <chrono>

#include "text/jinja_callable.h"
#include "text/jinja_print.h"

namespace octavo::jinja {
namespace {

Result<Value> do_range(const Call& call) {
  OCTAVO_TRY(int64_t start, integer_or(call, 0, 0));
  OCTAVO_TRY(int64_t stop, integer_or(call, 1, 0));
  OCTAVO_TRY(const int64_t step, integer_or(call, 2, 1));
  if (!call.arguments.given(1)) {
    stop = start;
    start = 0;
  }
  if (step == 0) return call.context.error("the step of range() cannot be 0");
  std::vector<Value> items;
  for (int64_t i = start; step > 0 ? i < stop : i > stop;) {
    if (items.size() == static_cast<size_t>(kMaxRange))
      return call.context.exceeded(fmt::format("a range of more than {} numbers", kMaxRange));
    items.push_back(i);
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  return call.context.sequence(Sequence::Kind::range, std::move(items));
}

// A dict, or the pairs in a list.
Result<std::vector<std::pair<Value, Value>>> entries_of(Context& context, const Value& value) {
  if (const Dict* dict = as_dict(value)) return dict->entries;
  std::vector<std::pair<Value, Value>> entries;
  OCTAVO_TRY(const SequencePtr items, elements(context, value));
  for (const Value& item : items->items) {
    OCTAVO_TRY(const SequencePtr pair, elements(context, item));
    if (pair->items.size() != 2) return context.error("dict() of a list of what are not pairs");
    entries.emplace_back(pair->items[0], pair->items[1]);
  }
  return entries;
}

// The one argument without a name, then those with one.
Result<std::vector<std::pair<Value, Value>>> named_entries(const Call& call) {
  const Arguments& all = call.arguments.all();
  std::vector<std::pair<Value, Value>> entries;
  if (all.positional.size() > 1)
    return call.context.error("dict() and namespace() take one argument without a name");
  if (!all.positional.empty()) {
    OCTAVO_TRY(entries, entries_of(call.context, all.positional[0]));
  }
  for (const auto& [name, value] : all.named) {
    OCTAVO_TRY(Value key, call.context.text(name, !all.content_names));
    entries.emplace_back(std::move(key), value);
  }
  return entries;
}

Result<Value> do_dict(const Call& call) {
  OCTAVO_TRY(auto entries, named_entries(call));
  return call.context.dict(std::move(entries));
}

Result<Value> do_namespace(const Call& call) {
  OCTAVO_TRY(auto entries, named_entries(call));
  OCTAVO_TRY(const Value fields, call.context.dict(std::move(entries)));
  OCTAVO_TRY(Namespace* const space, call.context.make_namespace());
  for (const auto& [key, value] : as_dict(fields)->entries)
    if (const Text* name = as_text(key)) space->fields.emplace_back(name->bytes(), value);
  return space;
}

Result<Value> do_cycler(const Call& call) {
  if (call.arguments.all().positional.empty() || !call.arguments.all().named.empty())
    return call.context.error("cycler() needs items, without names");
  OCTAVO_TRY(Namespace* const cycler, call.context.make_namespace());
  cycler->kind = Namespace::Kind::cycler;
  cycler->items = call.arguments.all().positional;
  return cycler;
}

Result<Value> do_joiner(const Call& call) {
  OCTAVO_TRY(const Value comma, call.context.text(", ", true));
  OCTAVO_TRY(Namespace* const joiner, call.context.make_namespace());
  joiner->kind = Namespace::Kind::joiner;
  joiner->items = {call.arguments[0] ? *call.arguments[0] : comma};
  return joiner;
}

Result<Value> do_raise_exception(const Call& call) {
  OCTAVO_TRY(const Text message, to_text(call.context, *call.arguments[0]));
  return fail(ErrorCode::template_error,
              fmt::format("the chat template refused the conversation: {}", message.bytes()));
}

constexpr std::string_view kMonths[] = {"January",   "February", "March",    "April",
                                        "May",       "June",     "July",     "August",
                                        "September", "October",  "November", "December"};
constexpr std::string_view kDays[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                      "Thursday", "Friday", "Saturday"};

struct Moment {
  std::chrono::year_month_day date;
  unsigned weekday;  // 0: Sunday
  std::chrono::hh_mm_ss<std::chrono::seconds> time;
  int64_t day_of_year;  // from 1
};

Moment moment_at(int64_t seconds) {
  const std::chrono::sys_seconds now{std::chrono::seconds(seconds)};
  const auto day = std::chrono::floor<std::chrono::days>(now);
  const std::chrono::year_month_day date(day);
  const std::chrono::sys_days first = date.year() / std::chrono::January / 1;
  return {date, std::chrono::weekday(day).c_encoding(), std::chrono::hh_mm_ss(now - day),
          (day - first).count() + 1};
}

// One directive of strftime in the C locale; empty for an unknown one.
std::string format_directive(const Moment& at, char directive) {
  const int year = static_cast<int>(at.date.year());
  const unsigned month = static_cast<unsigned>(at.date.month());
  const unsigned day = static_cast<unsigned>(at.date.day());
  const int64_t hour = at.time.hours().count();
  switch (directive) {
    case 'Y':
      return fmt::format("{:04}", year);
    case 'y':
      return fmt::format("{:02}", year % 100);
    case 'm':
      return fmt::format("{:02}", month);
    case 'd':
      return fmt::format("{:02}", day);
    case 'e':
      return fmt::format("{:2}", day);
    case 'j':
      return fmt::format("{:03}", at.day_of_year);
    case 'B':
      return std::string(kMonths[month - 1]);
    case 'b':
    case 'h':
      return std::string(kMonths[month - 1].substr(0, 3));
    case 'A':
      return std::string(kDays[at.weekday]);
    case 'a':
      return std::string(kDays[at.weekday].substr(0, 3));
    case 'w':
      return std::to_string(at.weekday);
    case 'u':
      return std::to_string(at.weekday == 0 ? 7 : at.weekday);
    case 'H':
      return fmt::format("{:02}", hour);
    case 'I':
      return fmt::format("{:02}", hour % 12 == 0 ? 12 : hour % 12);
    case 'M':
      return fmt::format("{:02}", at.time.minutes().count());
    case 'S':
      return fmt::format("{:02}", at.time.seconds().count());
    case 'p':
      return hour < 12 ? "AM" : "PM";
    case 'F':
      return fmt::format("{:04}-{:02}-{:02}", year, month, day);
    case 'D':
      return fmt::format("{:02}/{:02}/{:02}", month, day, year % 100);
    case 'T':
      return fmt::format("{:02}:{:02}:{:02}", hour, at.time.minutes().count(),
                         at.time.seconds().count());
    case 'R':
      return fmt::format("{:02}:{:02}", hour, at.time.minutes().count());
    case 'n':
      return "\n";
    case 't':
      return "\t";
    case '%':
      return "%";
    default:
      return "";
  }
}

Result<Value> do_strftime_now(const Call& call) {
  OCTAVO_TRY(const Text* format, text_argument(call, 0));
  const Moment now = moment_at(call.context.now());
  Text result;
  const std::string_view bytes = format->bytes();
  for (size_t at = 0; at < bytes.size();) {
    const size_t percent = std::min(bytes.find('%', at), bytes.size());
    result.append(*format, at, percent);
    if (percent == bytes.size()) break;
    const char directive = percent + 1 < bytes.size() ? bytes[percent + 1] : '\0';
    const std::string piece = format_directive(now, directive);
    if (piece.empty())
      return call.context.unsupported(
          fmt::format("strftime_now directive '{}'", bytes.substr(percent, 2)));
    result.append(piece, true);
    at = percent + 2;
  }
  return call.context.text(std::move(result));
}

constexpr Function kGlobals[] = {
    {"range", "start stop step", 1, do_range},
    {"dict", "*", 0, do_dict},
    {"namespace", "*", 0, do_namespace},
    {"raise_exception", "message", 1, do_raise_exception},
    {"strftime_now", "format", 1, do_strftime_now},
    {"cycler", "*", 0, do_cycler},
    {"joiner", "sep", 0, do_joiner},
    {"lipsum", "*", 0},
};

}  // namespace

std::span<const Function> global_functions() { return kGlobals; }

}  // namespace octavo::jinja
