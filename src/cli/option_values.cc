#include "cli/option_values.h"

#include <algorithm>
#include <stdexcept>

namespace octavo::cli {

OptionValues::OptionValues(Command command) : command_(command) {
  for (const OptionSpec* spec : options_of(command)) {
    Entry entry{spec, {}, false};
    if (!spec->default_text.empty()) {
      auto value = parse_option(*spec, spec->default_text, spec->name);
      if (!value) throw std::logic_error(value.error().message);
      entry.values.push_back(*std::move(value));
    }
    entries_.push_back(std::move(entry));
  }
}

void OptionValues::add(const OptionSpec& spec, OptionValue value) {
  for (Entry& entry : entries_) {
    if (entry.spec != &spec) continue;
    if (!entry.given) entry.values.clear();
    entry.given = true;
    entry.values.push_back(std::move(value));
  }
}

const OptionValues::Entry* OptionValues::find_entry(std::string_view name) const {
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const Entry& entry) { return entry.spec->name == name; });
  return found == entries_.end() ? nullptr : &*found;
}

const OptionValues::Entry& OptionValues::entry(std::string_view name) const {
  const Entry* found = find_entry(name);
  // Only a mistake in this program leads here: names are not input.
  if (!found) throw std::logic_error("no option " + std::string(name));
  return *found;
}

}  // namespace octavo::cli
