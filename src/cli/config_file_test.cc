#include "cli/config_file.h"

#include <gtest/gtest.h>

#include <map>

#include "cli/command_line.h"
#include "support/temp_folder.h"

namespace octavo::cli {
namespace {

using Variables = std::map<std::string, std::string>;

Result<Invocation> parse(std::vector<std::string> arguments, const Variables& variables = {}) {
  auto line =
      parse_command_line(arguments, [&](const std::string& name) -> std::optional<std::string> {
        const auto found = variables.find(name);
        return found == variables.end() ? std::nullopt : std::optional(found->second);
      });
  if (!line) return tl::unexpected<Error>(line.error());
  return std::get<Invocation>(*std::move(line));
}

// generate with this file.
struct ConfigFile : ::testing::Test {
  Result<Invocation> generate(const std::string& toml, std::vector<std::string> flags = {},
                              const Variables& variables = {}) {
    std::vector<std::string> arguments = {"generate", "m", "--config",
                                          folder.write("config.toml", toml)};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    return parse(arguments, variables);
  }
  testing::TempFolder folder;
};

TEST_F(ConfigFile, EveryKindOfValue) {
  const auto call = generate(R"(
# settings
top-p = 0.5
temperature = 1
max_tokens = 1_000
seed = 0x10
json = true
dtype = "float32"
stop = ["a", "b"]
stop-token-ids = [3, 4]
logit_bias = ["1=2", "3=-4.5"]
ignore_eos = false
)");
  ASSERT_TRUE(call) << call.error().message;
  const OptionValues& options = call->options;
  EXPECT_EQ(options.get<double>("top_p"), 0.5);
  EXPECT_EQ(options.get<double>("temperature"), 1);
  EXPECT_EQ(options.integer("max_tokens"), 1000);
  EXPECT_EQ(options.get<uint64_t>("seed"), 16u);
  EXPECT_TRUE(options.flag("json"));
  EXPECT_EQ(options.text("dtype"), "float32");
  EXPECT_EQ(options.all<std::string>("stop"), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(options.get<std::vector<int64_t>>("stop_token_ids"), (std::vector<int64_t>{3, 4}));
  EXPECT_EQ(options.get<std::vector<LogitBias>>("logit_bias")[1].bias, -4.5f);
  EXPECT_TRUE(options.is_given("ignore_eos"));
}

TEST_F(ConfigFile, FlagBeatsEnvironmentBeatsFileBeatsDefault) {
  const std::string toml = "top_k = 1\nstop = ['file']\n";
  const Variables variables = {{"OCTAVO_TOP_K", "2"}};
  EXPECT_EQ(generate("# nothing")->options.integer("top_k"), 0);
  EXPECT_EQ(generate(toml)->options.integer("top_k"), 1);
  EXPECT_EQ(generate(toml, {}, variables)->options.integer("top_k"), 2);
  EXPECT_EQ(generate(toml, {"--top-k=3"}, variables)->options.integer("top_k"), 3);
  // What is repeatable is replaced, not joined.
  EXPECT_EQ(generate(toml, {"--stop", "flag"})->options.all<std::string>("stop"),
            std::vector<std::string>{"flag"});
}

TEST_F(ConfigFile, MayBeNamedByTheEnvironment) {
  const std::string path = folder.write("other.toml", "top_k = 9");
  const auto call = parse({"generate", "m"}, {{"OCTAVO_CONFIG", path}});
  ASSERT_TRUE(call) << call.error().message;
  EXPECT_EQ(call->options.integer("top_k"), 9);
}

TEST_F(ConfigFile, RefusesAndNamesTheLine) {
  struct Case {
    std::string toml;
    std::vector<std::string> words;
  };
  const std::vector<Case> cases = {
      {"\ntemprature = 1", {"config.toml:2:", "'temprature'", "did you mean temperature?"}},
      {"frobnicate = 1", {"config.toml:1:", "'frobnicate'", "no setting"}},
      {"config = 'other.toml'", {"config.toml:1:", "'config'", "cannot name another"}},
      {"confi = 'other.toml'", {"'confi'; settings are named as the flags are"}},
      {"no_json = true", {"'no_json'"}},
      {"\n\ntop_p = 1.5", {"config.toml:3: top_p is '1.5'", "more than 0, at most 1"}},
      {"top_p = nan", {"top_p is 'nan'"}},
      {"top_p = '0.5'", {"top_p takes a number"}},
      {"top_k = 1.5", {"top_k takes an integer"}},
      {"top_k = true", {"top_k takes an integer"}},
      {"top_k = [1]", {"top_k takes an integer"}},
      {"json = 'on'", {"json takes true or false"}},
      {"json = 1", {"json takes true or false"}},
      {"dtype = 5", {"dtype takes text"}},
      {"dtype = 'float8'", {"dtype is 'float8'", "auto, float32"}},
      {"stop = ['a', 1]", {"stop takes text"}},
      {"stop_token_ids = ['a']", {"stop_token_ids takes a list of integers"}},
      {"stop_token_ids = [1.5]", {"stop_token_ids takes a list of integers"}},
      {"seed = -1", {"seed is '-1'"}},
      {"top_k = 2020-01-01", {"top_k takes an integer"}},
      {"top_p = 1\ntop-p = 1", {"given twice"}},
      {"top_p = 1\ntop_p = 1", {"config.toml:2:"}},
      {"[generate]\ntop_p = 1", {"config.toml:1:", "section"}},
      {"top_p", {"config.toml:1:"}},
      {"top_p = 99999999999999999999", {"config.toml:1:"}},
      {"x = " + std::string(100000, '['), {"config.toml:1:"}},
      {"top_p = 1 # \xFF", {"not UTF-8"}},
      {std::string("top_p = 1\0", 10), {"config.toml:1:"}},
  };
  for (const Case& c : cases) {
    const auto call = generate(c.toml);
    ASSERT_FALSE(call) << c.toml.substr(0, 100);
    EXPECT_EQ(call.error().code, ErrorCode::invalid_argument) << c.toml.substr(0, 100);
    for (const std::string& word : c.words)
      EXPECT_NE(call.error().message.find(word), std::string::npos)
          << c.toml.substr(0, 100) << ": " << call.error().message;
  }
}

TEST_F(ConfigFile, IsRefusedIfItCannotBeRead) {
  EXPECT_EQ(parse({"generate", "m", "--config", folder.file("none.toml")}).error().code,
            ErrorCode::not_found);
  EXPECT_EQ(generate(std::string(2 << 20, '#')).error().code, ErrorCode::resource_exhausted);
  EXPECT_FALSE(parse({"generate", "m", "--config", "/"}));
  EXPECT_EQ(parse({"tokenize", "m", "--config", "x"}).error().code, ErrorCode::invalid_argument);
}

}  // namespace
}  // namespace octavo::cli
