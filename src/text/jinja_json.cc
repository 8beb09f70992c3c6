#include "text/jinja_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "text/jinja_print.h"
#include "text/jinja_unicode.h"

namespace octavo::jinja {
namespace {

using Json = nlohmann::ordered_json;

Result<Value> convert(Context& context, const Json& json, const std::string& place, int depth);

Result<Value> convert_string(Context& context, const std::string& text, const std::string& place) {
  if (const auto at = find_invalid_utf8(text))
    return fail(ErrorCode::invalid_argument,
                fmt::format("{} is not valid UTF-8 (byte {}); send it as UTF-8", place, *at));
  return context.text(text, false);
}

Result<Value> convert_array(Context& context, const Json& json, const std::string& place,
                            int depth) {
  std::vector<Value> items;
  for (const Json& element : json) {
    OCTAVO_TRY(Value item,
               convert(context, element, fmt::format("{}[{}]", place, items.size()), depth));
    items.push_back(std::move(item));
  }
  return context.sequence(Sequence::Kind::list, std::move(items));
}

Result<Value> convert_object(Context& context, const Json& json, const std::string& place,
                             int depth) {
  std::vector<std::pair<Value, Value>> entries;
  for (const auto& [name, element] : json.items()) {
    OCTAVO_TRY(Value key, convert_string(context, name, place));
    OCTAVO_TRY(Value item, convert(context, element, place + "." + name, depth));
    entries.emplace_back(std::move(key), std::move(item));
  }
  return context.dict(std::move(entries));
}

Result<Value> convert(Context& context, const Json& json, const std::string& place, int depth) {
  OCTAVO_CHECK_OK(context.handle_bytes(place.size()));
  if (depth >= kMaxValueDepth - 10)
    return fail(
        ErrorCode::invalid_argument,
        fmt::format("{} is nested too deeply (more than {} levels)", place.substr(0, 60), depth));
  switch (json.type()) {
    case Json::value_t::null:
      return None{};
    case Json::value_t::boolean:
      return json.get<bool>();
    case Json::value_t::number_integer:
      return json.get<int64_t>();
    case Json::value_t::number_unsigned:
      if (json.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
        return fail(ErrorCode::invalid_argument,
                    place + " is a number beyond 64 bits; send it as a string");
      return json.get<int64_t>();
    case Json::value_t::number_float:
      return json.get<double>();
    case Json::value_t::string:
      return convert_string(context, json.get_ref<const std::string&>(), place);
    case Json::value_t::array:
      return convert_array(context, json, place, depth + 1);
    case Json::value_t::object:
      return convert_object(context, json, place, depth + 1);
    default:
      return fail(ErrorCode::invalid_argument, place + " is not JSON");
  }
}

class JsonPrinter {
 public:
  JsonPrinter(Context& context, const JsonStyle& style) : context_(context), style_(style) {}

  Result<void> print(const Value& value, size_t level) {
    OCTAVO_CHECK_OK(room(8));
    if (const Text* text = as_text(value)) return string(*text);
    if (const Sequence* sequence = as_sequence(value)) return array(*sequence, level);
    if (const Dict* dict = as_dict(value)) return object(*dict, level);
    OCTAVO_TRY(const std::string plain, scalar(value));
    out_ += plain;
    return {};
  }
  Text take() { return Text(out_, !has_content_ && !style_.is_content); }

 private:
  Result<void> room(size_t bytes) {
    if (out_.size() + bytes > kMaxStringBytes)
      return context_.exceeded(fmt::format("a string of more than {} bytes", kMaxStringBytes));
    return context_.handle_bytes(bytes);
  }

  Result<std::string> scalar(const Value& value) {
    if (const auto* boolean = get_if<bool>(value)) return *boolean ? "true" : "false";
    if (const auto* integer = get_if<int64_t>(value)) return std::to_string(*integer);
    if (const auto* number = get_if<double>(value)) {
      const std::string text = float_repr(*number);
      if (text == "nan") return "NaN";
      if (text == "inf") return "Infinity";
      return text == "-inf" ? "-Infinity" : text;
    }
    if (is<None>(value)) return "null";
    return context_.error(fmt::format("a {} cannot become JSON", type_name(value)));
  }

  Result<void> string(const Text& text) {
    OCTAVO_CHECK_OK(room(6 * text.size() + 2));
    has_content_ |= text.has_content();
    const std::string_view bytes = text.bytes();
    out_ += '"';
    for (size_t at = 0; at < bytes.size(); at += char_bytes(bytes[at]))
      character(decode_char(bytes, at));
    out_ += '"';
    return {};
  }

  void character(char32_t c) {
    constexpr std::string_view kSpecial = "\"\\\n\r\t\f\b";
    constexpr std::string_view kLetters = "\"\\nrtfb";
    const size_t special = c < 0x80 ? kSpecial.find(static_cast<char>(c)) : std::string_view::npos;
    const auto code = static_cast<uint32_t>(c);
    if (special != std::string_view::npos)
      (out_ += '\\') += kLetters[special];
    else if (code >= 0x20 && (!style_.ascii_only || code < 0x7F))
      append_char(out_, c);
    else if (code < 0x10000)
      out_ += fmt::format("\\u{:04x}", code);
    else
      out_ += fmt::format("\\u{:04x}\\u{:04x}", 0xD7C0 + (code >> 10), 0xDC00 + (code & 0x3FF));
  }

  Result<void> new_line(size_t level) {
    if (!style_.indent) return {};
    OCTAVO_CHECK_OK(room(1 + level * style_.indent->size()));
    out_ += '\n';
    for (size_t i = 0; i < level; ++i) out_ += *style_.indent;
    return {};
  }

  Result<void> array(const Sequence& sequence, size_t level) {
    if (sequence.kind != Sequence::Kind::list && sequence.kind != Sequence::Kind::tuple)
      return context_.error(fmt::format("a {} cannot become JSON", type_name_of(sequence)));
    if (sequence.items.empty()) {
      out_ += "[]";
      return {};
    }
    out_ += '[';
    for (size_t i = 0; i < sequence.items.size(); ++i) {
      if (i > 0) OCTAVO_CHECK_OK(separator(style_.item_separator));
      OCTAVO_CHECK_OK(new_line(level + 1));
      OCTAVO_CHECK_OK(print(sequence.items[i], level + 1));
    }
    OCTAVO_CHECK_OK(new_line(level));
    out_ += ']';
    return {};
  }

  Result<void> object(const Dict& dict, size_t level) {
    if (dict.entries.empty()) {
      out_ += "{}";
      return {};
    }
    OCTAVO_TRY(const auto entries, ordered(dict));
    out_ += '{';
    for (size_t i = 0; i < entries.size(); ++i) {
      if (i > 0) OCTAVO_CHECK_OK(separator(style_.item_separator));
      OCTAVO_CHECK_OK(new_line(level + 1));
      OCTAVO_CHECK_OK(key(entries[i]->first));
      OCTAVO_CHECK_OK(separator(style_.key_separator));
      OCTAVO_CHECK_OK(print(entries[i]->second, level + 1));
    }
    OCTAVO_CHECK_OK(new_line(level));
    out_ += '}';
    return {};
  }

  Result<void> separator(const std::string& text) {
    OCTAVO_CHECK_OK(room(text.size()));
    out_ += text;
    return {};
  }

  Result<void> key(const Value& value) {
    if (const Text* text = as_text(value)) return string(*text);
    OCTAVO_TRY(const std::string plain, scalar(value));
    out_ += '"' + plain + '"';
    return {};
  }

  using Entry = std::pair<Value, Value>;
  Result<std::vector<const Entry*>> ordered(const Dict& dict) {
    std::vector<const Entry*> entries;
    for (const Entry& entry : dict.entries) entries.push_back(&entry);
    if (!style_.sort_keys) return entries;
    for (const Entry* entry : entries)
      if (!as_text(entry->first))
        return context_.unsupported("tojson(sort_keys=true) with keys that are not strings");
    OCTAVO_CHECK_OK(context_.spend(entries.size() * 20));
    std::sort(entries.begin(), entries.end(), [](const Entry* a, const Entry* b) {
      return as_text(a->first)->bytes() < as_text(b->first)->bytes();
    });
    return entries;
  }

  static std::string_view type_name_of(const Sequence& sequence) {
    return sequence.kind == Sequence::Kind::iterator ? "generator" : "range or dict view";
  }

  Context& context_;
  const JsonStyle& style_;
  std::string out_;
  bool has_content_ = false;
};

}  // namespace

Result<Value> from_json(Context& context, const Json& json, std::string_view place) {
  return convert(context, json, std::string(place), 0);
}

Result<Text> to_json(Context& context, const Value& value, const JsonStyle& style) {
  JsonPrinter printer(context, style);
  OCTAVO_CHECK_OK(printer.print(value, 0));
  return printer.take();
}

}  // namespace octavo::jinja
