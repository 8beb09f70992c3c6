#include "core/option_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>

#include "core/count_text.h"

namespace octavo {
namespace {

constexpr size_t kMaxShownBytes = 60;

// A value for messages: on one line and without control characters.
std::string shown(std::string_view text) {
  std::string out(text.substr(0, kMaxShownBytes));
  for (char& c : out)
    if (c < ' ' || c > '~') c = '?';
  return text.size() > kMaxShownBytes ? out + "..." : out;
}

template <class T>
std::optional<T> parse_number(std::string_view text) {
  T value{};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

// Asks whether the value is inside, never whether it is outside: NaN is not inside anything.
template <class T>
bool is_inside(const OptionSpec& spec, T value) {
  const auto number = static_cast<double>(value);
  return (spec.above_lowest ? number > spec.lowest : number >= spec.lowest) &&
         number <= spec.highest;
}

bool is_choice(const OptionSpec& spec, std::string_view text) {
  return std::find(spec.choices.begin(), spec.choices.end(), text) != spec.choices.end();
}

std::optional<OptionValue> parse_flag(std::string_view text) {
  if (text == "on" || text == "true" || text == "1") return true;
  if (text == "off" || text == "false" || text == "0") return false;
  return std::nullopt;
}

std::optional<int64_t> parse_whole(const OptionSpec& spec, std::string_view text) {
  const auto value = parse_number<int64_t>(text);
  return value || !spec.has_units ? value : parse_count(text);
}

std::optional<OptionValue> parse_integer(const OptionSpec& spec, std::string_view text) {
  if (!spec.word_for_zero.empty() && text == spec.word_for_zero) return int64_t{0};
  const auto value = parse_whole(spec, text);
  const bool allowed =
      spec.choices.empty() ? value && is_inside(spec, *value) : is_choice(spec, text);
  if (!value || !allowed) return std::nullopt;
  return *value;
}

std::optional<OptionValue> parse_double(const OptionSpec& spec, std::string_view text) {
  const auto value = parse_number<double>(text);
  if (!value || !is_inside(spec, *value)) return std::nullopt;
  return *value;
}

// U+0000 would end the text for the system.
std::optional<OptionValue> parse_text(const OptionSpec& spec, std::string_view text) {
  if ((text.empty() && spec.refuses_empty) || text.find('\0') != std::string_view::npos)
    return std::nullopt;
  return std::string(text);
}

std::optional<OptionValue> parse_seed(std::string_view text) {
  if (const auto value = parse_number<uint64_t>(text)) return *value;
  return std::nullopt;
}

// Calls parse_item on each part between commas, until one returns false. False: so it was.
template <class Parse>
bool for_each_item(std::string_view text, const Parse& parse_item) {
  for (;;) {
    const size_t comma = text.find(',');
    if (!parse_item(text.substr(0, comma))) return false;
    if (comma == std::string_view::npos) return true;
    text.remove_prefix(comma + 1);
  }
}

std::optional<OptionValue> parse_integer_list(const OptionSpec& spec, std::string_view text) {
  std::vector<int64_t> values;
  const bool parsed = for_each_item(text, [&](std::string_view item) {
    const auto value = parse_whole(spec, item);
    if (value) values.push_back(*value);
    return value && is_inside(spec, *value);
  });
  if (!parsed) return std::nullopt;
  return values;
}

std::optional<OptionValue> parse_logit_bias(std::string_view text) {
  std::vector<LogitBias> biases;
  const bool parsed = for_each_item(text, [&](std::string_view item) {
    const size_t equals = std::min(item.find('='), item.size());
    const auto id = parse_number<int32_t>(item.substr(0, equals));
    const auto bias = parse_number<float>(item.substr(std::min(equals + 1, item.size())));
    if (!id || *id < 0 || !bias || !(*bias >= -100 && *bias <= 100)) return false;
    biases.push_back({TokenId{*id}, *bias});
    return true;
  });
  if (!parsed) return std::nullopt;
  return biases;
}

std::optional<OptionValue> parse_value(const OptionSpec& spec, std::string_view text) {
  switch (spec.kind) {
    case OptionKind::flag:
      return parse_flag(text);
    case OptionKind::integer:
      return parse_integer(spec, text);
    case OptionKind::number:
      return parse_double(spec, text);
    case OptionKind::seed:
      return parse_seed(text);
    case OptionKind::text:
      return parse_text(spec, text);
    case OptionKind::choice:
      break;
    case OptionKind::integer_list:
      return parse_integer_list(spec, text);
    case OptionKind::logit_bias:
      return parse_logit_bias(text);
  }
  if (!is_choice(spec, text)) return std::nullopt;
  return std::string(text);
}

std::string range_text(const OptionSpec& spec) {
  const auto number = [&](double value) {
    return spec.kind == OptionKind::number ? fmt::format("{:g}", value)
                                           : fmt::format("{:.0f}", value);
  };
  const std::string lowest = number(spec.lowest);
  const bool is_bounded = spec.highest < std::numeric_limits<double>::max();
  if (spec.above_lowest)
    return is_bounded ? fmt::format("more than {}, at most {}", lowest, number(spec.highest))
                      : fmt::format("more than {}", lowest);
  return is_bounded ? fmt::format("{} to {}", lowest, number(spec.highest))
                    : fmt::format("{} or more", lowest);
}

std::string_view units_text(const OptionSpec& spec) {
  return spec.has_units ? ", also as in 8k or 4GiB" : "";
}

// Edits (a letter added, dropped or changed, two neighbours swapped) from one name to another.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> cost(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) {
    for (size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        cost[i][j] = i + j;
        continue;
      }
      cost[i][j] = std::min(
          {cost[i - 1][j] + 1, cost[i][j - 1] + 1, cost[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
    }
  }
  return cost[a.size()][b.size()];
}

std::string dashed(std::string_view name, char separator) {
  std::string out(name);
  std::replace(out.begin(), out.end(), '_', separator);
  return out;
}

}  // namespace

Result<OptionValue> parse_option(const OptionSpec& spec, std::string_view text,
                                 std::string_view given_as) {
  if (auto value = parse_value(spec, text)) return *std::move(value);
  const std::string allowed = allowed_values(spec);
  return fail(ErrorCode::invalid_argument,
              fmt::format("{} is '{}'; allowed: {}", given_as, shown(text),
                          allowed.empty() ? "text without U+0000" : allowed));
}

std::string allowed_values(const OptionSpec& spec) {
  if (!spec.choices.empty()) return fmt::format("{}", fmt::join(spec.choices, ", "));
  switch (spec.kind) {
    case OptionKind::flag:
      return "on, off";
    case OptionKind::integer:
      return fmt::format(
          "an integer, {}{}{}", range_text(spec), units_text(spec),
          spec.word_for_zero.empty() ? "" : fmt::format(", or {}", spec.word_for_zero));
    case OptionKind::number:
      return "a number, " + range_text(spec);
    case OptionKind::seed:
      return "an integer, 0 to 18446744073709551615";
    case OptionKind::integer_list:
      return "integers with commas between them, each " + range_text(spec) +
             std::string(units_text(spec));
    case OptionKind::logit_bias:
      return "ID=BIAS with a token id and a bias from -100 to 100, several with commas between";
    case OptionKind::text:
      return spec.refuses_empty ? "text that is not empty" : "";
    case OptionKind::choice:
      break;
  }
  return "";
}

std::string flag_of(std::string_view name) { return "--" + dashed(name, '-'); }

std::string variable_of(std::string_view name) {
  std::string out = "OCTAVO_" + std::string(name);
  for (char& c : out)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return out;
}

std::string_view nearest_name(std::string_view name, std::span<const std::string> candidates) {
  constexpr size_t kLongestName = 100;
  if (name.empty() || name.size() > kLongestName) return {};
  std::string_view nearest;
  // One letter in three may be wrong, but not all of them.
  size_t least = std::min(name.size(), std::max<size_t>(1, name.size() / 3) + 1);
  for (const std::string& candidate : candidates) {
    const bool begins_so = name.size() >= 3 && candidate.starts_with(name);
    const size_t distance = begins_so ? 1 : edit_distance(name, candidate);
    if (distance >= least) continue;
    least = distance;
    nearest = candidate;
  }
  return nearest;
}

}  // namespace octavo
