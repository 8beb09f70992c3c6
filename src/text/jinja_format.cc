#include "text/jinja_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "text/jinja_access.h"
#include "text/jinja_markup.h"
#include "text/jinja_print.h"
#include "text/jinja_unicode.h"

namespace octavo::jinja {
namespace {

// Reads a pattern from left to right.
struct Cursor {
  std::string_view bytes;
  size_t at = 0;

  bool done() const { return at >= bytes.size(); }
  char peek() const { return done() ? '\0' : bytes[at]; }
  bool skip(char c) {
    if (peek() != c || done()) return false;
    ++at;
    return true;
  }
  bool one_of(std::string_view set) const {
    return !done() && set.find(bytes[at]) != std::string_view::npos;
  }
  // The digits here; unset if there are none. Large numbers stop at a billion.
  std::optional<size_t> number() {
    std::optional<size_t> value;
    for (; one_of("0123456789"); ++at)
      value = std::min<size_t>(value.value_or(0) * 10 + static_cast<size_t>(bytes[at] - '0'),
                               1'000'000'000);
    return value;
  }
};

class PercentFormat {
 public:
  PercentFormat(Context& context, const Text& pattern, const Value& values)
      : context_(context), pattern_(pattern), values_(values), cursor_{pattern.bytes()} {
    const Sequence* sequence = as_sequence(values);
    if (sequence && sequence->kind == Sequence::Kind::tuple) tuple_ = sequence;
  }

  Result<Value> run() {
    OCTAVO_CHECK_OK(context_.handle_bytes(pattern_.size()));
    Text out;
    while (!cursor_.done()) {
      const size_t percent = std::min(cursor_.bytes.find('%', cursor_.at), cursor_.bytes.size());
      out.append(pattern_, cursor_.at, percent);
      cursor_.at = percent;
      if (cursor_.done()) break;
      OCTAVO_TRY(const Text piece, field());
      OCTAVO_CHECK_OK(context_.append(out, piece));
    }
    // Lists and dicts count as mappings, of which nothing need be used.
    const bool optional = !tuple_ && (as_dict(values_) || as_sequence(values_));
    if (!optional && used_ < count()) return context_.error("more values than the pattern takes");
    return context_.text(std::move(out));
  }

 private:
  size_t count() const { return tuple_ ? tuple_->items.size() : 1; }

  Result<Value> next() {
    if (used_ >= count()) return context_.error("fewer values than the pattern takes");
    return tuple_ ? tuple_->items[used_++] : (++used_, values_);
  }

  Result<Value> named() {
    const size_t end = cursor_.bytes.find(')', cursor_.at);
    if (end == std::string_view::npos) return context_.error("a '%(' without ')'");
    const std::string_view name = cursor_.bytes.substr(cursor_.at, end - cursor_.at);
    cursor_.at = end + 1;
    const Dict* dict = as_dict(values_);
    const Value* found = dict ? dict->find(name) : nullptr;
    if (!found) return context_.error(fmt::format("no value '{}' to format", name.substr(0, 80)));
    return *found;
  }

  // A number in the pattern or, for '*', the next value.
  Result<std::optional<size_t>> number_or_star() {
    if (!cursor_.skip('*')) return cursor_.number();
    return context_.unsupported("'*' in a '%' format");
  }

  Result<Text> field() {
    const bool is_template = pattern_.is_template_at(cursor_.at++);
    std::optional<Value> value;
    if (cursor_.skip('(')) {
      OCTAVO_TRY(value, named());
    }
    FieldStyle style;
    style.is_template = is_template;
    bool left = false, zeros = false;
    for (; cursor_.one_of("#0- +"); ++cursor_.at) flag(style, left, zeros);
    OCTAVO_TRY(const auto width, number_or_star());
    style.width = width.value_or(0);
    if (cursor_.skip('.')) {
      OCTAVO_TRY(const auto precision, number_or_star());
      style.precision = precision.value_or(0);
    }
    if (cursor_.one_of("hlL")) ++cursor_.at;
    if (cursor_.done()) return context_.error("a '%' format that does not end");
    const char type = cursor_.bytes[cursor_.at++];
    if (type == '%') return Text("%", is_template);
    if (!value) {
      OCTAVO_TRY(value, next());
    }
    style.align = left ? '<' : '>';
    return convert(*value, style, type, zeros && !left);
  }

  void flag(FieldStyle& style, bool& left, bool& zeros) const {
    const char c = cursor_.peek();
    left |= c == '-';
    zeros |= c == '0';
    style.alternate |= c == '#';
    if (c == '+' || (c == ' ' && style.sign != '+')) style.sign = c;
  }

