#include "cli/command_line.h"

#include <gtest/gtest.h>

#include <map>

namespace octavo::cli {
namespace {

using Variables = std::map<std::string, std::string>;

Result<CommandLine> parse(const std::vector<std::string>& arguments,
                          const Variables& variables = {}) {
  return parse_command_line(arguments, [&](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
}

Invocation invocation(const std::vector<std::string>& arguments, const Variables& variables = {}) {
  auto line = parse(arguments, variables);
  if (!line) throw std::runtime_error(line.error().message);
  return std::get<Invocation>(*std::move(line));
}

TEST(CommandLine, FlagsStandAnywhereAndValuesFollowOrAreJoined) {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"generate", "m", "--top-k", "5", "--prompt", "a b"},
        {"generate", "--top-k=5", "m", "--prompt=a b"},
        {"generate", "--prompt", "a b", "--top-k=5", "--", "m"}}) {
    const Invocation call = invocation(arguments);
    EXPECT_EQ(call.command->command, Command::generate);
    EXPECT_EQ(call.positionals, std::vector<std::string>{"m"});
    EXPECT_EQ(call.options.integer("top_k"), 5);
    EXPECT_EQ(call.options.text("prompt"), "a b");
  }
}

TEST(CommandLine, TakesAnyTextAsAValue) {
  for (const std::string text :
       {"", "-", "-5", "[a,b]", "{}", "%%", "a=b", "--what", "--top-p is a flag", "é"}) {
    EXPECT_EQ(invocation({"generate", "m", "--prompt", text}).options.text("prompt"), text);
    EXPECT_EQ(invocation({"generate", "m", "--prompt=" + text}).options.text("prompt"), text);
  }
  EXPECT_EQ(invocation({"generate", "m", "--prompt=--json"}).options.text("prompt"), "--json");
}

TEST(CommandLine, SwitchesHaveOpposites) {
  EXPECT_FALSE(invocation({"generate", "m"}).options.flag("ignore_eos"));
  EXPECT_TRUE(invocation({"generate", "m", "--ignore-eos"}).options.flag("ignore_eos"));
  EXPECT_TRUE(invocation({"generate", "m"}).options.flag("skip_special_tokens"));
  EXPECT_FALSE(invocation({"generate", "m", "--no-skip-special-tokens"})
                   .options.flag("skip_special_tokens"));
  const Variables on = {{"OCTAVO_IGNORE_EOS", "on"}};
  EXPECT_TRUE(invocation({"generate", "m"}, on).options.flag("ignore_eos"));
  EXPECT_FALSE(invocation({"generate", "m", "--no-ignore-eos"}, on).options.flag("ignore_eos"));
}

TEST(CommandLine, SomeOptionsTakeAllWordsUpToTheNextFlag) {
  const Invocation call =
      invocation({"bench", "serve", "http://a", "--goodput", "ttft:1", "tpot:2", "--json"});
  EXPECT_EQ(call.options.all<std::string>("goodput"),
            (std::vector<std::string>{"ttft:1", "tpot:2"}));
  EXPECT_EQ(call.positionals, std::vector<std::string>{"http://a"});
}

TEST(CommandLine, WordsAreValuesOfTheirOwnWhereverTheyComeFrom) {
  const std::vector<std::string> names = {"a", "b", "c d"};
  EXPECT_EQ(invocation({"serve", "m", "--served-model-name", "a", "b", "--served-model-name=c d"})
                .options.all<std::string>("served_model_name"),
            names);
  EXPECT_EQ(invocation({"serve", "m"}, {{"OCTAVO_API_KEY", " one  two "}})
                .options.all<std::string>("api_key"),
            (std::vector<std::string>{"one", "two"}));
}

TEST(CommandLine, SomeArgumentsMayBeLeftOut) {
  EXPECT_TRUE(invocation({"bench", "serve"}).positionals.empty());
  EXPECT_FALSE(parse({"bench", "serve", "a", "b"}));
  EXPECT_FALSE(parse({"bench", "diff", "a"}));
}

TEST(CommandLine, RepeatableOptionsCollect) {
  const Invocation call = invocation({"generate", "m", "--stop", "a", "--stop=b", "--logit-bias",
                                      "1=2", "--logit-bias", "3=4,5=6"});
  EXPECT_EQ(call.options.all<std::string>("stop"), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(call.options.all<std::vector<LogitBias>>("logit_bias").size(), 2u);
}

TEST(CommandLine, FlagBeatsEnvironmentBeatsDefault) {
  const Variables variables = {
      {"OCTAVO_TOP_K", "7"}, {"OCTAVO_MIN_P", ""}, {"OCTAVO_PROMPT", "no"}};
  EXPECT_EQ(invocation({"generate", "m"}).options.integer("top_k"), 0);
  EXPECT_EQ(invocation({"generate", "m"}, variables).options.integer("top_k"), 7);
  EXPECT_EQ(invocation({"generate", "m", "--top-k", "3"}, variables).options.integer("top_k"), 3);
  EXPECT_FALSE(invocation({"generate", "m"}, variables).options.is_given("min_p"));
  EXPECT_FALSE(invocation({"generate", "m"}, variables).options.is_given("prompt"))
      << "a prompt is no setting";
}

// All that a Pod beside a Service named octavo finds in its environment.
Variables service_variables(const std::string& address) {
  return {{"OCTAVO_SERVICE_HOST", "10.96.0.12"},
          {"OCTAVO_SERVICE_PORT", "8000"},
          {"OCTAVO_SERVICE_PORT_HTTP", "8000"},
          {"OCTAVO_PORT", address},
          {"OCTAVO_PORT_8000_TCP", "tcp://10.96.0.12:8000"},
          {"OCTAVO_PORT_8000_TCP_PROTO", "tcp"},
          {"OCTAVO_PORT_8000_TCP_PORT", "8000"},
          {"OCTAVO_PORT_8000_TCP_ADDR", "10.96.0.12"}};
}

TEST(CommandLine, WhatKubernetesSaysOfAServiceIsNoSetting) {
  for (const std::string address :
       {"tcp://10.96.0.12:8000", "udp://10.96.0.12:8000", "sctp://[fd00::12]:8000"}) {
    const Variables variables = service_variables(address);
    const Invocation call = invocation({"serve", "m"}, variables);
    EXPECT_EQ(call.options.integer("port"), 8000);
    for (const OptionSpec* spec : options_of(Command::serve))
      EXPECT_FALSE(call.options.is_given(spec->name)) << spec->name;
    ASSERT_EQ(call.warnings.size(), 1u);
    EXPECT_NE(call.warnings[0].find("OCTAVO_PORT is '" + address + "'"), std::string::npos)
        << call.warnings[0];
    const Invocation given = invocation({"serve", "m", "--port", "81"}, variables);
    EXPECT_EQ(given.options.integer("port"), 81);
    EXPECT_TRUE(given.warnings.empty());
    EXPECT_TRUE(invocation({"generate", "m"}, variables).warnings.empty());
  }
}

TEST(CommandLine, AWrongPortIsStillRefused) {
  for (const std::string port : {"8000x", "10.96.0.12:8000", "http://10.96.0.12:8000", "70000"})
    EXPECT_FALSE(parse({"serve", "m"}, {{"OCTAVO_PORT", port}})) << port;
  EXPECT_FALSE(parse({"serve", "m", "--port", "tcp://10.96.0.12:8000"}));
  EXPECT_EQ(invocation({"serve", "m"}, {{"OCTAVO_PORT", "81"}}).options.integer("port"), 81);
}

TEST(CommandLine, HelpAndVersion) {
  for (const std::string word : {"--help", "-h", "help"})
    EXPECT_EQ(std::get<HelpRequest>(*parse({word})).command, nullptr) << word;
  EXPECT_EQ(std::get<HelpRequest>(*parse({"chat", "--top-p", "7", "-h"})).command->name, "chat");
  EXPECT_TRUE(std::holds_alternative<VersionRequest>(*parse({"--version"})));
}

TEST(CommandLine, ServeTakesItsModelByAFlagToo) {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"serve", "--port", "1", "--model", "m"}, {"serve", "m"}}) {
    const auto line = parse(arguments);
    ASSERT_TRUE(line) << line.error().message;
    EXPECT_EQ(std::get<Invocation>(*line).positionals, std::vector<std::string>{"m"});
  }
  // Of a server under load it is the name that the request has.
  const auto load = parse({"bench", "serve", "--model", "m"});
  ASSERT_TRUE(load);
  EXPECT_TRUE(std::get<Invocation>(*load).positionals.empty());
}

