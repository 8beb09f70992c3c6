// One value in one style of str.format or '%'.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "text/jinja_format.h"
#include "text/jinja_print.h"
#include "text/jinja_unicode.h"

namespace octavo::jinja {
namespace {

constexpr size_t kMaxPrecision = 300;
constexpr int64_t kMaxCharacter = 0x10FFFF;

// sign and prefix, then digits: '=' pads between the two.
struct Number {
  std::string head, digits;
};

Result<Text> padded(Context& context, const Text& head, const Text& body, const FieldStyle& style,
                    char align) {
  const size_t chars = count_chars(head.bytes()) + count_chars(body.bytes());
  const size_t missing = style.width > chars ? style.width - chars : 0;
  if (missing > kMaxStringBytes / 4)
    return context.exceeded(fmt::format("a string of more than {} bytes", kMaxStringBytes));
  // str.center gives an odd space to the left if the width is odd, format to the right.
  const size_t centered = missing / 2 + (align == 'c' ? missing & style.width & 1 : 0);
  const size_t before = align == '>' ? missing : align == '^' || align == 'c' ? centered : 0;
  const size_t between = align == '=' ? missing : 0;
  const auto fill = [&](Text& out, size_t count) {
    std::string text;
    for (size_t i = 0; i < count; ++i) text += style.fill;
    out.append(text, style.is_template);
  };
  OCTAVO_CHECK_OK(context.handle_bytes(4 * missing + head.size() + body.size()));
  Text out;
  fill(out, before);
  out.append(head);
  fill(out, between);
  out.append(body);
  fill(out, missing - before - between);
  return out;
}

std::string grouped(const std::string& digits, char separator, size_t size) {
  const size_t whole = std::min(digits.find_first_of(".e"), digits.size());
  std::string out;
  for (size_t i = 0; i < whole; ++i) {
    if (i > 0 && (whole - i) % size == 0) out += separator;
    out += digits[i];
  }
  return out + digits.substr(whole);
}

Result<Text> styled_number(Context& context, Number number, const FieldStyle& style) {
  if (style.grouping && style.align == '=' && style.fill == "0")
    return context.unsupported("zeros before a number with thousands separators");
  const bool decimal = std::string_view("xXob").find(style.type) == std::string_view::npos;
  if (style.grouping) number.digits = grouped(number.digits, style.grouping, decimal ? 3 : 4);
  return padded(context, Text(number.head, true), Text(number.digits, true), style,
                style.align ? style.align : '>');
}

std::string sign_of(bool negative, const FieldStyle& style) {
  if (negative) return "-";
  return style.sign == '-' ? "" : std::string(1, style.sign);
}

Result<Text> styled_character(Context& context, int64_t code, const FieldStyle& style) {
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  if (code < 0 || code > kMaxCharacter || surrogate)
    return context.error("'c' of a number that is no character");
  std::string text;
  append_char(text, static_cast<char32_t>(code));
  return padded(context, {}, Text(text, true), style, style.align ? style.align : '<');
}

Result<Text> styled_integer(Context& context, int64_t value, const FieldStyle& style) {
  if (style.type == 'c') return styled_character(context, value, style);
  if (style.type == 'n') return context.unsupported("the format type 'n'");
  const uint64_t size = value < 0 ? -static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
  Number number{sign_of(value < 0, style), {}};
  if (style.type == 'x' || style.type == 'X')
    number.digits = style.type == 'x' ? fmt::format("{:x}", size) : fmt::format("{:X}", size);
  else if (style.type == 'o' || style.type == 'b')
    number.digits = style.type == 'o' ? fmt::format("{:o}", size) : fmt::format("{:b}", size);
  else
    number.digits = std::to_string(size);
  const bool prefixed = std::string_view("xXob").find(style.type) != std::string_view::npos;
  if (style.alternate && prefixed) number.head += {'0', style.type};
  if (style.precision && number.digits.size() < *style.precision)
    number.digits.insert(0, *style.precision - number.digits.size(), '0');
  return styled_number(context, std::move(number), style);
}

std::string float_digits(double value, size_t precision, char type) {
  switch (type) {
    case 'e':
      return fmt::format("{:.{}e}", value, precision);
    case 'E':
      return fmt::format("{:.{}E}", value, precision);
    case 'g':
      return fmt::format("{:.{}g}", value, std::max<size_t>(precision, 1));
    case 'G':
      return fmt::format("{:.{}G}", value, std::max<size_t>(precision, 1));
    default:
      return fmt::format("{:.{}f}", value, precision);
  }
}

Result<Text> styled_float(Context& context, double value, const FieldStyle& style) {
  if (style.type == 'n' || style.alternate || (style.type == '\0' && style.precision))
    return context.unsupported("this format of a float");
  Number number{sign_of(std::signbit(value) && !std::isnan(value), style), {}};
  const double size = std::isnan(value) ? value : std::fabs(value);
  if (style.type == '\0')
    number.digits = float_repr(size);
  else
    number.digits = float_digits(style.type == '%' ? size * 100 : size, style.precision.value_or(6),
                                 style.type);
  if (style.type == 'F')
    for (char& c : number.digits)
      if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  if (style.type == '%') number.digits += '%';
  return styled_number(context, std::move(number), style);
}

Result<Text> styled_text(Context& context, const Text& text, const FieldStyle& style) {
  if (style.align == '=' || style.sign != '-' || style.grouping || style.alternate)
    return context.error("a format for numbers is used on a str");
  const size_t end = style.precision ? byte_of_char(text.bytes(), *style.precision) : text.size();
  return padded(context, {}, text.slice(0, end), style, style.align ? style.align : '<');
}

}  // namespace

Result<Text> styled(Context& context, const Value& value, const FieldStyle& style) {
  if (style.width > kMaxStringBytes)
    return context.exceeded(fmt::format("a string of more than {} bytes", kMaxStringBytes));
  const bool wants_text = style.type == '\0' || style.type == 's';
  if (const Text* text = as_text(value); text && wants_text)
    return styled_text(context, *text, style);
  if (style.precision && *style.precision > kMaxPrecision)
    return context.error(fmt::format("a precision of more than {} digits", kMaxPrecision));
  const bool wants_float =
      std::string_view("eEfFgG%").find(style.type) != std::string_view::npos && style.type != '\0';
  const bool wants_integer =
      std::string_view("dxXobcn").find(style.type) != std::string_view::npos && style.type != '\0';
  const auto integer = as_integer(value);
  const auto number = as_number(value);
  if (integer && (style.type == '\0' || wants_integer))
    return styled_integer(context, *integer, style);
  if (number && (style.type == '\0' || wants_float)) return styled_float(context, *number, style);
  return context.error(fmt::format("the format type '{}' does not fit a {}",
                                   style.type ? std::string(1, style.type) : "", type_name(value)));
}

}  // namespace octavo::jinja
