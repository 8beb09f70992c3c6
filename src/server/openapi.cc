#include "server/openapi.h"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/version.h"
#include "server/api_fields.h"
#include "server/api_json.h"
#include "server/openapi_schemas.h"

namespace octavo {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kJson = "application/json";

enum class Key : uint8_t { none, any, metrics, admin };

// What one field asks of another, where JSON Schema can say it.
constexpr std::string_view kOptionsNeedStream =
    R"({"anyOf":[{"properties":{"stream_options":{"type":"null"}}},
         {"required":["stream"],"properties":{"stream":{"const":true}}}]})";
constexpr std::string_view kTopNeedsLogprobs =
    R"({"anyOf":[{"properties":{"top_logprobs":{"enum":[null,0]}}},
         {"required":["logprobs"],"properties":{"logprobs":{"const":true}}}]})";
constexpr std::string_view kSuffixGoesAlone =
    R"({"anyOf":[{"properties":{"suffix":{"enum":[null,""]}}},
         {"properties":{"echo":{"enum":[null,false]},"truncate_prompt_tokens":{"type":"null"}}}]})";
constexpr std::string_view kOneText =
    R"({"oneOf":[{"required":["prompt"],"properties":{"prompt":{"type":"string"},
           "messages":{"type":"null"},"content":{"type":"null"}}},
         {"required":["messages"],"properties":{"messages":{"type":"array"},
           "prompt":{"type":"null"},"content":{"type":"null"}}},
         {"required":["content"],"properties":{"content":{"type":"string"},
           "prompt":{"type":"null"},"messages":{"type":"null"}}}]})";

struct Body {
  std::string_view name;
  Endpoint endpoint;
  std::string_view needed;                     // a field; empty: none is needed in all cases
  std::array<std::string_view, 2> rules = {};  // schemas of the whole
};
constexpr Body kBodies[] = {
    {"ChatRequest", kChat, "messages", {kOptionsNeedStream, kTopNeedsLogprobs}},
    {"CompletionRequest", kCompletions, "prompt", {kOptionsNeedStream, kSuffixGoesAlone}},
    {"EmbeddingRequest", kEmbeddings, "input"},
    {"TokenizeRequest", kTokenize, "", {kOneText}},
    {"DetokenizeRequest", kDetokenize, "tokens"}};

struct Operation {
  std::string_view method, path, summary;
  Key key;
  std::string_view body;    // of kBodies; empty: none
  std::string_view answer;  // a schema; empty: any text
  std::string_view type = kJson;
  bool streams = false;
  bool queues = streams;  // waits for the engine
};
constexpr Operation kOperations[] = {
    {"post", "/v1/chat/completions", "The assistant's answer to a conversation", Key::any,
     "ChatRequest", "ChatCompletion", kJson, true},
    {"post", "/v1/completions", "Text that goes on from prompts", Key::any, "CompletionRequest",
     "Completion", kJson, true},
    {"post", "/v1/embeddings", "Vectors that stand for texts", Key::any, "EmbeddingRequest",
     "Embeddings", kJson, false, true},
    {"get", "/v1/models", "What is served", Key::any, "", "Models"},
    {"get", "/v1/models/{id}", "One of them", Key::any, "", "Model"},
    {"get", "/v1/requests", "What is on its way", Key::admin, "", "Requests"},
    {"post", "/v1/load_lora_adapter", "Load a LoRA adapter", Key::admin, "LoadLora", "",
     "text/plain"},
    {"post", "/v1/unload_lora_adapter", "Unload one; requests that have it end with it", Key::admin,
     "UnloadLora", "", "text/plain"},
    {"post", "/tokenize", "Text or messages as token ids, in vLLM's or llama.cpp's shape", Key::any,
     "TokenizeRequest", "Tokens"},
    {"post", "/detokenize", "Token ids as text", Key::any, "DetokenizeRequest", "Text"},
    {"get", "/tokenizer_info", "What the tokenizer knows", Key::any, "", "TokenizerInfo"},
    {"get", "/metrics", "Counts and times for Prometheus", Key::metrics, "", "", "text/plain"},
    {"get", "/load", "Requests on their way, and the wait to expect", Key::any, "", "Load"},
    {"get", "/health", "Whether the engine works", Key::none, "", "Health"},
    {"get", "/ready", "Whether requests are taken", Key::none, "", "Health"},
    {"get", "/version", "Which program this is", Key::any, "", "Version"},
    {"get", "/openapi.json", "This description", Key::any, "", ""},
    {"get", "/", "A page for people", Key::any, "", "", "text/html"},
};

enum For : uint8_t { kEach = 1, kBody = 2, kGeneration = 4, kByName = 8 };

struct Refusal {
  int status;
  uint8_t where;  // of For
  std::string_view why;
};
constexpr Refusal kRefusals[] = {
    {400, kEach, "No proper request; the field is in error.param"},
    {401, kEach, "A key is needed (Authorization: Bearer KEY) and there is none, or it is wrong"},
    {403, kEach, "The Host or Origin may not call this, or the route needs an admin key"},
    {404, kByName, "There is no such model"},
    {405, kEach, "The path does not take this method"},
    {408, kEach, "The request came too slowly"},
    {411, kBody, "The body's length is not given"},
    {413, kBody, "The body is too large"},
    {414, kEach, "The path is too long"},
    {415, kBody, "The body is not application/json"},
    {429, kGeneration, "Too many requests wait; Retry-After says when to come back"},
    {431, kEach, "The headers are too large"},
    {500, kEach, "The server's fault"},
    {501, kEach, "A transfer coding that is not known"},
    {503, kEach, "The model is loading, the server is full or stopping, or the engine is stuck"},
    {505, kEach, "Not HTTP/1.1 or HTTP/1.0"},
};

