#include "llm/sampling_params_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <string>
#include <vector>

#include "core/option_table.h"
#include "formats/quote.h"

namespace octavo {
namespace {

using nlohmann::json;

tl::unexpected<Error> expected(std::string_view what) {
  return fail(ErrorCode::invalid_argument, std::string(what));
}

Result<void> read(const json& value, bool& out) {
  if (!value.is_boolean()) return expected("true or false");
  out = value.get<bool>();
  return {};
}

Result<void> read(const json& value, double& out) {
  if (!value.is_number()) return expected("a number");
  out = value.get<double>();
  return {};
}

Result<void> read(const json& value, int& out) {
  constexpr auto kLowest = std::numeric_limits<int>::min(),
                 kHighest = std::numeric_limits<int>::max();
  if (!value.is_number_integer() ||
      (value.is_number_unsigned() && value.get<uint64_t>() > kHighest) ||
      value.get<int64_t>() < kLowest)
    return expected("an integer of 32 bits");
  out = value.get<int>();
  return {};
}

Result<void> read(const json& value, uint64_t& out) {
  if (!value.is_number_unsigned()) return expected("an integer, 0 to 18446744073709551615");
  out = value.get<uint64_t>();
  return {};
}

Result<void> read(const json& value, std::string& out) {
  if (!value.is_string()) return expected("a string");
  out = value.get<std::string>();
  return {};
}

Result<void> read(const json& value, TokenId& out) {
  int id = 0;
  OCTAVO_CHECK_OK(read(value, id));
  out = TokenId{id};
  return {};
}

template <class T>
Result<void> read(const json& value, std::optional<T>& out) {
  if (value.is_null()) {
    out.reset();
    return {};
  }
  return read(value, out.emplace());
}

// null: none. One string stands for a list of it, as in `stop`.
template <class T>
Result<void> read(const json& value, std::vector<T>& out) {
  out.clear();
  if (value.is_null()) return {};
  if (std::is_same_v<T, std::string> && value.is_string()) return read(value, out.emplace_back());
  if (!value.is_array()) return expected("a list");
  for (const json& item : value)
    if (auto done = read(item, out.emplace_back()); !done)
      return expected(fmt::format("a list of which each is {}", done.error().message));
  return {};
}

Result<void> read(const json& value, std::vector<LogitBias>& out) {
  constexpr std::string_view kShape = "an object from token ids to numbers, such as {\"5\": -1.5}";
  out.clear();
  if (value.is_null()) return {};
  if (!value.is_object()) return expected(kShape);
  for (const auto& [key, bias] : value.items()) {
    int32_t id = -1;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    if (error != std::errc() || end != key.data() + key.size() || !bias.is_number())
      return expected(kShape);
    out.push_back({TokenId{id}, bias.get<float>()});
  }
  return {};
}

// An empty list would allow nothing; only null allows everything.
Result<void> read_allowed(const json& value, std::vector<TokenId>& out) {
  if (value.is_array() && value.empty()) return expected("null, or a list that is not empty");
  return read(value, out);
}

template <class T>
nlohmann::ordered_json write(const T& value) {
  return value;
}
nlohmann::ordered_json write(TokenId id) { return raw(id); }
template <class T>
nlohmann::ordered_json write(const std::optional<T>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
}
template <class T>
nlohmann::ordered_json write(const std::vector<T>& values) {
  auto list = nlohmann::ordered_json::array();
  for (const T& value : values) list.push_back(write(value));
  return list;
}
nlohmann::ordered_json write(const std::vector<LogitBias>& biases) {
  auto object = nlohmann::ordered_json::object();
  for (const LogitBias& b : biases) object[std::to_string(raw(b.id))] = b.bias;
  return object;
}

struct Field {
  std::string_view name;
  Result<void> (*read)(const json& value, SamplingParams& params);
  nlohmann::ordered_json (*write)(const SamplingParams& params);
};

template <auto Member>
constexpr Field field(std::string_view name) {
  return {name, [](const json& value, SamplingParams& p) { return read(value, p.*Member); },
          [](const SamplingParams& p) { return write(p.*Member); }};
}

using P = SamplingParams;
constexpr std::array kFields = {
    field<&P::n>("n"),
    field<&P::temperature>("temperature"),
    field<&P::top_p>("top_p"),
    field<&P::top_k>("top_k"),
    field<&P::min_p>("min_p"),
    field<&P::seed>("seed"),
    field<&P::presence_penalty>("presence_penalty"),
    field<&P::frequency_penalty>("frequency_penalty"),
    field<&P::repetition_penalty>("repetition_penalty"),
    field<&P::logit_bias>("logit_bias"),
    field<&P::stop>("stop"),
    field<&P::stop_token_ids>("stop_token_ids"),
    field<&P::ignore_eos>("ignore_eos"),
    field<&P::max_tokens>("max_tokens"),
    field<&P::min_tokens>("min_tokens"),
    field<&P::logprobs>("logprobs"),
    field<&P::prompt_logprobs>("prompt_logprobs"),
    field<&P::include_stop_str_in_output>("include_stop_str_in_output"),
    field<&P::skip_special_tokens>("skip_special_tokens"),
    field<&P::detokenize>("detokenize"),
    Field{"allowed_token_ids",
          [](const json& value, P& p) { return read_allowed(value, p.allowed_token_ids); },
          [](const P& p) { return write(p.allowed_token_ids); }},
    field<&P::bad_words>("bad_words"),
};

tl::unexpected<Error> unknown(const std::string& name) {
  std::vector<std::string> names;
  for (const Field& f : kFields) names.emplace_back(f.name);
  const std::string_view nearest = nearest_name(name, names);
  return fail(ErrorCode::invalid_argument,
              fmt::format("sampling_params has no {}{}", quote(name),
                          nearest.empty() ? "" : fmt::format("; did you mean {}?", nearest)));
}

}  // namespace

Result<void> read_sampling_params(const json& object, SamplingParams& params) {
  if (!object.is_object())
    return fail(ErrorCode::invalid_argument, "sampling_params must be an object");
  for (const auto& [name, value] : object.items()) {
    const auto found = std::ranges::find(kFields, name, &Field::name);
    if (found == kFields.end()) return unknown(name);
    if (const auto done = found->read(value, params); !done)
      return fail(ErrorCode::invalid_argument,
                  fmt::format("sampling_params.{} must be {}", name, done.error().message));
  }
  return {};
}

nlohmann::ordered_json to_json(const SamplingParams& params) {
  nlohmann::ordered_json json;
  for (const Field& f : kFields) json[std::string(f.name)] = f.write(params);
  return json;
}

}  // namespace octavo
