// The values of one command's options: given by flag, environment or file, else the default.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/options.h"
#include "core/option_table.h"

namespace octavo::cli {

class OptionValues {
 public:
  // All options of the command that have a default, at their default.
  explicit OptionValues(Command command);

  // A given value. Takes the place of the default, and joins other given values of a repeatable
  // option.
  void add(const OptionSpec& spec, OptionValue value);

  Command command() const { return command_; }
  bool has(std::string_view name) const {
    return find_entry(name) != nullptr;
  }  // the command takes it
  bool is_given(std::string_view name) const { return entry(name).given; }

  // The first value. REQUIRES: is_given(name).
  const OptionValue& given(std::string_view name) const { return entry(name).values.front(); }

  const std::vector<OptionValue>& all_given(std::string_view name) const {
    return entry(name).values;
  }

  // T is the type that the option's kind has in OptionValue. Nothing: not given and without a
  // default. REQUIRES: the command has an option of this name and type.
  template <class T>
  std::optional<T> find(std::string_view name) const {
    const std::vector<OptionValue>& values = entry(name).values;
    return values.empty() ? std::nullopt : std::optional<T>(std::get<T>(values.front()));
  }
  // All values of a repeatable option.
  template <class T>
  std::vector<T> all(std::string_view name) const {
    std::vector<T> out;
    for (const OptionValue& value : entry(name).values) out.push_back(std::get<T>(value));
    return out;
  }
  // As find(). REQUIRES: a default.
  template <class T>
  T get(std::string_view name) const {
    return find<T>(name).value();
  }
  bool flag(std::string_view name) const { return get<bool>(name); }
  int integer(std::string_view name) const { return static_cast<int>(get<int64_t>(name)); }
  std::string text(std::string_view name) const { return find<std::string>(name).value_or(""); }

 private:
  struct Entry {
    const OptionSpec* spec;
    std::vector<OptionValue> values;
    bool given;
  };
  const Entry* find_entry(std::string_view name) const;
  const Entry& entry(std::string_view name) const;

  Command command_;
  std::vector<Entry> entries_;
};

}  // namespace octavo::cli
