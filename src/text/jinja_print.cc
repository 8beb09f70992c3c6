#include "text/jinja_print.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "text/jinja_unicode.h"

namespace octavo::jinja {
namespace {

// Grows a string and remembers whether content went into it.
struct Printer {
  Context& context;
  std::string out;
  bool has_content = false;

  Result<void> room(size_t bytes) {
    if (out.size() + bytes > kMaxStringBytes)
      return context.exceeded(fmt::format("a string of more than {} bytes", kMaxStringBytes));
    return context.handle_bytes(bytes);
  }
  Text take() { return Text(out, !has_content); }
};

void append_repr_char(std::string& out, char32_t c, char quote) {
  if (c == static_cast<char32_t>(quote) || c == '\\') {
    out += '\\';
    out += static_cast<char>(c);
  } else if (c == '\n') {
    out += "\\n";
  } else if (c == '\r') {
    out += "\\r";
  } else if (c == '\t') {
    out += "\\t";
  } else if (is_printable(c)) {
    append_char(out, c);
  } else {
    const auto code = static_cast<uint32_t>(c);
    out += code < 0x100     ? fmt::format("\\x{:02x}", code)
           : code < 0x10000 ? fmt::format("\\u{:04x}", code)
                            : fmt::format("\\U{:08x}", code);
  }
}

void append_repr(std::string& out, std::string_view text) {
  const bool has_single = text.find('\'') != std::string_view::npos;
  const char quote = has_single && text.find('"') == std::string_view::npos ? '"' : '\'';
  out += quote;
  for (size_t at = 0; at < text.size(); at += char_bytes(text[at]))
    append_repr_char(out, decode_char(text, at), quote);
  out += quote;
}

Result<void> print_repr(Printer& printer, const Value& value);

Result<void> print_sequence(Printer& printer, const Sequence& sequence) {
  if (sequence.kind != Sequence::Kind::list && sequence.kind != Sequence::Kind::tuple)
    return printer.context.unsupported("printing a generator, range or dict view");
  const bool tuple = sequence.kind == Sequence::Kind::tuple;
  printer.out += tuple ? '(' : '[';
  for (size_t i = 0; i < sequence.items.size(); ++i) {
    if (i > 0) printer.out += ", ";
    OCTAVO_CHECK_OK(print_repr(printer, sequence.items[i]));
  }
  if (tuple && sequence.items.size() == 1) printer.out += ',';
  printer.out += tuple ? ')' : ']';
  return {};
}

Result<void> print_dict(Printer& printer, const Dict& dict) {
  printer.out += '{';
  for (size_t i = 0; i < dict.entries.size(); ++i) {
    if (i > 0) printer.out += ", ";
    OCTAVO_CHECK_OK(print_repr(printer, dict.entries[i].first));
    printer.out += ": ";
    OCTAVO_CHECK_OK(print_repr(printer, dict.entries[i].second));
  }
  printer.out += '}';
  return {};
}

Result<void> print_plain(Printer& printer, const Value& value) {
  if (const auto* boolean = get_if<bool>(value))
    printer.out += *boolean ? "True" : "False";
  else if (const auto* integer = get_if<int64_t>(value))
    printer.out += std::to_string(*integer);
  else if (const auto* number = get_if<double>(value))
    printer.out += float_repr(*number);
  else if (is<None>(value))
    printer.out += "None";
  else
    return printer.context.unsupported(fmt::format("printing a {}", type_name(value)));
  return {};
}

Result<void> print_repr(Printer& printer, const Value& value) {
  OCTAVO_CHECK_OK(printer.room(4));
  if (const Text* text = as_text(value)) {
    OCTAVO_CHECK_OK(printer.room(4 * text->size() + 10));
    printer.has_content |= text->has_content();
    if (text->is_markup()) printer.out += "Markup(";
    append_repr(printer.out, text->bytes());
    if (text->is_markup()) printer.out += ')';
    return {};
  }
  if (const Sequence* sequence = as_sequence(value)) return print_sequence(printer, *sequence);
  if (const Dict* dict = as_dict(value)) return print_dict(printer, *dict);
  if (is<Undefined>(value)) {
    printer.out += "Undefined";
    return {};
  }
  return print_plain(printer, value);
}

}  // namespace

std::string float_repr(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number > 0 ? "inf" : "-inf";
  char buffer[40];
  const auto end =
      std::to_chars(buffer, buffer + sizeof buffer, number, std::chars_format::scientific).ptr;
  const std::string_view all(buffer, static_cast<size_t>(end - buffer));
  const size_t e = all.find('e');
  const int exponent = std::atoi(std::string(all.substr(e + 1)).c_str());
  if (exponent < -4 || exponent >= 16) return std::string(all);
  char fixed[40];
  const auto fixed_end =
      std::to_chars(fixed, fixed + sizeof fixed, number, std::chars_format::fixed).ptr;
  std::string result(fixed, fixed_end);
  if (result.find('.') == std::string::npos) result += ".0";
  return result;
}

Result<Text> to_repr(Context& context, const Value& value) {
  Printer printer{context, {}};
  OCTAVO_CHECK_OK(print_repr(printer, value));
  return printer.take();
}

Result<Text> to_text(Context& context, const Value& value) {
  if (const Text* text = as_text(value)) {
    OCTAVO_CHECK_OK(context.handle_bytes(text->size()));
    return *text;
  }
  if (is<Undefined>(value)) return Text();
  Printer printer{context, {}};
  const Sequence* sequence = as_sequence(value);
  const Dict* dict = as_dict(value);
  OCTAVO_CHECK_OK(sequence ? print_sequence(printer, *sequence)
                  : dict   ? print_dict(printer, *dict)
                           : print_plain(printer, value));
  return printer.take();
}

}  // namespace octavo::jinja
