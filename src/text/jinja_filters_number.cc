#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>

#include "text/jinja_filters.h"
#include "text/jinja_operators.h"
#include "text/jinja_print.h"
#include "text/jinja_strings.h"

namespace octavo::jinja {
namespace {

constexpr size_t kMaxNumberBytes = 400;  // of a string that is read as a number

// Python's spelling of numbers: white space around, single underscores between digits. Unset if it
// is none.
std::optional<std::string> plain_number(std::string_view text) {
  if (text.size() > kMaxNumberBytes) return std::nullopt;
  const Text stripped = strip(Text(text, true), Side::both, std::nullopt);
  std::string plain;
  const std::string_view bytes = stripped.bytes();
  for (size_t i = 0; i < bytes.size(); ++i) {
    const auto digit = [&](size_t at) {
      return at < bytes.size() && std::isxdigit(static_cast<unsigned char>(bytes[at]));
    };
    if (bytes[i] != '_')
      plain += bytes[i];
    else if (i == 0 || !digit(i - 1) || !digit(i + 1))
      return std::nullopt;
  }
  if (plain.starts_with('+')) plain.erase(0, 1);
  const bool doubled = plain.empty() || plain[0] == '+' || plain.starts_with("--");
  return doubled ? std::nullopt : std::optional(plain);
}

enum class Parse { ok, malformed, too_large };

Parse parse_integer(std::string_view text, int base, int64_t& value) {
  const auto plain = plain_number(text);
  if (!plain) return Parse::malformed;
  const char* end = plain->data() + plain->size();
  const auto [stop, error] = std::from_chars(plain->data(), end, value, base);
  if (stop != end || error == std::errc::invalid_argument) return Parse::malformed;
  return error == std::errc() ? Parse::ok : Parse::too_large;
}

std::optional<double> parse_float(std::string_view text) {
  const auto plain = plain_number(text);
  if (!plain) return std::nullopt;
  double value = 0;
  const char* end = plain->data() + plain->size();
  const auto [stop, error] = std::from_chars(plain->data(), end, value);
  if (stop != end || error == std::errc::invalid_argument) return std::nullopt;
  if (error == std::errc::result_out_of_range) return std::strtod(plain->c_str(), nullptr);
  return value;
}

// int(float): unset if there is no such integer.
Result<std::optional<int64_t>> truncate(Context& context, double value) {
  if (!std::isfinite(value)) return std::nullopt;
  if (std::fabs(value) >= 9.2e18) return context.unsupported("an integer beyond 64 bits");
  return static_cast<int64_t>(value);
}

Result<std::optional<int64_t>> to_integer(Context& context, const Value& value, int base) {
  if (const auto integer = as_integer(value)) return *integer;
  if (const auto* number = get_if<double>(value)) return truncate(context, *number);
  if (const auto* missing = get_if<Undefined>(value)) return context.undefined_used(*missing);
  const Text* text = as_text(value);
  if (!text) return std::nullopt;
  int64_t integer = 0;
  const Parse parsed = parse_integer(text->bytes(), base, integer);
  if (parsed == Parse::ok) return integer;
  if (parsed == Parse::too_large) return context.unsupported("an integer beyond 64 bits");
  const auto number = parse_float(text->bytes());
  if (!number) return std::nullopt;
  return truncate(context, *number);
}

Result<Value> do_int(const Call& call) {
  OCTAVO_TRY(const int64_t base, integer_or(call, 1, 10));
  if (base != 10) return call.context.unsupported("int() of another base than 10");
  OCTAVO_TRY(const auto integer, to_integer(call.context, call.self, 10));
  if (integer) return *integer;
  return call.arguments[0] ? *call.arguments[0] : Value(int64_t{0});
}

Result<Value> do_float(const Call& call) {
  if (const auto number = as_number(call.self)) return *number;
  if (const auto* missing = get_if<Undefined>(call.self))
    return call.context.undefined_used(*missing);
  const Text* text = as_text(call.self);
  const auto number = text ? parse_float(text->bytes()) : std::nullopt;
  if (number) return *number;
  return call.arguments[0] ? *call.arguments[0] : Value(0.0);
}

Result<Value> do_abs(const Call& call) {
  if (const auto* number = get_if<double>(call.self)) return std::fabs(*number);
  const auto integer = as_integer(call.self);
  if (integer && *integer >= 0) return *integer;
  return negate(call.context, call.self);
}

// Python rounds the decimal value of the float, half to even; printf does the same.
double round_float(double value, int64_t digits) {
  if (digits >= 0) return std::strtod(fmt::format("{:.{}f}", value, digits).c_str(), nullptr);
  const double unit = std::pow(10.0, static_cast<double>(-digits));
  return std::nearbyint(value / unit) * unit;
}

Result<Value> do_round(const Call& call) {
  constexpr int64_t kMaxDigits = 300;
  OCTAVO_TRY(const int64_t digits, integer_or(call, 0, 0));
  if (digits > kMaxDigits || digits < -kMaxDigits)
    return call.context.error(fmt::format("round() to more than {} digits", kMaxDigits));
  const auto number = as_number(call.self);
  if (!number)
    return call.context.error(fmt::format("a {} cannot be rounded", type_name(call.self)));
  std::string_view method = "common";
  if (call.arguments[1]) {
    OCTAVO_TRY(const Text* given, text_argument(call, 1));
    method = given->bytes();
  }
  const double unit = std::pow(10.0, static_cast<double>(digits));
  if (method == "ceil") return std::ceil(*number * unit) / unit;
  if (method == "floor") return std::floor(*number * unit) / unit;
  if (method != "common")
    return call.context.error("the method of round() must be common, ceil or floor");
  const auto integer = as_integer(call.self);
  if (integer && digits >= 0) return *integer;
  if (integer) return call.context.unsupported("rounding an int to tens");
  return std::isfinite(*number) ? round_float(*number, digits) : *number;
}

constexpr Function kNumberFilters[] = {
    {"abs", "", 0, do_abs},
    {"float", "default", 0, do_float},
    {"int", "default base", 0, do_int},
    {"round", "precision method", 0, do_round},
};

}  // namespace

std::span<const Function> number_filters() { return kNumberFilters; }

}  // namespace octavo::jinja
