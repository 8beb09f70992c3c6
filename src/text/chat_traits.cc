#include "text/chat_traits.h"

#include <nlohmann/json.hpp>

namespace octavo {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kProbe = "octavo-probe-text";
constexpr std::string_view kOther = "octavo-probe-other";

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

Json as_parts(std::string_view text) { return Json::array({{{"type", "text"}, {"text", text}}}); }

class Prober {
 public:
  Prober(std::string_view source, const ChatProbe& render) : source_(source), render_(render) {}

  ChatTraits find() {
    traits_.wants_parts = wants_parts();
    traits_.names_developer = names("developer") && shows("developer");
    traits_.shows_system = shows("system");
    traits_.shows_tools = names("tools") && shows_tools();
    if (names("tool_calls")) find_calls();
    traits_.shows_tool_results = shows_results();
    traits_.reasoning_field = find_reasoning_field();
    return traits_;
  }

 private:
  bool names(std::string_view word) const { return has(source_, word); }

  Json content(std::string_view text) const {
    return traits_.wants_parts ? as_parts(text) : Json(text);
  }
  Json message(std::string_view role, std::string_view text) const {
    return {{"role", role}, {"content", content(text)}};
  }
  Json user() const { return message("user", "x"); }
  bool shows(std::string_view role) const {
    return has(render_(Json::array({message(role, kProbe), user()}), nullptr), kProbe);
  }

  // Renders one message both ways. A list that is printed as it stands shows the name of the part's
  // type.
  bool wants_parts() const {
    const auto with_content = [&](Json content) {
      return render_(Json::array({{{"role", "user"}, {"content", std::move(content)}}}), nullptr);
    };
    if (has(with_content(kProbe), kProbe)) return false;
    const std::string parts =
        with_content(Json::array({{{"type", "text"}, {"text", kProbe}, {"extra", kOther}}}));
    return has(parts, kProbe) && !has(parts, kOther);
  }

  static Json definition() {
    const Json parameters = {{"type", "object"}, {"properties", Json::object()}};
    const Json function = {{"name", kProbe}, {"description", "x"}, {"parameters", parameters}};
    return Json::array({{{"type", "function"}, {"function", function}}});
  }
  bool shows_tools() const { return has(render_(Json::array({user()}), definition()), kProbe); }

  static Json call_of(const Json& arguments) {
    return {{"id", "abcdefghi"},
            {"type", "function"},
            {"function", {{"name", "x"}, {"arguments", arguments}}}};
  }
  Json result_of(std::string_view text) const {
    Json result = message("tool", text);
    result["tool_call_id"] = "abcdefghi";
    return result;
  }

  // A question, a call of a tool and its result.
  std::string with_call(const Json& arguments, const Json& text) const {
    Json asks = {{"role", "assistant"}, {"content", text}};
    asks["tool_calls"] = Json::array({call_of(arguments)});
    return render_(Json::array({user(), asks, result_of("x")}),
                   traits_.shows_tools ? definition() : Json(nullptr));
  }

  // Calls are tried in every shape. An object that is printed as it stands has Python's quotes.
  void find_calls() {
    const Json arguments = {{kOther, 1}};
    const auto shows = [&](const Json& given, const Json& text, std::string_view part) {
      const std::string shown = with_call(given, text);
      return has(shown, part) && !has(shown, "None");
    };
    const std::string quoted = "\"" + std::string(kOther) + "\":";
    for (const Json& text : {Json(nullptr), content("")}) {
      const bool as_json = shows(arguments, text, quoted);
      const bool as_text = !as_json && shows(arguments.dump(), text, quoted);
      if (!as_json && !as_text && !shows(arguments, text, kOther)) continue;
      traits_.shows_tool_calls = true;
      traits_.wants_argument_text = as_text;
      traits_.wants_null_content = text.is_null();
      return;
    }
  }

  bool shows_results() const {
    if (!names("tool")) return false;
    Json asks = message("assistant", "");
    if (traits_.shows_tool_calls) {
      const Json arguments = traits_.wants_argument_text ? Json("{}") : Json::object();
      asks["tool_calls"] = Json::array({call_of(arguments)});
      if (traits_.wants_null_content) asks["content"] = nullptr;
    }
    return has(render_(Json::array({user(), asks, result_of(kProbe)}), nullptr), kProbe);
  }

  // Clients and templates have three names for it.
  std::string find_reasoning_field() const {
    for (const char* field : {"reasoning_content", "reasoning", "thinking"}) {
      if (!names(field)) continue;
      Json answer = message("assistant", "x");
      answer[field] = kProbe;
      if (has(render_(Json::array({user(), answer}), nullptr), kProbe)) return field;
    }
    return "";
  }

  std::string_view source_;
  const ChatProbe& render_;
  ChatTraits traits_;
};

}  // namespace

ChatTraits find_chat_traits(std::string_view source, const ChatProbe& render) {
  return Prober(source, render).find();
}

}  // namespace octavo