  Result<Text> convert(const Value& value, FieldStyle style, char type, bool zeros) {
    if (type == 's' || type == 'r') return text_field(value, style, type == 'r');
    if (std::string_view("diuoxXeEfFgGc").find(type) == std::string_view::npos)
      return context_.error(fmt::format("an unknown '%' format, byte {}", static_cast<int>(type)));
    if (const Text* text = as_text(value); text && type == 'c') {
      if (count_chars(text->bytes()) != 1) return context_.error("'%c' of more than a character");
      return text_field(value, style, false);
    }
    if (zeros && type != 'c') {
      style.align = '=';
      style.fill = "0";
    }
    const auto* number = get_if<double>(value);
    if (std::string_view("diu").find(type) == std::string_view::npos)
      return styled(context_, value, with_type(style, type));
    if (!number) return styled(context_, value, with_type(style, 'd'));
    if (!(*number > -9.2e18 && *number < 9.2e18))
      return context_.unsupported("an integer beyond 64 bits");
    return styled(context_, static_cast<int64_t>(*number), with_type(style, 'd'));
  }

  static FieldStyle with_type(FieldStyle style, char type) {
    style.type = type;
    return style;
  }

  Result<Text> text_field(const Value& value, FieldStyle style, bool as_repr) {
    OCTAVO_TRY(Text text, as_repr ? to_repr(context_, value) : to_text(context_, value));
    OCTAVO_TRY(const Value whole, context_.text(std::move(text)));
    style.sign = '-';
    style.alternate = false;
    return styled(context_, whole, style);
  }

  Context& context_;
  const Text& pattern_;
  const Value& values_;
  const Sequence* tuple_ = nullptr;
  Cursor cursor_;
  size_t used_ = 0;
};

class BraceFormat {
 public:
  BraceFormat(Context& context, const Arguments& arguments)
      : context_(context), arguments_(arguments) {}

  Result<Text> run(const Text& pattern, int depth) {
    if (depth > 1) return context_.error("fields inside fields of a format");
    OCTAVO_CHECK_OK(context_.handle_bytes(pattern.size()));
    Text out;
    const std::string_view bytes = pattern.bytes();
    for (size_t at = 0; at < bytes.size();) {
      const size_t brace = std::min(bytes.find_first_of("{}", at), bytes.size());
      out.append(pattern, at, brace);
      if (brace == bytes.size()) break;
      if (brace + 1 < bytes.size() && bytes[brace + 1] == bytes[brace]) {
        out.append(pattern, brace, brace + 1);
        at = brace + 2;
        continue;
      }
      if (bytes[brace] == '}') return context_.error("a single '}' in a format");
      OCTAVO_TRY(const size_t end, closing(bytes, brace + 1));
      OCTAVO_TRY(const Text piece, field(pattern.slice(brace + 1, end), depth));
      OCTAVO_CHECK_OK(context_.append(out, piece));
      at = end + 1;
    }
    return out;
  }

 private:
  Result<size_t> closing(std::string_view bytes, size_t from) const {
    int open = 1;
    bool subscript = false;
    for (size_t at = from; at < bytes.size(); ++at) {
      if (bytes[at] == '[') subscript = true;
      if (bytes[at] == ']') subscript = false;
      if (subscript) continue;
      open += bytes[at] == '{' ? 1 : bytes[at] == '}' ? -1 : 0;
      if (open == 0) return at;
    }
    return context_.error("a '{' without '}' in a format");
  }

  // NAME[.ATTRIBUTE or [INDEX]]...[!CONVERSION][:STYLE]
  Result<Text> field(const Text& text, int depth) {
    const std::string_view bytes = text.bytes();
    const size_t name_end = end_of_name(bytes);
    OCTAVO_TRY(Value value, lookup(bytes.substr(0, name_end)));
    size_t at = name_end;
    if (at < bytes.size() && bytes[at] == '!') {
      OCTAVO_TRY(value, converted(value, bytes.substr(at + 1, 1)));
      at += 2;
    }
    if (at < bytes.size() && bytes[at] != ':')
      return context_.error("a malformed field in a format");
    if (at + 1 >= bytes.size()) return to_text(context_, value);
    OCTAVO_TRY(const Text spec, run(text.slice(at + 1, text.size()), depth + 1));
    if (spec.empty()) return to_text(context_, value);
    OCTAVO_TRY(const FieldStyle style, read_style(spec));
    if (style.precision && as_integer(value) &&
        std::string_view("eEfFgG%").find(style.type) == std::string_view::npos)
      return context_.error("a precision for an int");
    return styled(context_, value, style);
  }

  static size_t end_of_name(std::string_view bytes) {
    bool subscript = false;
    for (size_t at = 0; at < bytes.size(); ++at) {
      if (bytes[at] == '[') subscript = true;
      if (bytes[at] == ']') subscript = false;
      if (!subscript && (bytes[at] == '!' || bytes[at] == ':')) return at;
    }
    return bytes.size();
  }

