// Who wrote which byte of a prompt: users' text stays content through everything a template can do
// with it.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "text/chat_input.h"
#include "text/chat_template.h"
#include "text/jinja_text.h"

namespace octavo {
namespace {

using Json = nlohmann::ordered_json;
using jinja::Text;

// Spans in one line: template text as it is, content in «».
std::string marked(const std::vector<TextSpan>& spans) {
  std::string text;
  for (const TextSpan& span : spans) text += span.is_template ? span.text : "«" + span.text + "»";
  return text;
}

std::string render(const std::string& source) {
  ChatTemplate::Input input;
  input.messages = Json::parse(R"([{"role": "user", "content": "ab cd"},
                                   {"role": "<|evil|>", "content": "éX"}])");
  input.tools = Json::parse(R"([{"name": "f", "n": 1}])");
  input.extra = Json::parse(R"({"kw": "K", "pad": " q\nr ", "d": {"k": "v", "n": 7}})");
  input.bos_token = "<s>";
  input.eos_token = "</s>";
  const auto chat = ChatTemplate::parse(source);
  if (!chat) return "parse error: " + chat.error().message;
  const auto spans = chat->render(input);
  return spans ? marked(*spans) : "error: " + spans.error().message;
}

struct Case {
  const char* source;  // c: the first message's content, "ab cd"
  const char* expected;
};

TEST(ChatProvenance, IsKeptThroughEveryOperation) {
  const Case cases[] = {
      {"a{{ c }}b", "a«ab cd»b"},
      {"{{ bos_token }}{{ c }}{{ eos_token }}", "<s>«ab cd»</s>"},
      {"{{ kw }}{{ d.k }}{{ tools[0].name }}", "«Kvf»"},
      {"{{ 'x' + c + 'y' }}", "x«ab cd»y"},
      {"{{ 'x' ~ c ~ 1 ~ c }}", "x«ab cd»1«ab cd»"},
      {"{{ ('x' + c + 'y')[:3] }}|{{ ('x' + c + 'y')[-2:] }}", "x«ab»|«d»y"},
      {"{{ ('x' + c + 'y')[::-1] }}{{ ('x' + c)[0] }}{{ ('x' + c)[1] }}", "y«dc ba»xx«a»"},
      {"{{ ('x' + c) * 2 }}", "x«ab cd»x«ab cd»"},
      {"{{ [c, 'x', c]|join('-') }}", "«ab cd»-x-«ab cd»"},
      {"{{ ['x', 'y']|join(c) }}{{ c.join(['1', '2']) }}", "x«ab cd»y1«ab cd»2"},
      {"{{ c|replace('b', '<B>') }}", "«a»<B>« cd»"},
      {"{{ 'x#y'|replace('#', c) }}{{ 'x#y'.replace('#', c) }}", "x«ab cd»yx«ab cd»y"},
      {"{{ ('  x' + pad)|trim }}{{ pad.strip() }}{{ pad|trim|upper }}", "x« q\nrq\nrQ\nR»"},
      {"{{ ('x' + c)|upper }}{{ ('X' + c).lower() }}{{ c|title }}{{ c|capitalize }}",
       "X«AB CD»x«ab cdAb CdAb cd»"},
      {"{{ ('x ' + c).split() | join('/') }}{{ c.split('b')[-1] }}", "x/«ab»/«cd cd»"},
      {"{{ c|reverse }}{{ c|first }}{{ c|last }}{{ c|list|last }}", "«dc baadd»"},
      {"{{ ('x\n' + pad)|indent(2) }}", "x«\n»  « q\n»  «r »"},
      {"{{ c|string }}{{ c|safe }}{{ missing|default(c) }}{{ c|default('x') }}",
       "«ab cdab cdab cdab cd»"},
      {"{{ [c] }}{{ {'k': c} }}{{ ['x'] }}", "«['ab cd']{'k': 'ab cd'}»['x']"},
      {"{{ c|tojson }}{{ tools|tojson }}{{ ['x']|tojson }}",
       "«\"ab cd\"[{\"name\": \"f\", \"n\": 1}]»[\"x\"]"},
      {"{{ [1]|tojson(indent=c) }}", "«[\nab cd1\n]»"},
      {"{% set x %}<{{ c }}>{% endset %}{{ x }}{{ x|length }}", "<«ab cd»>7"},
      {"{% macro m(v) %}<{{ v }}>{% endmacro %}{{ m(c) }}{{ m('t') }}", "<«ab cd»><t>"},
      {"{% filter upper %}x{{ c }}{% endfilter %}", "X«AB CD»"},
      {"{% set ns = namespace(t='') %}{% for m in messages %}{% set ns.t = ns.t + m.content + ';' "
       "%}"
       "{% endfor %}{{ ns.t }}",
       "«ab cd»;«éX»;"},
      {"{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}", "«k»=«v»;«n»=7;"},
      {"{% for k, v in d|dictsort %}{{ k }}{% endfor %}{{ d|list|first }}", "«knk»"},
      {"{% for x in c %}{{ x }}.{% endfor %}", "«a».«b».« ».«c».«d»."},
      {"{{ messages|map(attribute='content')|join(',') }}", "«ab cd»,«éX»"},
      {"{{ messages|map(attribute='content')|map('upper')|list|last }}", "«ÉX»"},
      {"{{ [c, 'ab']|sort|join(',') }}{{ [c, c]|unique|join }}", "ab,«ab cdab cd»"},
      {"{{ 'yes' if c == 'ab cd' }}{{ 'in' if 'b c' in c }}", "yesin"},
      {"{{ c.title() }}{{ c.removeprefix('a') }}{{ c.splitlines()[0] }}", "«Ab Cdb cdab cd»"},
      {"{{ c and 'x' }}{{ c or 'x' }}", "x«ab cd»"},
      {"{{ strftime_now('%Y' ~ c) }}", "1970«ab cd»"},
      {"{{ '<%s|%6s|%r>' % (c, 'x', c) }}{{ (c ~ '%s') % 't' }}",
       "<«ab cd»|     x|«'ab cd'»>«ab cd»t"},
      {"{{ '<%s>'|format(c) }}{{ '{}|{k}'.format('t', k=c) }}", "<«ab cd»>t|«ab cd»"},
      {"{{ '{:<7}|{!r}|{d[k]}'.format(c, c, d=d) }}", "«ab cd»  |«'ab cd'»|«v»"},
      {"{{ ('{}' ~ c).format('t') }}{{ '{:{}}'.format('t', kw ~ '<3') }}", "t«ab cd»t«KK»"},
      {"{{ c.partition(' ')|join('|') }}{{ ('x-' + c).rpartition('-')[2] }}", "«ab»|« »|«cdab cd»"},
      {"{{ 't'.center(3, kw) }}{{ kw.rjust(3) }}{{ kw.zfill(2) }}", "«K»t«K»  «K»0«K»"},
      {"{{ c|truncate(4, true, '.', 0) }}{{ 'abcdef'|truncate(3, true, kw, 0) }}", "«ab ».ab«K»"},
      {"{% macro m() %}{{ kwargs }}{% endmacro %}{{ m(**d) }}{{ dict(**d) }}{{ dict(d, z='t') }}",
       "«{'k': 'v', 'n': 7}{'k': 'v', 'n': 7}{'k': 'v', 'n': 7, 'z': 't'}»"},
      {"{% macro m() %}{% for k in kwargs %}{{ k }}{% endfor %}{% endmacro %}{{ m(**d) }}", "«kn»"},
      {"{% for m in [c, ['t', c]] recursive %}{{ m if m is string else loop(m) }};{% endfor %}",
       "«ab cd»;t;«ab cd»;;"},
      {"{% for g in messages|groupby('content') %}{{ g.grouper }}{{ g.list|length }}{% endfor %}",
       "«ab cd»1«éX»1"},
      {"{% set j = joiner(kw) %}{{ j() }}{{ j() }}{% set y = cycler(c, 't') %}{{ y.next() }}"
       "{{ y.current }}",
       "«Kab cd»t"},
      {"{% print c %}{{ c.format() }}{{ '{k}'.format_map(d) }}", "«ab cdab cdv»"},
      // A usual role may become part of a control token; any other is content.
      {"{% for m in messages %}<|{{ m.role }}|>{% endfor %}", "<|user|><|«<|evil|>»|>"},
      {"{{ messages[0].role + c }}{{ messages[0]|tojson }}",
       "user«ab cd{\"role\": \"user\", \"content\": \"ab cd\"}»"},
  };
  for (const Case& item : cases)
    EXPECT_EQ(render("{% set c = messages[0].content %}" + std::string(item.source)), item.expected)
        << item.source;
}

TEST(ChatProvenance, SpansAlternateAndNoneIsEmpty) {
  const auto chat = ChatTemplate::parse("{{ '' }}a{{ x }}{{ '' }}{{ x }}b{{ 'c' }}{{ y }}");
  ASSERT_TRUE(chat);
  ChatTemplate::Input input;
  input.extra = {{"x", "1"}, {"y", ""}};
  const auto spans = chat->render(input);
  ASSERT_TRUE(spans);
  ASSERT_EQ(spans->size(), 3u);
  EXPECT_EQ((*spans)[1].text, "11");
  EXPECT_EQ((*spans)[2].text, "bc");
}

TEST(MarkedText, SlicesAnywhere) {
  Text text("abc", true);
  text.append("DEF", false);
  text.append("ghi", true);
  for (size_t begin = 0; begin <= text.size(); ++begin)
    for (size_t end = begin; end <= text.size(); ++end) {
      const Text piece = text.slice(begin, end);
      ASSERT_EQ(piece.bytes(), text.bytes().substr(begin, end - begin));
      for (size_t i = 0; i < piece.size(); ++i)
        ASSERT_EQ(piece.is_template_at(i), text.is_template_at(begin + i));
    }
  EXPECT_FALSE(text.slice(0, 3).has_content());
  EXPECT_TRUE(text.slice(3, 4).has_content());
}

}  // namespace
}  // namespace octavo
