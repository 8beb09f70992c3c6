// The table of all fields that requests may have: how each is read, and what it is in the schema.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "server/api_error.h"
#include "server/api_json.h"
#include "server/api_request.h"

namespace octavo {

enum Endpoint : uint8_t {
  kChat = 1,
  kCompletions = 2,
  kTokenize = 4,
  kDetokenize = 8,
  kEmbeddings = 16
};

// What the fields of any endpoint are read into.
struct RequestDraft : GenerationRequest {
  std::optional<nlohmann::ordered_json> messages = {};
  ChatOptions chat = {};
  std::optional<std::string> chat_template = {};
  nlohmann::ordered_json chat_template_kwargs = nlohmann::ordered_json::object();
  nlohmann::ordered_json tools = nullptr;
  bool hides_tools = false;  // tool_choice is none
  bool parallel_tool_calls = true;
  bool include_reasoning = true;
  std::vector<PromptInput> prompts = {};
  std::string suffix = {};
  std::optional<bool> add_special_tokens = {};
  bool parse_special = true;

  std::string encoding_format = "float";  // of embeddings
  std::optional<int> dimensions = {};
  std::optional<bool> normalize = {};

  std::optional<int> max_completion_tokens = {};
  std::optional<int> best_of = {};
  bool chat_logprobs = false;
  std::optional<int> top_logprobs = {};
  bool has_stream_options = false;

  std::optional<std::string> prompt_text = {}, content = {};  // of /tokenize
  bool return_token_strs = false;
  std::optional<std::vector<TokenId>> tokens = {};  // of /detokenize
};

enum class FieldUse : uint8_t {
  served,
  refused,  // known to OpenAI's or vLLM's API; only values that ask for nothing are taken
  inert,    // known to llama.cpp's; values that ask for something are taken with a warning
  ignored,  // of any type
};

struct ApiField;
struct FieldContext {
  const ApiField& field;
  const ApiLimits& limits;
  RequestDraft& draft;
};

struct ApiField {
  std::string_view name;
  uint8_t endpoints;  // of Endpoint
  FieldUse use;
  // JSON Schema without null, which every field may be: then it is absent. @last_token,
  // @max_logprobs, @max_model_len, @max_choices and so on stand for what the limits say. Of refused
  // and inert ones: an enum of what asks for nothing.
  std::string_view schema;
  // The value is not null, and may be moved from.
  ApiResult<void> (*read)(nlohmann::ordered_json& value, const FieldContext& context);
  std::string_view help;
};

std::span<const ApiField> api_fields();

// Reads what the table has for this endpoint, in its order. Other names are ignored, with a warning
// if they look like a mistake (api_unknown_fields.h); with ApiLimits::strict_fields an error.
ApiResult<void> read_fields(BodyFields& body, Endpoint endpoint, const ApiLimits& limits,
                            RequestDraft& draft);

nlohmann::ordered_json schema_of(const ApiField& field, const ApiLimits& limits, bool nullable);

tl::unexpected<ApiError> refuse_field(std::string_view param, std::string message);
tl::unexpected<ApiError> refuse_unsupported(std::string_view param, std::string message);

}  // namespace octavo
