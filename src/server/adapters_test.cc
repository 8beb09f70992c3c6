#include "server/adapters.h"

#include <gtest/gtest.h>

#include <thread>

namespace octavo {
namespace {

// Adapters are told apart by where they are; nothing here looks into one.
Adapters::Adapter some_adapter(const char* place) {
  return {std::shared_ptr<const void>(), reinterpret_cast<const LoraAdapter*>(place)};
}
Adapters::Load gives(const char* place) {
  return [place](const std::string&) -> Result<Adapters::Adapter> { return some_adapter(place); };
}

int status(const ApiResult<void>& result) { return result ? 200 : result.error().status; }

TEST(Adapters, ComeAndGoByName) {
  Adapters adapters(2, {"model"});
  const char *one = "1", *two = "2";
  EXPECT_EQ(adapters.find("a"), nullptr);
  EXPECT_EQ(status(adapters.load({"a", "x"}, false, gives(one))), 200);
  EXPECT_EQ(adapters.find("a"), some_adapter(one));
  EXPECT_EQ(status(adapters.load({"a", "x"}, false, gives(two))), 400);
  EXPECT_EQ(adapters.find("a"), some_adapter(one));
  EXPECT_EQ(status(adapters.load({"a", "x"}, true, gives(two))), 200);
  EXPECT_EQ(adapters.find("a"), some_adapter(two));
  EXPECT_EQ(status(adapters.load({"b", "x"}, true, gives(one))), 200);
  EXPECT_EQ(adapters.names(), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(status(adapters.load({"c", "x"}, true, gives(one))), 400);  // too many
  EXPECT_TRUE(adapters.unload("a"));
  EXPECT_FALSE(adapters.unload("a"));
  EXPECT_EQ(adapters.find("a"), nullptr);
  EXPECT_EQ(status(adapters.load({"c", "x"}, false, gives(one))), 200);
}

TEST(Adapters, NamesStandForTheModelOrForOne) {
  Adapters adapters(2, {"model", "alias"});
  const char* place = "1";
  ASSERT_EQ(status(adapters.load({"a", "x"}, false, gives(place))), 200);
  const auto resolve = [&](std::optional<std::string> name) { return adapters.resolve(name); };
  EXPECT_EQ(*resolve("model"), nullptr);
  EXPECT_EQ(*resolve("alias"), nullptr);
  EXPECT_EQ(*resolve("a"), some_adapter(place));
  std::optional<std::string> none;
  EXPECT_EQ(*adapters.resolve(none), nullptr);
  EXPECT_EQ(none, "model");
  for (const char* unknown : {"", "b", "A"}) {
    const auto refused = resolve(unknown);
    ASSERT_FALSE(refused) << unknown;
    EXPECT_EQ(refused.error().status, 404);
    EXPECT_EQ(refused.error().param, "model");
    EXPECT_TRUE(refused.error().message.ends_with("served here: model, alias, a"));
  }
}

TEST(Adapters, NamesAreChecked) {
  Adapters adapters(20, {"model", "alias"});
  for (const std::string& name :
       {std::string(), std::string("a b"), std::string("a\n"), std::string("model"),
        std::string("alias"), std::string(300, 'a'), std::string("a\0b", 3)})
    EXPECT_EQ(status(adapters.load({name, "x"}, true, gives("1"))), 400) << name;
}

TEST(Adapters, WhatCannotBeLoadedIsNotThere) {
  Adapters adapters(2, {});
  const auto fails = [](ErrorCode code) {
    return [code](const std::string&) -> Result<Adapters::Adapter> { return fail(code, "why"); };
  };
  EXPECT_EQ(status(adapters.load({"a", "x"}, false, fails(ErrorCode::not_found))), 404);
  EXPECT_EQ(status(adapters.load({"a", "x"}, false, fails(ErrorCode::unsupported))), 400);
  EXPECT_EQ(adapters.find("a"), nullptr);
}

TEST(Adapters, OneIsLoadedAtATime) {
  Adapters adapters(2, {});
  int second = 0;
  const auto load = [&](const std::string&) -> Result<Adapters::Adapter> {
    std::thread([&] { second = status(adapters.load({"b", "x"}, false, gives("2"))); }).join();
    return some_adapter("1");
  };
  EXPECT_EQ(status(adapters.load({"a", "x"}, false, load)), 200);
  EXPECT_EQ(second, 409);
  EXPECT_EQ(adapters.find("b"), nullptr);
}

}  // namespace
}  // namespace octavo
