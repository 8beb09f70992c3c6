// Templates and conversations made to break the interpreter: each ends in an error that names limit
// and line.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "text/chat_input.h"
#include "text/chat_template.h"
#include "text/jinja_limits.h"

namespace octavo {
namespace {

using Json = nlohmann::ordered_json;

std::string repeated(const std::string& text, size_t count) {
  std::string result;
  while (count-- > 0) result += text;
  return result;
}

Error error_of(const std::string& source, const ChatTemplate::Input& input = {}) {
  const auto chat = ChatTemplate::parse(source);
  if (!chat) return chat.error();
  const auto spans = chat->render(input);
  return spans ? Error{ErrorCode::cancelled, "rendered " + std::to_string(spans->size()) + " spans"}
               : spans.error();
}

struct Case {
  std::string source;
  ErrorCode code;
  const char* part;  // of the message
};

void expect_errors(const std::vector<Case>& cases) {
  for (const Case& item : cases) {
    const Error error = error_of(item.source);
    const std::string start = item.source.substr(0, 100);
    EXPECT_EQ(error.code, item.code) << start << ": " << error.message;
    EXPECT_NE(error.message.find(item.part), std::string::npos) << start << ": " << error.message;
  }
}

TEST(HostileTemplates, TooDeep) {
  constexpr size_t kDeep = 100'000;
  constexpr ErrorCode kLimit = ErrorCode::resource_exhausted;
  expect_errors({
      {"\n{{ " + repeated("(", kDeep) + "1" + repeated(")", kDeep) + " }}", kLimit, "at line 2"},
      {"{{ " + repeated("[", kDeep) + repeated("]", kDeep) + "}}", kLimit, "inside each other"},
      {"{{ " + repeated("{1:", kDeep) + "1" + repeated("}", kDeep) + "}}", kLimit,
       "inside each other"},
      {"{{ " + repeated("not ", kDeep) + "1 }}", kLimit, "inside each other"},
      {"{{ " + repeated("-", kDeep) + "1 }}", kLimit, "inside each other"},
      {"{{ x" + repeated("[x", kDeep) + repeated("]", kDeep) + "}}", kLimit, "inside each other"},
      {"{{ x" + repeated("(x", kDeep) + repeated(")", kDeep) + "}}", kLimit, "inside each other"},
      {"{{ x" + repeated("|d(x", 90'000) + repeated(")", 90'000) + "}}", kLimit,
       "inside each other"},
      {"{{ " + repeated("1 if 1 else ", 30'000) + "1 }}", kLimit, "inside each other"},
      {"{{ 1 " + repeated("if 1 ", 90'000) + " }}", kLimit, "levels"},
      {"{{ 1" + repeated("+1", kDeep) + " }}", kLimit, "levels"},
      {"{{ x" + repeated(".x", kDeep) + " }}", kLimit, "levels"},
      {"{{ x" + repeated("|d", kDeep) + " }}", kLimit, "levels"},
      {"{{ x" + repeated(" or x", kDeep) + " }}", kLimit, "levels"},
      {"{{ x" + repeated("()", kDeep) + " }}", kLimit, "levels"},
      {repeated("{% if 1 %}", 40'000), kLimit, "inside each other"},
      {repeated("{% for x in y %}", 30'000), kLimit, "inside each other"},
      {"{% for " + repeated("(", kDeep) + repeated(")", kDeep) + "%}", kLimit, "inside each other"},
      {std::string(600'000, 'a'), kLimit, "bytes"},
      {"{{ f(" + repeated("1,", kDeep) + ") }}", kLimit, "arguments"},
  });
}

TEST(HostileTemplates, EndlessWork) {
  constexpr ErrorCode kLimit = ErrorCode::resource_exhausted;
  const std::string nested_loops = "{% for a in range(99999) %}{% for b in range(99999) %}";
  expect_errors({
      {"\n\n{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", kLimit, "at line 3"},
      {"{% macro m(x) %}{{ n(x) }}{% endmacro %}{% macro n(x) %}{{ m(x) }}{% endmacro %}{{ m(1) }}",
       kLimit, "inside each other"},
      {"{% macro m(x=m()) %}{% endmacro %}{{ m() }}", kLimit, "inside each other"},
      {nested_loops + "{% endfor %}{% endfor %}", kLimit, "steps"},
      {nested_loops + "xxxxxxxx{% endfor %}{% endfor %}", kLimit, ""},
      {"{{ range(10 ** 9) }}", kLimit, "100000"},
      {"{{ range(0, 9223372036854775807, 1) }}", kLimit, "100000"},
      {"{{ 'a' * 10 ** 9 }}", kLimit, "elements"},
      {"{{ [1] * 9223372036854775807 }}", kLimit, "elements"},
      {"{{ 'ab' * 9223372036854775807 }}", kLimit, "elements"},
      {"{% set ns = namespace(s='ab') %}{% for i in range(99) %}{% set ns.s = ns.s + ns.s %}"
       "{% endfor %}",
       kLimit, ""},
      {"{% set ns = namespace(s='ab') %}{% for i in range(99) %}{% set ns.s = ns.s|replace('', "
       "ns.s) %}"
       "{% endfor %}",
       kLimit, ""},
      {"{% set ns = namespace(s=['ab']) %}{% for i in range(99) %}{% set ns.s = ns.s + ns.s %}"
       "{% endfor %}",
       kLimit, ""},
      {"{% set ns = namespace(s='ab') %}{% for i in range(99) %}{% set ns.s = [ns.s, ns.s] %}"
       "{% endfor %}{{ ns.s }}",
       kLimit, ""},
      {"{% set ns = namespace(s='ab') %}{% for i in range(99) %}{% set ns.s = [ns.s, ns.s] %}"
       "{% endfor %}{{ ns.s == ns.s }}",
       kLimit, "steps"},
      {"{% set ns = namespace(s='ab') %}{% for i in range(50) %}{% set ns.s = (ns.s, ns.s) %}"
       "{% endfor %}{{ {ns.s: 1} }}",
       ErrorCode::template_error, "cannot be a key"},
      {"{% set ns = namespace(s=1) %}{% for i in range(99999) %}{% set ns.s = [ns.s] %}{% endfor "
       "%}",
       kLimit, "lists inside each other"},
      {"{% set ns = namespace(s=1) %}{% for i in range(99999) %}{% for x in [ns.s] %}"
       "{% set ns.s = loop %}{% endfor %}{% endfor %}",
       kLimit, "lists inside each other"},
      {"{% set s = 'a' * 3000000 %}{{ s.find('a' * 1500000 ~ 'b') }}", ErrorCode::cancelled, ""},
      {"{% set s = 'a' * 3000000 %}{{ s.rfind('a' * 1500000 ~ 'b') }}", kLimit, "steps"},
      {"{{ 'x'|indent(10 ** 12, true) }}", kLimit, "bytes"},
      {"{{ [[[1]]]|tojson(indent=60000000) }}", kLimit, "bytes"},
      {"{% for x in [1] recursive %}{{ loop([x]) }}{% endfor %}", kLimit, "inside each other"},
      {"{% for x in [1, 2] recursive %}{% if loop.depth < 50 %}{{ loop([x, x]) }}{% endif %}"
       "{% endfor %}",
       kLimit, ""},
      {"{{ '{:99999999999}'.format(1) }}", kLimit, "bytes"},
      {"{{ '%999999999s' % 1 }}", kLimit, "bytes"},
      {"{{ '{:{}}'.format('a', 999999999) }}", kLimit, "bytes"},
      {"{{ 'a'.center(9223372036854775807) }}", kLimit, "bytes"},
      {"{{ 'a'|center(999999999) }}", kLimit, "bytes"},
      {"{{ [1]|slice(999999999) }}", kLimit, "items"},
      {"{{ [1]|batch(999999999, 0) }}", kLimit, "items"},
      {"{% macro m() %}{{ varargs|length }}{% endmacro %}{{ m(*range(99999)) }}", kLimit,
       "arguments"},
      {"{{ '%.999999999f' % 1 }}", ErrorCode::template_error, "precision"},
      {"{{ '{:.301f}'.format(1.5) }}", ErrorCode::template_error, "precision"},
  });
}

// A step is never much more work than another: what reads, copies or changes much text takes many.
TEST(HostileTemplates, StepsAreCountedByTheBytesTheyHandle) {
  const std::string long_text = "{% set s = 'a' * 1000000 %}{% set t = 'a' * 1000000 %}";
  const auto in_loop = [&](const std::string& expression) {
    return long_text + "{% for i in range(1000) %}{% set x = " + expression + " %}{% endfor %}";
  };
  for (const char* expression : {"''|replace(s, '')",
                                 "''|replace('', s)",
                                 "s < t",
                                 "s <= t",
                                 "s.startswith(t)",
                                 "s.endswith((t, t))",
                                 "'b'.removeprefix(s) + s.removesuffix(t)",
                                 "{}.get(s)",
                                 "s in {}",
                                 "{}[s]",
                                 "{(s, t): 1}",
                                 "[[(s, t)]]|map('first')|unique|list",
                                 "[1]|map(attribute=s)|list",
                                 "''|indent(1000000)",
                                 "''|indent(s)",
                                 "[]|tojson(indent=s)",
                                 "[]|tojson(separators=[s, s])",
                                 "s.splitlines()",
                                 "s ~ ''",
                                 "s|string"}) {
    const Error error = error_of(in_loop(expression));
    EXPECT_EQ(error.code, ErrorCode::resource_exhausted) << expression << ": " << error.message;
  }
  const auto in_few = [&](const std::string& expression, int rounds) {
    return "{% set s = 'a' * 100000 %}{% for i in range(" + std::to_string(rounds) +
           ") %}{% set x = " + expression + " %}{% endfor %}";
  };
  for (const char* expression :
       {"s|replace('a', 'b')", "s.replace('a', '')", "s.count('a')", "s|replace('', '-')"}) {
    EXPECT_EQ(error_of(in_few(expression, 10)).code, ErrorCode::cancelled) << expression;
    const Error error = error_of(in_few(expression, 30));
    EXPECT_NE(error.message.find("steps"), std::string::npos) << expression << error.message;
  }
}

TEST(HostileTemplates, NothingLargeIsMadeBeforeItIsRefused) {
  constexpr ErrorCode kLimit = ErrorCode::resource_exhausted;
  expect_errors({
      {"{% set s = 'a' * 1000000 %}{{ {(" + repeated("s, ", 200) + "): 1} }}", kLimit, "key"},
      {"{% set s = 'a' * 1000000 %}{{ ((" + repeated("s, ", 200) + ") in {}) }}", kLimit, "key"},
      {"{{ ('a' * 20000000).split('a')|length }}", kLimit, "items"},
      {"{{ ('a ' * 10000000).split()|length }}", kLimit, "items"},
      {"{{ ('a' * 20000000).rsplit('a')|length }}", kLimit, "items"},
      {"{{ ('\n' * 20000000).splitlines()|length }}", kLimit, "items"},
  });
}

TEST(HostileTemplates, EndWhenNobodyWantsThem) {
  const auto chat = ChatTemplate::parse("{% for i in range(99999) %}{{ i }}{% endfor %}");
  std::stop_source stop;
  ChatTemplate::Input input;
  input.stop = stop.get_token();
  EXPECT_TRUE(chat->render(input));
  stop.request_stop();
  const auto stopped = chat->render(input);
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code, ErrorCode::cancelled);
}

// The last variable is found as soon as the first, and what is of no use does not count.
TEST(HostileMessages, ManyVariables) {
  ChatTemplate::Input input;
  input.extra = Json::object();
  auto& entries = input.extra.get_ref<Json::object_t&>();
  for (int i = 0; i < 200'000; ++i) entries.emplace_back("name" + std::to_string(i), i);
  const auto chat = ChatTemplate::parse(
      "{% for i in range(50000) %}{% set x = name199999 + name0 %}{% endfor %}{{ name199999 }}");
  const auto spans = chat->render(input);
  ASSERT_TRUE(spans) << spans.error().message;
  EXPECT_EQ(spans->back().text, "199999");
}

// Values that refer to each other in circles are taken apart at the end (the leak checker looks).
TEST(HostileTemplates, CirclesAreFreed) {
  for (const char* source : {
           "{% set ns = namespace() %}{% set ns.me = ns %}{% set ns.l = [ns] %}",
           "{% macro m() %}{% endmacro %}{% set n = m %}{% set ns = namespace(m=m) %}",
           "{% macro m() %}{% macro k() %}{% endmacro %}{% set x = k %}{% endmacro %}{{ m() }}",
           "{% set ns = namespace() %}{% for i in range(3000) %}{% set prev = ns.f %}"
           "{% macro f() %}{{ prev }}{% endmacro %}{% set ns.f = f %}{% endfor %}",
           "{% macro m() %}{{ caller() }}{% endmacro %}{% call m() %}x{% endcall %}",
           "{% set ns = namespace() %}{% for i in [1] recursive %}{% set ns.l = loop %}{% endfor %}"
           "{% set l = ns.l %}",
           "{% for i in [1, 2] recursive %}{% if loop.changed(loop) %}{% endif %}{% endfor %}",
           "{% set c = cycler(1) %}{% set ns = namespace(c=c) %}{% set d = cycler(ns, c) %}",
           "{% for x in [1] %}{% set l = loop %}{% set k = [loop] %}{% endfor %}",
       })
    EXPECT_EQ(error_of(source).code, ErrorCode::cancelled) << error_of(source).message;
}

TEST(HostileTemplates, WhatIsUnknownIsNamed) {
  constexpr ErrorCode kUnsupported = ErrorCode::unsupported;
  constexpr ErrorCode kTemplate = ErrorCode::template_error;
  expect_errors({
      {"a\nb\n{{ x | foo }}", kUnsupported, "unknown filter 'foo' at line 3"},
      {"\n{{ x is foo }}", kUnsupported, "unknown test 'foo' at line 2"},
      {"\n\n{% foo %}", kUnsupported, "unknown tag 'foo' at line 3"},
      {"{% include 'x' %}", kUnsupported, "tag 'include' is not supported at line 1"},
      {"\n{{ ['a']|map('foo')|list }}", kUnsupported, "unknown filter 'foo' at line 2"},
      {"\n{{ ['a']|select('foo')|list }}", kUnsupported, "unknown test 'foo' at line 2"},
      {"{{ 'x'.casefold() }}", kUnsupported, "'casefold' is not supported at line 1"},
      {"{{ '%*d' % (1, 2) }}", kUnsupported, "'%'"},
      {"{{ lipsum() }}", kUnsupported, "'lipsum'"},
      {"{{ strftime_now('%Q') }}", kUnsupported, "'%Q'"},
      {"{{ range(3) }}", kUnsupported, "printing"},
      {"{{ 9223372036854775807 + 1 }}", kUnsupported, "64 bits"},
      {"{{ -9223372036854775807 - 2 }}", kUnsupported, "64 bits"},
      {"{{ 3 ** 99 }}", kUnsupported, "64 bits"},
      {"{{ '99999999999999999999'|int }}", kUnsupported, "64 bits"},
      {"{{ 99999999999999999999 }}", kTemplate, "out of range"},
      {"{{ '\\N{DASH}' }}", kUnsupported, "\\N"},
      {"{% if x %}\n\n", kTemplate, "the block of line 1 is not closed by 'endif' at line 2"},
      {"\n{{ x", kTemplate, "without '}}' at line 2"},
      {"\n{# x", kTemplate, "without '#}' at line 2"},
      {"\n{% raw %} x", kTemplate, "without 'endraw' at line 2"},
      {"{{ 'x", kTemplate, "does not end"},
      {"{{ '\\ud800' }}", kTemplate, "not a character"},
      {"{{ '\\x4' }}", kTemplate, "truncated"},
      {"{{ é }}", kTemplate, "unexpected character 'é'"},
      {"{{ x ! y }}", kTemplate, "unexpected character '!'"},
      {"{{ (1] }}", kTemplate, "unexpected ']'"},
      {"\n{{ a.b }}", kTemplate, "'a' is undefined at line 2"},
      {"\n{{ 1 + none }}", kTemplate, "'+' does not work on int and NoneType at line 2"},
      {"{{ {}.foo.bar }}", kTemplate, "no attribute 'foo'"},
      {"{{ [].append(1) }}", kTemplate, "'append' would change a list"},
  });
}

TEST(HostileTemplates, BytesThatAreNoText) {
  const Error error = error_of("a\n\xff");
  EXPECT_EQ(error.code, ErrorCode::template_error);
  EXPECT_NE(error.message.find("not UTF-8 at line 2"), std::string::npos) << error.message;
  for (const char* source : {"{{ '\xc3' }}", "\xed\xa0\x80", "{{ x", "\xf5", "{", "{%", "{{", "{#"})
    error_of(source);
  error_of(std::string("{{ '\0' }}\0", 11));
}

TEST(HostileMessages, AreRefusedByPlace) {
  ChatTemplate::Input input;
  input.messages = {{{"role", "user"}, {"content", "a\xff"}}};
  const Error bytes = error_of("{{ messages[0].content }}", input);
  EXPECT_EQ(bytes.code, ErrorCode::invalid_argument);
  EXPECT_NE(bytes.message.find("messages[0].content is not valid UTF-8"), std::string::npos);

  Json deep = 1;
  for (int i = 0; i < 1000; ++i) deep = Json::array({std::move(deep)});
  input.messages = deep;
  EXPECT_NE(error_of("x", input).message.find("nested too deeply"), std::string::npos);

  input.messages = Json::parse("[18446744073709551615]");
  EXPECT_NE(error_of("x", input).message.find("messages[0] is a number beyond 64 bits"),
            std::string::npos);
}

// As deep as the limits allow, on the smallest stack that threads of this program have.
TEST(HostileTemplates, LimitsFitTheStack) {
  const std::string nested = repeated("(", 90) + "m(n - 1)" + repeated(" ~ 'x')", 90);
  const std::string source = "{% macro m(n) %}{% if n > 0 %}{% for i in [1] %}{{ [" + nested +
                             "] }}{% endfor %}{% endif %}{% endmacro %}{{ m(10000) }}";
  const Error error = error_of(source);
  EXPECT_NE(error.message.find("calls inside each other"), std::string::npos) << error.message;
}

}  // namespace
}  // namespace octavo