struct BadCase {
  std::vector<std::string> arguments;
  std::vector<std::string> words;  // that the message has
  Variables variables = {};
};

TEST(CommandLine, RefusesWithASentenceThatNamesTheThing) {
  const std::vector<BadCase> cases = {
      {{}, {"needs a command"}},
      {{"generat"}, {"'generat'", "did you mean generate?"}},
      {{"launch"}, {"'launch'", "octavo --help"}},
      {{"--verison"}, {"'--verison'", "did you mean --version?"}},
      {{"generate"}, {"needs MODEL"}},
      {{"serve"}, {"needs MODEL"}},
      {{"serve", "a", "--model", "b"}, {"'a'", "--model 'b'"}},
      {{"perplexity", "m"}, {"needs FILE"}},
      {{"bench"}, {"needs compare or throughput or latency"}},
      {{"bench", "race", "m", "kv-cache"}, {"'race'", "compare or throughput or latency"}},
      {{"bench", "latency"}, {"needs MODEL"}},
      {{"bench", "latency", "m", "--contexts", "1"}, {"bench latency has no flag '--contexts'"}},
      {{"bench", "latency", "m", "--depth", "1,-1"}, {"--depth", "'1,-1'"}},
      {{"generate", "m", "hello", "world"}, {"'hello'", "quotes"}},
      {{"generate", "m", "--temprature", "1"}, {"'--temprature'", "did you mean --temperature?"}},
      {{"generate", "m", "--frobnicate"}, {"'--frobnicate'", "octavo generate --help"}},
      {{"generate", "m", "-x"}, {"'-x'"}},
      {{"chat", "m", "--json"}, {"octavo chat has no flag '--json'"}},
      {{"generate", "m", "--seed"}, {"--seed needs a value"}},
      {{"generate", "m", "--prompt", "--json"}, {"--prompt needs a value", "--prompt=--json"}},
      {{"generate", "m", "--prompt", "--top-p=1"}, {"--prompt needs a value"}},
      {{"generate", "m", "--json=yes"}, {"--json takes no value", "--no-json"}},
      {{"generate", "m", "--json", "--json"}, {"--json is given twice"}},
      {{"generate", "m", "--json", "--no-json"}, {"--no-json is given twice"}},
      {{"generate", "m", "--top-k", "1", "--top-k", "2"}, {"--top-k is given twice"}},
      {{"generate", "m", "--top-p", "1.1"}, {"--top-p is '1.1'", "more than 0, at most 1"}},
      {{"generate", "m", "--max-tokens", "-1"}, {"--max-tokens is '-1'", "0 to 2147483647"}},
      {{"generate", "m", "--prompt", "a\xFF"}, {"--prompt", "not UTF-8 at byte 1"}},
      {{"generate", "m"}, {"OCTAVO_TOP_P is 'nan'"}, {{"OCTAVO_TOP_P", "nan"}}},
      {{"generate", "m"}, {"OCTAVO_JSON is 'maybe'", "on, off"}, {{"OCTAVO_JSON", "maybe"}}},
  };
  for (const BadCase& c : cases) {
    const auto line = parse(c.arguments, c.variables);
    const std::string shown = ::testing::PrintToString(c.arguments);
    ASSERT_FALSE(line) << shown;
    EXPECT_EQ(line.error().code, ErrorCode::invalid_argument) << shown;
    for (const std::string& word : c.words)
      EXPECT_NE(line.error().message.find(word), std::string::npos)
          << shown << ": " << line.error().message;
  }
}

}  // namespace
}  // namespace octavo::cli