Json reference(std::string_view schema) {
  return {{"$ref", fmt::format("#/components/schemas/{}", schema)}};
}

Json body_schema(const Body& body, const ApiLimits& limits) {
  Json properties = Json::object();
  for (const ApiField& field : api_fields())
    if (field.endpoints & body.endpoint)
      properties[std::string(field.name)] =
          schema_of(field, limits, /*nullable=*/field.name != body.needed);
  Json schema = {{"type", "object"},
                 {"description", limits.strict_fields
                                     ? "null stands for absent"
                                     : "Names that are not here are ignored, with a warning if "
                                       "they look like one that is; null stands for absent"},
                 {"properties", std::move(properties)}};
  if (limits.strict_fields) schema["additionalProperties"] = {{"type", "null"}};
  if (!body.needed.empty()) schema["required"] = Json::array({body.needed});
  for (const std::string_view rule : body.rules)
    if (!rule.empty()) schema["allOf"].push_back(Json::parse(rule));
  return schema;
}

Json schemas(const ApiLimits& limits) {
  Json all = Json::parse(openapi_schemas());
  for (const Body& body : kBodies) all[std::string(body.name)] = body_schema(body, limits);
  return all;
}

uint8_t kinds_of(const Operation& operation) {
  uint8_t kinds = kEach;
  if (!operation.body.empty()) kinds |= kBody | kByName;
  if (operation.queues) kinds |= kGeneration;
  if (operation.path.ends_with("{id}")) kinds |= kByName;
  return kinds;
}

Json answer_json(const Operation& operation) {
  Json content = Json::object();
  content[std::string(operation.type)] = {
      {"schema", !operation.answer.empty() ? reference(operation.answer)
                 : operation.type == kJson ? Json{{"type", "object"}}
                                           : Json{{"type", "string"}}}};
  if (operation.streams) content["text/event-stream"] = {{"schema", reference("Events")}};
  Json json = {{"description", "The answer"}, {"content", std::move(content)}};
  if (operation.method == "post")
    json["headers"][std::string(kWarningsHeader)] = {
        {"description", "A JSON list of what was taken and has no effect; absent: nothing"},
        {"schema", {{"type", "string"}}}};
  return json;
}

Json refusal_json(const Refusal& refusal, const Operation& operation) {
  Json schema = reference("Error");
  if (operation.answer == "Health" && refusal.status == 503) schema = reference("Health");
  Json json = {{"description", refusal.why},
               {"content", {{std::string(kJson), {{"schema", std::move(schema)}}}}}};
  if (refusal.status == 429 || refusal.status == 503)
    json["headers"] = {
        {"Retry-After", {{"description", "Seconds"}, {"schema", {{"type", "integer"}}}}}};
  return json;
}

Json responses(const Operation& operation) {
  Json json = {{"200", answer_json(operation)}};
  const uint8_t kinds = kinds_of(operation);
  for (const Refusal& refusal : kRefusals)
    if (refusal.where & kinds)
      json[std::to_string(refusal.status)] = refusal_json(refusal, operation);
  return json;
}

std::string id_of(const Operation& operation) {
  std::string id(operation.method);
  for (const char c : operation.path) id += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return id;
}

bool needs_key(Key key, const OpenApiOptions& options) {
  switch (key) {
    case Key::none:
      return false;
    case Key::any:
      return options.needs_key;
    case Key::metrics:
      return options.needs_key_for_metrics;
    case Key::admin:
      return true;
  }
  return true;
}

Json operation_json(const Operation& operation, const OpenApiOptions& options) {
  Json json = {{"operationId", id_of(operation)}, {"summary", operation.summary}};
  if (operation.path.ends_with("{id}"))
    json["parameters"] = Json::array({{{"name", "id"},
                                       {"in", "path"},
                                       {"required", true},
                                       {"schema", {{"type", "string"}, {"minLength", 1}}}}});
  if (!operation.body.empty())
    json["requestBody"] = {
        {"required", true},
        {"content", {{std::string(kJson), {{"schema", reference(operation.body)}}}}}};
  json["responses"] = responses(operation);
  if (needs_key(operation.key, options)) json["security"] = Json::array({{{"key", Json::array()}}});
  return json;
}

}  // namespace

std::string openapi_json(const OpenApiOptions& options) {
  Json paths = Json::object();
  for (const Operation& operation : kOperations)
    paths[std::string(operation.path)][std::string(operation.method)] =
        operation_json(operation, options);
  const Json json = {
      {"openapi", "3.1.0"},
      {"info",
       {{"title", "Octavo"},
        {"version", version()},
        {"description", fmt::format("Bodies are objects of JSON, nested at most {} levels deep and "
                                    "of at most {} values, and without a key twice. An integer may "
                                    "be written as 5.0.",
                                    kMaxBodyDepth, kMaxBodyValues)}}},
      {"paths", std::move(paths)},
      {"components",
       {{"schemas", schemas(options.limits)},
        {"securitySchemes", {{"key", {{"type", "http"}, {"scheme", "bearer"}}}}}}}};
  return to_line(json);
}

}  // namespace octavo
