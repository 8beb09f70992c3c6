#include "cli/config_file.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <optional>
#include <set>

#include "cli/input.h"
#include "formats/quote.h"

namespace octavo::cli {
namespace {

constexpr size_t kMaxBytes = 1 << 20;

// Where in the file a sentence is about.
struct Place {
  const std::string& file;
  toml::source_index line;

  std::string text() const { return fmt::format("{}:{}", file, line); }
};

template <class... Args>
tl::unexpected<Error> refuse(const Place& place, fmt::format_string<Args...> text, Args&&... args) {
  return fail(ErrorCode::invalid_argument,
              place.text() + ": " + fmt::format(text, std::forward<Args>(args)...));
}

std::string underscored(std::string_view key) {
  std::string name(key);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

std::string_view wanted_type(OptionKind kind) {
  switch (kind) {
    case OptionKind::flag:
      return "true or false";
    case OptionKind::integer:
    case OptionKind::seed:
      return "an integer";
    case OptionKind::number:
      return "a number";
    case OptionKind::text:
    case OptionKind::choice:
      return "text in quotes";
    case OptionKind::integer_list:
      return "a list of integers, [1, 2]";
    case OptionKind::logit_bias:
      return "a list of texts, [\"ID=BIAS\"]";
  }
  return "";
}

bool takes_text(const OptionSpec& spec, std::string_view text) {
  switch (spec.kind) {
    case OptionKind::text:
    case OptionKind::choice:
    case OptionKind::logit_bias:
      return true;
    case OptionKind::integer:
      return spec.has_units || (!spec.word_for_zero.empty() && text == spec.word_for_zero);
    case OptionKind::integer_list:
      return spec.has_units;
    default:
      return false;
  }
}

bool takes_integer(OptionKind kind) {
  return kind == OptionKind::integer || kind == OptionKind::number || kind == OptionKind::seed ||
         kind == OptionKind::integer_list;
}

// A value as it would be typed after the flag; nothing: it has the wrong type. Whether it is in
// range is parse_option's to say.
std::optional<std::string> typed(const OptionSpec& spec, const toml::node& node) {
  if (const auto* value = node.as_boolean())
    return spec.kind == OptionKind::flag ? std::optional(value->get() ? "on" : "off")
                                         : std::nullopt;
  if (const auto* value = node.as_integer())
    return takes_integer(spec.kind) ? std::optional(fmt::format("{}", value->get())) : std::nullopt;
  if (const auto* value = node.as_floating_point())
    return spec.kind == OptionKind::number ? std::optional(fmt::format("{}", value->get()))
                                           : std::nullopt;
  if (const auto* value = node.as_string())
    return takes_text(spec, value->get()) ? std::optional(value->get()) : std::nullopt;
  return std::nullopt;
}

bool is_list(OptionKind kind) {
  return kind == OptionKind::integer_list || kind == OptionKind::logit_bias;
}

// The elements of an array as one text each, or joined where the option itself is a list.
std::optional<std::vector<std::string>> typed_all(const OptionSpec& spec, const toml::node& node) {
  std::vector<std::string> texts;
  const toml::array* array = node.as_array();
  if (!array) {
    const auto text = typed(spec, node);
    return text ? std::optional(std::vector{*text}) : std::nullopt;
  }
  if (!is_list(spec.kind) && !spec.repeatable) return std::nullopt;
  for (const toml::node& element : *array) {
    const auto text = typed(spec, element);
    if (!text) return std::nullopt;
    if (is_list(spec.kind) && !texts.empty())
      texts.front() += "," + *text;
    else
      texts.push_back(*text);
  }
  // An empty list of numbers is a text like any other; of what is repeatable it says nothing.
  if (texts.empty() && !spec.repeatable) texts.emplace_back();
  return texts;
}

const OptionSpec* find(std::string_view name, const std::vector<const OptionSpec*>& specs) {
  for (const OptionSpec* spec : specs)
    if (spec->name == name && name != "config") return spec;
  return nullptr;
}

tl::unexpected<Error> unknown(const Place& place, std::string_view key,
                              const std::vector<const OptionSpec*>& specs) {
  std::vector<std::string> names;
  for (const OptionSpec* spec : specs)
    if (spec->name != "config") names.emplace_back(spec->name);
  if (underscored(key) == "config")
    return refuse(place, "a file of settings cannot name another one; leave out {}", quote(key));
  const std::string_view nearest = nearest_name(underscored(key), names);
  return refuse(place, "there is no setting {}{}; settings are named as the flags are", quote(key),
                nearest.empty() ? "" : fmt::format("; did you mean {}?", nearest));
}

Result<ConfigEntry> entry_of(const toml::key& key, const toml::node& node, const std::string& file,
                             const std::vector<const OptionSpec*>& specs) {
  const Place place{file, key.source().begin.line};
  if (node.is_table())
    return refuse(place, "[{}] begins a section, and settings stand without one", quote(key.str()));
  const OptionSpec* spec = find(underscored(key.str()), specs);
  if (!spec) return unknown(place, key.str(), specs);
  auto texts = typed_all(*spec, node);
  if (!texts) return refuse(place, "{} takes {}", spec->name, wanted_type(spec->kind));
  return ConfigEntry{spec, fmt::format("{}: {}", place.text(), spec->name), *std::move(texts)};
}

Result<std::vector<ConfigEntry>> entries_of(const toml::table& table, const std::string& file,
                                            const std::vector<const OptionSpec*>& specs) {
  std::vector<ConfigEntry> entries;
  std::set<std::string_view> seen;
  for (const auto& [key, node] : table) {
    OCTAVO_TRY(ConfigEntry entry, entry_of(key, node, file, specs));
    if (!seen.insert(entry.spec->name).second)
      return fail(ErrorCode::invalid_argument,
                  fmt::format("{} is given twice, with - and with _", entry.given_as));
    entries.push_back(std::move(entry));
  }
  return entries;
}

}  // namespace

Result<std::vector<ConfigEntry>> parse_config(std::string_view text, const std::string& file,
                                              const std::vector<const OptionSpec*>& specs) {
  try {
    return entries_of(toml::parse(text), file, specs);
  } catch (const toml::parse_error& error) {
    return refuse({file, error.source().begin.line}, "{}; settings are written as in top_p = 0.9",
                  error.description());
  }
}

Result<std::vector<ConfigEntry>> read_config_file(const std::string& path,
                                                  const std::vector<const OptionSpec*>& specs) {
  OCTAVO_TRY(const std::string text, read_text_file(path, kMaxBytes));
  return parse_config(text, path, specs);
}

}  // namespace octavo::cli
