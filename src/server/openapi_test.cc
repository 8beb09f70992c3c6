#include "server/openapi.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "server/api_fields.h"

namespace octavo {
namespace {

using Json = nlohmann::ordered_json;

ApiLimits limits() {
  return {.vocab_size = 100, .max_model_len = 64, .has_priorities = true, .max_choices = 256};
}

Json document(bool needs_key = false) {
  return Json::parse(openapi_json({.limits = limits(), .needs_key = needs_key}));
}

void expect_references_resolve(const Json& json, const Json& root) {
  if (json.is_object() && json.contains("$ref")) {
    const std::string target = json["$ref"].get<std::string>().substr(1);
    EXPECT_TRUE(root.contains(Json::json_pointer(target))) << target;
  }
  for (const auto& item : json)
    if (item.is_structured()) expect_references_resolve(item, root);
}

TEST(OpenApi, DescribesAllRoutes) {
  const Json json = document();
  for (const std::string path :
       {"/v1/chat/completions", "/v1/completions", "/v1/embeddings", "/v1/models",
        "/v1/models/{id}", "/tokenize", "/detokenize", "/tokenizer_info", "/health", "/ready",
        "/version", "/metrics", "/load", "/v1/requests", "/v1/load_lora_adapter",
        "/v1/unload_lora_adapter", "/openapi.json", "/"})
    EXPECT_TRUE(json["paths"].contains(path)) << path;
  expect_references_resolve(json, json);
  const Json& chat = json["paths"]["/v1/chat/completions"]["post"]["responses"];
  for (const std::string status :
       {"200", "400", "401", "403", "404", "405", "408", "411", "413", "415", "429", "500", "503"})
    EXPECT_TRUE(chat.contains(status)) << status;
  EXPECT_TRUE(chat["200"]["content"].contains("text/event-stream"));
}

TEST(OpenApi, KeysAreAskedForWhereTheyAreNeeded) {
  const Json open = document()["paths"], closed = document(true)["paths"];
  EXPECT_FALSE(open["/v1/models"]["get"].contains("security"));
  EXPECT_TRUE(closed["/v1/models"]["get"].contains("security"));
  EXPECT_FALSE(closed["/health"]["get"].contains("security"));
  EXPECT_TRUE(open["/v1/requests"]["get"].contains("security"));
}

TEST(OpenApi, HasEveryFieldOnce) {
  const Json schemas = document()["components"]["schemas"];
  std::set<std::pair<int, std::string>> seen;
  for (const ApiField& field : api_fields())
    for (const auto& [endpoint, schema] :
         {std::pair(kChat, "ChatRequest"), std::pair(kCompletions, "CompletionRequest"),
          std::pair(kTokenize, "TokenizeRequest"), std::pair(kDetokenize, "DetokenizeRequest")})
      if (field.endpoints & endpoint) {
        EXPECT_TRUE(seen.insert({endpoint, std::string(field.name)}).second) << field.name;
        EXPECT_TRUE(schemas[schema]["properties"].contains(field.name)) << field.name;
      }
}

bool takes(const ApiField& field, const Json& value) {
  const Json body = {{"prompt", "x"}, {"top_logprobs", nullptr}, {field.name, value}};
  if (field.endpoints & kCompletions) return bool(parse_completion_request(body.dump(), limits()));
  Json chat = {{"messages", {{{"role", "user"}, {"content", "x"}}}}, {"logprobs", true}};
  chat[std::string(field.name)] = value;
  return bool(parse_chat_request(chat.dump(), limits()));
}

// What the schema says of numbers is what the parser does.
TEST(OpenApi, BoundsAreThoseOfTheParser) {
  int num_bounds = 0;
  for (const ApiField& field : api_fields()) {
    if (!(field.endpoints & (kChat | kCompletions)) || field.use != FieldUse::served) continue;
    const Json schema = schema_of(field, limits(), /*nullable=*/false);
    const auto type = schema.value("type", "");
    if (type != "integer" && type != "number") continue;
    const double step = type == "integer" ? 1 : 1e-3;
    for (const std::string bound : {"minimum", "maximum", "exclusiveMinimum"}) {
      if (!schema.contains(bound) || field.name == "seed") continue;
      ++num_bounds;
      const double outside = schema[bound].get<double>() + (bound == "maximum" ? step : -step);
      const bool depends_on_another =
          (field.name == "min_tokens" || field.name == "best_of") && bound == "maximum";
      if (!depends_on_another) {
        EXPECT_EQ(takes(field, schema[bound]), bound != "exclusiveMinimum") << field.name << bound;
      }
      EXPECT_FALSE(takes(field, type == "integer" ? Json(std::llround(outside)) : Json(outside)))
          << field.name << " " << outside;
    }
    EXPECT_FALSE(takes(field, "7")) << field.name;
    EXPECT_FALSE(takes(field, true)) << field.name;
  }
  EXPECT_GT(num_bounds, 20);
}

Json field_schema(const char* name, const ApiLimits& of) {
  for (const ApiField& field : api_fields())
    if (field.name == name) return schema_of(field, of, /*nullable=*/true);
  return {};
}

TEST(OpenApi, KeysOfTokensAreThoseThatTheParserTakes) {
  for (const int size : {1, 7, 10, 11, 100, 265, 4096, 49152, 100001}) {
    const Json schema = field_schema("logit_bias", {.vocab_size = size});
    const std::regex pattern(schema["propertyNames"]["pattern"].get<std::string>());
    const auto matches = [&](const std::string& key) { return std::regex_search(key, pattern); };
    for (int id = 0; id < size + 1000; id += id < 2000 ? 1 : 37)
      ASSERT_EQ(matches(std::to_string(id)), id < size) << id << " of " << size;
    EXPECT_TRUE(matches(std::to_string(size - 1)));
    EXPECT_FALSE(matches(std::to_string(size)));
    for (const char* bad : {"", "00", "01", "-1", "+1", "1.0", " 1", "1 ", "a"})
      EXPECT_FALSE(matches(bad)) << bad;
  }
}

TEST(OpenApi, NullIsOfATypeThatTheSchemaNames) {
  for (const ApiField& field : api_fields()) {
    const Json schema = schema_of(field, limits(), /*nullable=*/true);
    const Json type = schema.value("type", Json("null"));
    EXPECT_TRUE(type == "null" || std::find(type.begin(), type.end(), "null") != type.end())
        << field.name << schema;
  }
}

TEST(OpenApi, FollowsWhatTheServerWasStartedWith) {
  ApiLimits given = limits();
  EXPECT_FALSE(field_schema("chat_template", given).contains("type"));
  EXPECT_EQ(field_schema("suffix", given)["enum"].dump(), R"(["",null])");
  EXPECT_EQ(field_schema("top_logprobs", given)["minimum"], 0);
  given.trust_request_chat_template = given.fills_in = true;
  given.has_priorities = false;
  given.max_logprobs = given.vocab_size;
  EXPECT_EQ(field_schema("chat_template", given)["type"][0], "string");
  EXPECT_EQ(field_schema("suffix", given)["type"][0], "string");
  EXPECT_EQ(field_schema("priority", given)["maximum"], 0);
  EXPECT_EQ(field_schema("top_logprobs", given)["minimum"], -1);
}

TEST(OpenApi, IsThereBeforeTheModelIs) {
  EXPECT_TRUE(Json::parse(openapi_json({})).contains("paths"));
}

}  // namespace
}  // namespace octavo
