#include "core/option_table.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

namespace octavo {
namespace {

constexpr std::array<std::string_view, 2> kTypes = {"auto", "float32"};
constexpr std::array<std::string_view, 2> kSizes = {"16", "32"};

OptionSpec spec_of(OptionKind kind, double lowest = 0, double highest = 0) {
  return {"some_option", kind, "X", "", "helps", lowest, highest};
}

OptionSpec or_auto() {
  OptionSpec spec = spec_of(OptionKind::integer, 0, 9);
  spec.word_for_zero = "auto";
  return spec;
}

OptionSpec with_units(OptionKind kind) {
  OptionSpec spec = spec_of(kind, 1, 1e12);
  spec.has_units = true;
  spec.word_for_zero = "auto";
  return spec;
}

OptionSpec not_empty() {
  OptionSpec spec = spec_of(OptionKind::text);
  spec.refuses_empty = true;
  return spec;
}

OptionSpec top_p() {
  OptionSpec spec = spec_of(OptionKind::number, 0, 1);
  spec.above_lowest = true;
  return spec;
}

OptionSpec choice(OptionKind kind, std::span<const std::string_view> choices) {
  OptionSpec spec = spec_of(kind);
  spec.choices = choices;
  return spec;
}

using Expected = std::variant<bool, int64_t, uint64_t, double, std::string, std::vector<int64_t>>;

struct GoodCase {
  OptionSpec spec;
  std::string text;
  Expected value;
};

TEST(OptionTable, TakesGoodValues) {
  const std::vector<GoodCase> cases = {
      {spec_of(OptionKind::flag), "on", true},
      {spec_of(OptionKind::flag), "1", true},
      {spec_of(OptionKind::flag), "true", true},
      {spec_of(OptionKind::flag), "off", false},
      {spec_of(OptionKind::flag), "0", false},
      {spec_of(OptionKind::flag), "false", false},
      {spec_of(OptionKind::integer, -1, 5), "-1", int64_t{-1}},
      {spec_of(OptionKind::integer, -1, 5), "5", int64_t{5}},
      {choice(OptionKind::integer, kSizes), "32", int64_t{32}},
      {or_auto(), "auto", int64_t{0}},
      {or_auto(), "7", int64_t{7}},
      {with_units(OptionKind::integer), "8k", int64_t{8000}},
      {with_units(OptionKind::integer), "4GiB", int64_t{4} << 30},
      {with_units(OptionKind::integer), "auto", int64_t{0}},
      {with_units(OptionKind::integer_list), "512,8K,1.5k", std::vector<int64_t>{512, 8192, 1500}},
      {not_empty(), "key", std::string("key")},
      {spec_of(OptionKind::number, -2, 2), "-2", -2.0},
      {spec_of(OptionKind::number, -2, 2), "1e-9", 1e-9},
      {spec_of(OptionKind::number, -2, 2), "2", 2.0},
      {top_p(), "1", 1.0},
      {top_p(), "1e-300", 1e-300},
      {spec_of(OptionKind::seed), "18446744073709551615", uint64_t{18446744073709551615u}},
      {spec_of(OptionKind::seed), "0", uint64_t{0}},
      {spec_of(OptionKind::text), "", std::string()},
      {spec_of(OptionKind::text), "[a, b] {} --c", std::string("[a, b] {} --c")},
      {choice(OptionKind::choice, kTypes), "float32", std::string("float32")},
      {spec_of(OptionKind::integer_list, 0, 9), "1,2,9", std::vector<int64_t>{1, 2, 9}},
      {spec_of(OptionKind::integer_list, 0, 9), "7", std::vector<int64_t>{7}},
  };
  for (const GoodCase& c : cases) {
    const auto value = parse_option(c.spec, c.text, "--some-option");
    ASSERT_TRUE(value) << c.text << ": " << value.error().message;
    std::visit(
        [&]<class T>(const T& expected) {
          ASSERT_TRUE(std::holds_alternative<T>(*value)) << c.text;
          EXPECT_EQ(std::get<T>(*value), expected) << c.text;
        },
        c.value);
  }
}

TEST(OptionTable, ReadsBiases) {
  const auto value = parse_option(spec_of(OptionKind::logit_bias), "5=-100,7=2.5", "--logit-bias");
  ASSERT_TRUE(value) << value.error().message;
  const auto& biases = std::get<std::vector<LogitBias>>(*value);
  ASSERT_EQ(biases.size(), 2u);
  EXPECT_EQ(biases[0].id, TokenId{5});
  EXPECT_EQ(biases[0].bias, -100.0f);
  EXPECT_EQ(biases[1].id, TokenId{7});
  EXPECT_EQ(biases[1].bias, 2.5f);
}

struct BadCase {
  OptionSpec spec;
  std::vector<std::string> texts;
  std::string allowed;
};

TEST(OptionTable, RefusesBadValuesAndSaysWhatIsAllowed) {
  const std::vector<BadCase> cases = {
      {spec_of(OptionKind::flag), {"", "yes", "ON", "2"}, "on, off"},
      {spec_of(OptionKind::integer, -1, 2147483647),
       {"", "-2", "1.5", "x", "1x", " 1", "1 ", "+1", "0x10", "1e3", "2147483648",
        "9223372036854775808", "--1"},
       "an integer, -1 to 2147483647"},
      {or_auto(), {"", "Auto", "autos", "-1", "10"}, "an integer, 0 to 9, or auto"},
      {with_units(OptionKind::integer),
       {"", "0", "0k", "8kk", "2T", "1.0001k", "-1k"},
       "an integer, 1 to 1000000000000, also as in 8k or 4GiB, or auto"},
      {spec_of(OptionKind::integer, 1, 9000), {"8k"}, "an integer, 1 to 9000"},
      {not_empty(), {""}, "text that is not empty"},
      {choice(OptionKind::integer, kSizes), {"", "17", "016", "32.0", "thirty"}, "16, 32"},
      {spec_of(OptionKind::number, -2, 2),
       {"", "nan", "-nan", "inf", "-inf", "2.0001", "-2.0001", "1e999", "1,5", "0x1p3"},
       "a number, -2 to 2"},
      {spec_of(OptionKind::number, 0, 1.7976931348623157e308),
       {"inf", "nan", "-1e-9", "1e999"},
       "a number, 0 or more"},
      {top_p(), {"0", "-0", "1.1", "nan"}, "a number, more than 0, at most 1"},
      {spec_of(OptionKind::seed),
       {"", "-1", "1.0", "18446744073709551616"},
       "18446744073709551615"},
      {choice(OptionKind::choice, kTypes), {"", "int8", "Auto", "auto "}, "auto, float32"},
      {spec_of(OptionKind::integer_list, 0, 9),
       {"", "1,", ",1", "1,,2", "1, 2", "10", "-1", "1;2"},
       "each 0 to 9"},
      {spec_of(OptionKind::logit_bias),
       {"", "5", "5=", "=1", "5=x", "5=nan", "5=100.1", "-1=1", "5=1,", "2147483648=1"},
       "-100 to 100"},
  };
  for (const BadCase& c : cases) {
    for (const std::string& text : c.texts) {
      const auto value = parse_option(c.spec, text, "--some-option");
      ASSERT_FALSE(value) << "'" << text << "' for " << c.allowed;
      EXPECT_EQ(value.error().code, ErrorCode::invalid_argument);
      EXPECT_NE(value.error().message.find("--some-option is '" + text + "'"), std::string::npos)
          << value.error().message;
      EXPECT_NE(value.error().message.find(c.allowed), std::string::npos) << value.error().message;
    }
  }
}

TEST(OptionTable, TextHoldsNoNul) {
  const auto value =
      parse_option(spec_of(OptionKind::text), std::string_view("a\0b", 3), "--some-option");
  ASSERT_FALSE(value);
  EXPECT_NE(value.error().message.find("'a?b'; allowed: text without U+0000"), std::string::npos);
}

TEST(OptionTable, MessagesStayOnOneShortLine) {
  const std::string text = "\x1b[2J\n" + std::string(1000, 'x');
  const auto value = parse_option(spec_of(OptionKind::integer, 0, 1), text, "--n");
  ASSERT_FALSE(value);
  EXPECT_EQ(value.error().message.find_first_of("\x1b\n"), std::string::npos);
  EXPECT_LT(value.error().message.size(), 200u);
}

TEST(OptionTable, Names) {
  EXPECT_EQ(flag_of("max_num_batched_tokens"), "--max-num-batched-tokens");
  EXPECT_EQ(variable_of("max_num_batched_tokens"), "OCTAVO_MAX_NUM_BATCHED_TOKENS");
}

TEST(OptionTable, NearestName) {
  const std::vector<std::string> names = {"--temperature", "--top-p", "--top-k", "--n",
                                          "--max-tokens"};
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"--temprature", "--temperature"},
      {"--topp", "--top-p"},
      {"--top_p", "--top-p"},
      {"--max-token", "--max-tokens"},
      {"--temp", "--temperature"},
      {"--xyzabc", ""},
      {"", ""},
      {"--tpo-k", "--top-k"},
      {"completely-different", ""},
      {"--x", "--n"},
      {std::string(500, 'a'), ""},
  };
  for (const auto& [name, expected] : cases) EXPECT_EQ(nearest_name(name, names), expected) << name;
}

}  // namespace
}  // namespace octavo
