#include "server/api_unknown_fields.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/option_table.h"
#include "formats/quote.h"

namespace octavo {
namespace {

// Who sends more of them has made no spelling mistake.
constexpr size_t kMostLookedAt = 32;
constexpr size_t kLongestName = 64;

bool has(uint8_t endpoints, std::string_view name) {
  const auto fields = api_fields();
  return std::any_of(fields.begin(), fields.end(), [&](const ApiField& field) {
    return (field.endpoints & endpoints) != 0 && field.name == name;
  });
}

std::vector<std::string> names_of(Endpoint endpoint) {
  std::vector<std::string> names;
  for (const ApiField& field : api_fields())
    if (field.endpoints & endpoint) names.emplace_back(field.name);
  return names;
}

// maxTokens and max-tokens, too, are mistakes for max_tokens.
std::string in_snake_case(std::string_view name) {
  std::string snake;
  for (const char c : name) {
    const bool is_capital = c >= 'A' && c <= 'Z';
    if (is_capital && !snake.empty()) snake += '_';
    snake += is_capital ? static_cast<char>(c - 'A' + 'a') : c == '-' ? '_' : c;
  }
  return snake;
}

// Empty: nothing is to be said of it.
std::string suspicion(std::string_view name, std::span<const std::string> known) {
  if (has(UINT8_MAX, name))
    return fmt::format("{} is a field of other routes and has no effect here", name);
  if (name.size() > kLongestName) return "";
  const std::string_view nearest = nearest_name(in_snake_case(name), known);
  return nearest.empty() ? ""
                         : fmt::format("{} is not known and has no effect; did you mean {}?",
                                       quote(name), nearest);
}

tl::unexpected<ApiError> refuse(std::string_view name, const std::string& suspicion) {
  return tl::unexpected<ApiError>(
      {.message = fmt::format("{}; the server was started with --strict-fields",
                              suspicion.empty() ? quote(name) + " is not known" : suspicion),
       .param = std::string(name.substr(0, kLongestName)),
       .code = "unknown_parameter"});
}

}  // namespace

ApiResult<void> check_unknown_fields(const BodyFields& body, Endpoint endpoint,
                                     const ApiLimits& limits, ApiWarnings& warnings) {
  std::vector<std::string> known;
  size_t num_looked_at = 0;
  for (const auto& [name, value] : body) {
    if (value.is_null() || has(endpoint, name)) continue;
    if (++num_looked_at > kMostLookedAt) break;
    if (known.empty()) known = names_of(endpoint);
    std::string told = suspicion(name, known);
    if (limits.strict_fields) return refuse(name, told);
    if (!told.empty()) warnings.push_back(std::move(told));
  }
  return {};
}

}  // namespace octavo
