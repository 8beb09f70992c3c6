#include "cli/lora_options.h"

#include <gtest/gtest.h>

namespace octavo::cli {
namespace {

TEST(LoraOptions, ModulesHaveTwoForms) {
  const auto plain = parse_lora_module("sql=/models/sql=v2");
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->name, "sql");
  EXPECT_EQ(plain->path, "/models/sql=v2");
  const auto json = parse_lora_module(R"({"name": "sql", "path": "/a b", "base_model_name": "m"})");
  ASSERT_TRUE(json);
  EXPECT_EQ(json->name, "sql");
  EXPECT_EQ(json->path, "/a b");
}

TEST(LoraOptions, OtherFormsAreRefused) {
  for (const char* text :
       {"", "sql", "=path", "sql=", "{", R"({"name": "a"})", R"({"path": "a"})",
        R"({"name": 1, "path": "a"})", R"({"name": "a", "path": "b", "r": 1})"}) {
    const auto module = parse_lora_module(text);
    ASSERT_FALSE(module) << text;
    EXPECT_NE(module.error().message.find("--lora-modules"), std::string::npos);
  }
}

}  // namespace
}  // namespace octavo::cli
