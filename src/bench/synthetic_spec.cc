#include "bench/synthetic_spec.h"

#include <fmt/format.h>

#include <array>
#include <limits>
#include <type_traits>
#include <utility>

#include "bench/number_text.h"
#include "formats/quote.h"

namespace octavo {
namespace {

using Setter = Result<void> (*)(SyntheticSpec&, std::string_view text);

struct Key {
  std::string_view name, takes;
  Setter set;
};

// Without a message: set_key() says what is taken.
tl::unexpected<Error> not_taken() { return fail(ErrorCode::invalid_argument, ""); }

template <auto Field, auto Low, auto High>
Result<void> set_number(SyntheticSpec& spec, std::string_view text) {
  using T = std::remove_cvref_t<decltype(spec.*Field)>;
  const auto value = number_between<T>(text, static_cast<T>(Low), static_cast<T>(High));
  if (!value) return not_taken();
  spec.*Field = *value;
  return {};
}

Result<void> set_prompt(SyntheticSpec& spec, std::string_view text) {
  OCTAVO_TRY(spec.prompt, Lengths::parse("prompt", text));
  return {};
}

Result<void> set_output(SyntheticSpec& spec, std::string_view text) {
  OCTAVO_TRY(spec.output, Lengths::parse("output", text));
  return {};
}

Result<void> set_rate(SyntheticSpec& spec, std::string_view text) {
  spec.rate = number_between(text, 1e-6, 1e9);
  if (!spec.rate && text != "inf") return not_taken();
  return {};
}

Result<void> set_burstiness(SyntheticSpec& spec, std::string_view text) {
  const auto value = number_between(text, 0.01, 1000.0);
  if (!value) return not_taken();
  spec.burstiness = *value;
  return {};
}

Result<void> set_priorities(SyntheticSpec& spec, std::string_view text) {
  spec.priorities = number_between(text, 1, 1000);
  if (!spec.priorities) return not_taken();
  return {};
}

Result<void> set_intruder(SyntheticSpec& spec, std::string_view text) {
  const size_t at = text.find('@');
  if (at == std::string_view::npos) return not_taken();
  const auto tokens = number_between(text.substr(0, at), 1, kMaxLength);
  const auto arrival_s = number_between(text.substr(at + 1), 0.0, 1e9);
  if (!tokens || !arrival_s) return not_taken();
  spec.intruder = LongPrompt{*tokens, *arrival_s};
  return {};
}

constexpr std::array kKeys = {
    Key{"requests", "1 to 1000000 requests",
        set_number<&SyntheticSpec::num_requests, 1, kMaxRequests>},
    Key{"prompt", "lengths of prompts, what they share not counted", set_prompt},
    Key{"output", "lengths of answers", set_output},
    Key{"shared", "0 to 16777216 tokens that prompts begin with in common",
        set_number<&SyntheticSpec::shared_tokens, 0, kMaxLength>},
    Key{"groups", "1 to 1000000 groups of prompts, each with a beginning of its own",
        set_number<&SyntheticSpec::groups, 1, kMaxRequests>},
    Key{"rate", "0.000001 to 1000000000 requests a second, or inf for all at once", set_rate},
    Key{"burstiness", "0.01 to 1000: 1 for Poisson arrivals, less for bursts", set_burstiness},
    Key{"priorities", "1 to 1000 priorities, drawn for each request", set_priorities},
    Key{"long", "TOKENS@SECONDS, one long prompt more that arrives then", set_intruder},
    Key{"seed", "an integer from 0 on",
        set_number<&SyntheticSpec::seed, 0, std::numeric_limits<uint64_t>::max()>},
};

std::string known_keys() {
  std::string names;
  for (const Key& key : kKeys) names += fmt::format("{}{}", names.empty() ? "" : ", ", key.name);
  return names;
}

const Key* find_key(std::string_view name) {
  for (const Key& key : kKeys)
    if (key.name == name) return &key;
  return nullptr;
}

Result<void> set_key(SyntheticSpec& spec, const Key& key, std::string_view text) {
  const auto done = key.set(spec, text);
  if (done || !done.error().message.empty()) return done;
  return fail(ErrorCode::invalid_argument,
              fmt::format("'{}' is {}; it takes {}", key.name, quote(text), key.takes));
}

Result<const Key*> parse_name(std::string_view entry) {
  const std::string_view name = entry.substr(0, entry.find('='));
  const Key* key = find_key(name);
  if (!key)
    return fail(ErrorCode::invalid_argument,
                fmt::format("{} is no key of a workload; known are {}", quote(name), known_keys()));
  if (name.size() == entry.size())
    return fail(ErrorCode::invalid_argument,
                fmt::format("'{0}' has no value; write {0}=VALUE: {1}", name, key->takes));
  return key;
}

}  // namespace

std::vector<SyntheticKey> synthetic_keys() {
  std::vector<SyntheticKey> keys;
  for (const Key& key : kKeys) keys.push_back({key.name, key.takes});
  return keys;
}

Result<SyntheticSpec> parse_synthetic(std::string_view text) {
  SyntheticSpec spec;
  std::array<bool, kKeys.size()> seen = {};
  while (!text.empty()) {
    const std::string_view entry = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), entry.size() + 1));
    OCTAVO_TRY(const Key* key, parse_name(entry));
    if (std::exchange(seen[static_cast<size_t>(key - kKeys.data())], true))
      return fail(ErrorCode::invalid_argument, fmt::format("'{}' is given twice", key->name));
    OCTAVO_CHECK_OK(set_key(spec, *key, entry.substr(key->name.size() + 1)));
  }
  return spec;
}

}  // namespace octavo