  Result<Value> converted(const Value& value, std::string_view conversion) {
    if (conversion != "r" && conversion != "s")
      return context_.error("a conversion in a format must be !s or !r");
    OCTAVO_TRY(Text text, conversion == "r" ? to_repr(context_, value) : to_text(context_, value));
    return context_.text(std::move(text));
  }

  Result<Value> lookup(std::string_view name) {
    const size_t first = std::min(name.find_first_of(".["), name.size());
    OCTAVO_TRY(Value value, argument(name.substr(0, first)));
    for (size_t at = first; at < name.size();) {
      OCTAVO_CHECK_OK(context_.spend(1));
      const bool subscript = name[at] == '[';
      const size_t end = subscript ? name.find(']', at) : name.find_first_of(".[", at + 1);
      if (subscript && end == std::string_view::npos)
        return context_.error("a '[' without ']' in a format");
      const std::string_view part = name.substr(at + 1, std::min(end, name.size()) - at - 1);
      if (part.empty()) return context_.error("an empty attribute in a format");
      OCTAVO_TRY(value, subscript ? by_key(value, part) : get_attribute(context_, value, part));
      at = end == std::string_view::npos ? name.size() : end + (subscript ? 1 : 0);
      if (subscript && at < name.size() && name[at] != '.' && name[at] != '[')
        return context_.error("only '.' or '[' may follow ']' in a format");
    }
    return value;
  }

  Result<Value> by_key(const Value& value, std::string_view part) {
    if (const auto index = whole_number(part))
      return get_item(context_, value, static_cast<int64_t>(*index));
    OCTAVO_TRY(const Value key, context_.text(part, true));
    return get_item(context_, value, key);
  }

  static std::optional<size_t> whole_number(std::string_view text) {
    Cursor cursor{text};
    const auto number = cursor.number();
    return cursor.done() ? number : std::nullopt;
  }

  Result<Value> argument(std::string_view name) {
    auto index = whole_number(name);
    if (name.empty() || index) {
      if (name.empty() ? numbered_ : counted_)
        return context_.error("a format mixes numbered fields with others");
      (name.empty() ? counted_ : numbered_) = true;
      if (!index) index = next_++;
      if (*index >= arguments_.positional.size())
        return context_.error(fmt::format("no value {} to format", *index));
      return arguments_.positional[*index];
    }
    OCTAVO_CHECK_OK(context_.spend(arguments_.named.size() / 16));
    for (const auto& [known, value] : arguments_.named)
      if (known == name) return value;
    return context_.error(fmt::format("no value '{}' to format", name.substr(0, 80)));
  }

  // [[fill]align][sign][#][0][width][grouping][.precision][type]
  Result<FieldStyle> read_style(const Text& spec) {
    FieldStyle style;
    style.is_template = !spec.has_content();
    Cursor cursor{spec.bytes()};
    const size_t first = char_bytes(cursor.bytes[0]);
    if (first < cursor.bytes.size() &&
        std::string_view("<>=^").find(cursor.bytes[first]) != std::string_view::npos) {
      style.fill = std::string(cursor.bytes.substr(0, first));
      style.align = cursor.bytes[first];
      cursor.at = first + 1;
    } else if (cursor.one_of("<>=^")) {
      style.align = cursor.bytes[cursor.at++];
    }
    if (cursor.one_of("+- ")) style.sign = cursor.bytes[cursor.at++];
    style.alternate = cursor.skip('#');
    if (cursor.peek() == '0' && !style.align) {
      style.fill = "0";
      style.align = '=';
    }
    style.width = cursor.number().value_or(0);
    if (cursor.one_of(",_")) style.grouping = cursor.bytes[cursor.at++];
    if (cursor.skip('.')) {
      style.precision = cursor.number();
      if (!style.precision) return context_.error("a '.' without a precision in a format");
    }
    if (!cursor.done()) style.type = cursor.bytes[cursor.at++];
    if (!cursor.done()) return context_.error("a malformed style in a format");
    return style;
  }

  Context& context_;
  const Arguments& arguments_;
  bool counted_ = false;   // fields without a number were met
  bool numbered_ = false;  // and with one
  size_t next_ = 0;
};

}  // namespace

Result<Value> percent_format(Context& context, const Text& pattern, const Value& values) {
  if (!pattern.is_markup()) return PercentFormat(context, pattern, values).run();
  OCTAVO_TRY(const Value safe, escape_items(context, values));
  OCTAVO_TRY(const Value made, PercentFormat(context, pattern, safe).run());
  Text text = *as_text(made);
  text.set_markup(true);
  return context.text(std::move(text));
}

Result<Value> brace_format(Context& context, const Text& pattern, const Arguments& arguments) {
  OCTAVO_TRY(Text text, BraceFormat(context, arguments).run(pattern, 0));
  return context.text(std::move(text));
}

}  // namespace octavo::jinja
