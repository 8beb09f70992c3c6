#include "server/openapi_schemas.h"

namespace octavo {

std::string_view openapi_schemas() {
  return R"json({
"Error": {"type": "object", "required": ["error"], "properties": {"error": {
  "type": "object", "required": ["message", "type", "param", "code"], "properties": {
    "message": {"type": "string"}, "type": {"type": "string"},
    "param": {"type": ["string", "null"], "description": "The field"},
    "code": {"type": ["string", "null"]}}}}},
"Health": {"type": "object", "required": ["status"], "properties": {
  "status": {"enum": ["ok", "loading", "draining", "damaged", "stalled"]},
  "progress": {"type": "number"}, "reason": {"type": "string"}}},
"LoadLora": {"type": "object", "required": ["lora_name", "lora_path"], "properties": {
  "lora_name": {"type": "string", "pattern": "^[^\\u0000-\\u0020\\u007f]{1,256}$",
    "description": "At most 256 bytes"},
  "lora_path": {"type": "string", "description": "Of a PEFT folder or a GGUF file on the server"},
  "load_inplace": {"type": "boolean", "description": "It may take the place of one of this name"}}},
"UnloadLora": {"type": "object", "required": ["lora_name"], "properties": {
  "lora_name": {"type": "string"}}},
"TextPart": {"type": "object", "required": ["type", "text"], "properties": {
  "type": {"const": "text"}, "text": {"type": "string"}}},
"RefusalPart": {"type": "object", "required": ["type", "refusal"], "properties": {
  "type": {"const": "refusal"}, "refusal": {"type": "string"}}},
"Message": {"type": "object", "required": ["role"], "properties": {
    "role": {"enum": ["system", "developer", "user", "assistant", "tool"]},
    "content": {"anyOf": [{"type": "string"},
      {"type": "array", "items": {"anyOf": [{"$ref": "#/components/schemas/TextPart"},
        {"$ref": "#/components/schemas/RefusalPart"}]}}, {"type": "null"}]},
    "name": {"type": ["string", "null"]}, "refusal": {"type": ["string", "null"]},
    "reasoning_content": {"type": ["string", "null"]},
    "reasoning": {"type": ["string", "null"], "description": "The same as reasoning_content"},
    "tool_calls": {"type": ["array", "null"], "description": "Of the assistant",
      "items": {"$ref": "#/components/schemas/ToolCall"}},
    "tool_call_id": {"type": ["string", "null"], "description": "Of a tool: what it answers"},
    "function_call": {"enum": [null, [], {}]}},
  "anyOf": [{"properties": {"role": {"const": "assistant"}}},
    {"required": ["content", "tool_call_id"], "properties": {"role": {"const": "tool"},
      "tool_call_id": {"type": "string"}, "tool_calls": {"maxItems": 0},
      "content": {"anyOf": [{"type": "string"},
        {"type": "array", "items": {"$ref": "#/components/schemas/TextPart"}}]}}},
    {"required": ["content"], "properties": {"role": {"enum": ["system", "developer", "user"]},
      "tool_calls": {"maxItems": 0}, "content": {"anyOf": [{"type": "string"},
        {"type": "array", "items": {"$ref": "#/components/schemas/TextPart"}}]}}}]},
"Tool": {"type": "object", "required": ["type", "function"], "properties": {
  "type": {"const": "function"},
  "function": {"type": "object", "required": ["name"], "properties": {
    "name": {"type": "string", "pattern": "^[a-zA-Z0-9_.-]{1,64}$"},
    "description": {"type": ["string", "null"]}, "parameters": {"type": ["object", "null"]},
    "strict": {"type": ["boolean", "null"], "description": "Taken and not enforced"}}}}},
"ToolCall": {"type": "object", "required": ["id", "function"], "properties": {
  "id": {"type": "string"}, "type": {"enum": ["function", null]},
  "function": {"type": "object", "required": ["name", "arguments"], "properties": {
    "name": {"type": "string"},
    "arguments": {"type": ["string", "object"],
      "pattern": "^[ \\t\\n\\r]*([{][\\s\\S]*[}][ \\t\\n\\r]*)?$",
      "description": "A JSON object, as text or as it is"}}}}},
"Usage": {"type": "object", "required": ["prompt_tokens", "completion_tokens", "total_tokens"],
  "properties": {"prompt_tokens": {"type": "integer"}, "completion_tokens": {"type": "integer"},
    "total_tokens": {"type": "integer"}, "prompt_tokens_details": {"type": "object",
      "properties": {"cached_tokens": {"type": "integer"}}},
    "completion_tokens_details": {"type": "object", "description":
      "reasoning_tokens where the model's reasoning is told from its answer, the others where tokens are guessed ahead",
      "properties": {"reasoning_tokens": {"type": "integer"},
        "accepted_prediction_tokens": {"type": "integer", "description": "Guessed tokens that came true"},
        "rejected_prediction_tokens": {"type": "integer", "description": "Those that did not"}}}}},
"Timings": {"type": "object", "description": "With llama.cpp's names; of the prompt that took longest",
  "properties": {"queue_ms": {"type": "number"}, "cache_n": {"type": "integer"},
    "prompt_n": {"type": "integer"}, "prompt_ms": {"type": "number"},
    "prompt_per_token_ms": {"type": "number"}, "prompt_per_second": {"type": "number"},
    "predicted_n": {"type": "integer"}, "predicted_ms": {"type": "number"},
    "predicted_per_token_ms": {"type": "number"}, "predicted_per_second": {"type": "number"},
    "draft_n": {"type": "integer", "description": "Tokens that were guessed ahead"},
    "draft_n_accepted": {"type": "integer", "description": "Of these, that came true"}}},
"FinishReason": {"enum": ["stop", "length", "tool_calls", "abort", "error"],
  "description": "tool_calls: it stopped to have tools called. abort: the server cut it, as when it is stopped"},
"StopReason": {"type": ["string", "integer", "null"],
  "description": "The stop text or stop token that ended the answer"},
"TokenIds": {"type": "array", "items": {"type": "integer"}},
"AskedTokenIds": {"type": ["array", "null"], "items": {"type": "integer"},
  "description": "null: they were not asked for"},
"PromptLogprobs": {"type": ["array", "null"], "items": {"type": ["object", "null"], "additionalProperties": {
  "type": "object", "required": ["logprob", "rank", "decoded_token"], "properties": {
    "logprob": {"type": "number"}, "rank": {"type": "integer"}, "decoded_token": {"type": "string"}}}}},
"ChatLogprob": {"type": "object", "required": ["token", "logprob", "bytes"], "properties": {
  "token": {"type": "string"}, "logprob": {"type": "number"},
  "bytes": {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 255}},
  "top_logprobs": {"type": "array", "items": {"$ref": "#/components/schemas/ChatLogprob"}}}},
"ChatLogprobs": {"type": ["object", "null"], "required": ["content", "refusal"], "properties": {
  "refusal": {"type": "null"},
  "content": {"type": "array", "items": {"$ref": "#/components/schemas/ChatLogprob"}}}},
"CompletionLogprobs": {"type": ["object", "null"],
  "required": ["tokens", "token_logprobs", "top_logprobs", "text_offset"], "properties": {
    "tokens": {"type": "array", "items": {"type": "string"}},
    "token_logprobs": {"type": "array", "items": {"type": ["number", "null"]}},
    "top_logprobs": {"type": "array", "items": {"type": ["object", "null"],
      "additionalProperties": {"type": "number"}}},
    "text_offset": {"type": "array", "items": {"type": "integer"},
      "description": "In characters of the choice's text"}}},
"ChatCompletion": {"type": "object",
  "required": ["id", "object", "created", "model", "choices", "usage", "seed"], "properties": {
    "id": {"type": "string"}, "object": {"const": "chat.completion"},
    "created": {"type": "integer"}, "model": {"type": "string"},
    "system_fingerprint": {"type": ["string", "null"]},
    "choices": {"type": "array", "items": {"type": "object",
      "required": ["index", "message", "logprobs", "finish_reason"], "properties": {
        "index": {"type": "integer"},
        "message": {"type": "object", "required": ["role", "content", "refusal"], "properties": {
          "role": {"const": "assistant"}, "refusal": {"type": "null"},
          "content": {"type": ["string", "null"], "description": "null: there are calls alone"},
          "reasoning_content": {"type": ["string", "null"]},
          "tool_calls": {"type": "array", "items": {"$ref": "#/components/schemas/ToolCall"}}}},
        "logprobs": {"$ref": "#/components/schemas/ChatLogprobs"},
        "finish_reason": {"$ref": "#/components/schemas/FinishReason"},
        "stop_reason": {"$ref": "#/components/schemas/StopReason"},
        "token_ids": {"$ref": "#/components/schemas/AskedTokenIds"}}}},
    "prompt_token_ids": {"$ref": "#/components/schemas/AskedTokenIds"},
    "prompt_logprobs": {"$ref": "#/components/schemas/PromptLogprobs"},
    "usage": {"$ref": "#/components/schemas/Usage"}, "seed": {"type": "integer"},
    "timings": {"$ref": "#/components/schemas/Timings"}}},
"Completion": {"type": "object",
  "required": ["id", "object", "created", "model", "choices", "usage", "seed"], "properties": {
    "id": {"type": "string"}, "object": {"const": "text_completion"},
    "created": {"type": "integer"}, "model": {"type": "string"},
    "system_fingerprint": {"type": ["string", "null"]},
    "choices": {"type": "array", "items": {"type": "object",
      "required": ["index", "text", "logprobs", "finish_reason"], "properties": {
        "index": {"type": "integer", "description": "Of the prompt times n, plus of the choice"},
        "text": {"type": "string"},
        "logprobs": {"$ref": "#/components/schemas/CompletionLogprobs"},
        "finish_reason": {"$ref": "#/components/schemas/FinishReason"},
        "stop_reason": {"$ref": "#/components/schemas/StopReason"},
        "token_ids": {"$ref": "#/components/schemas/AskedTokenIds"},
        "prompt_token_ids": {"$ref": "#/components/schemas/AskedTokenIds"},
        "prompt_logprobs": {"$ref": "#/components/schemas/PromptLogprobs"},
        "seed": {"type": "integer", "description": "Of its prompt, if there are several"}}}},
    "usage": {"$ref": "#/components/schemas/Usage"},
    "seed": {"type": "integer", "description": "Of the first prompt"},
    "timings": {"$ref": "#/components/schemas/Timings"}}},
"Embeddings": {"type": "object", "required": ["object", "data", "model", "usage"], "properties": {
  "object": {"const": "list"}, "model": {"type": "string"}, "id": {"type": "string"},
  "created": {"type": "integer"},
  "data": {"type": "array", "items": {"type": "object",
    "required": ["object", "index", "embedding"], "properties": {
      "object": {"const": "embedding"}, "index": {"type": "integer"},
      "embedding": {"anyOf": [{"type": "array", "items": {"type": "number"}},
        {"type": "string", "description": "base64"}]}}}},
  "usage": {"type": "object", "required": ["prompt_tokens", "total_tokens"], "properties": {
    "prompt_tokens": {"type": "integer"}, "total_tokens": {"type": "integer"}}}}},
"Events": {"type": "object", "required": ["data"], "description":
  "Of each event of the stream. Lines that begin with a colon are comments",
  "properties": {"data": {"type": "string", "description":
  "JSON; of the last event [DONE]. As the whole answer, but with what a choice gained, for chat in 'delta' in place of 'message', and the object chat.completion.chunk. What goes wrong on the way comes as an event with 'error'"}}},
"Model": {"type": "object", "required": ["id", "object", "created", "owned_by"], "properties": {
  "id": {"type": "string"}, "object": {"const": "model"}, "created": {"type": "integer"},
  "owned_by": {"type": "string"}, "root": {"type": "string"},
  "parent": {"type": ["string", "null"], "description": "Of an adapter: its model"},
  "max_model_len": {"type": "integer"}, "meta": {"type": "object"}}},
"Models": {"type": "object", "required": ["object", "data"], "properties": {
  "object": {"const": "list"},
  "data": {"type": "array", "items": {"$ref": "#/components/schemas/Model"}}}},
"Tokens": {"anyOf": [
  {"type": "object", "required": ["count", "max_model_len", "tokens"], "properties": {
    "count": {"type": "integer"}, "max_model_len": {"type": "integer"},
    "tokens": {"$ref": "#/components/schemas/TokenIds"},
    "token_strs": {"type": ["array", "null"], "items": {"type": "string"}}}},
  {"type": "object", "required": ["tokens"], "not": {"required": ["count"]}, "properties": {
    "tokens": {"type": "array", "items": {"anyOf": [{"type": "integer"},
      {"type": "object", "required": ["id", "piece"], "properties": {"id": {"type": "integer"},
        "piece": {"type": ["string", "array"], "items": {"type": "integer"}}}}]}}}}]},
"Text": {"type": "object", "required": ["prompt", "content"], "properties": {
  "prompt": {"type": "string"}, "content": {"type": "string"}}},
"TokenizerInfo": {"type": "object", "required": ["eos_token", "bos_token", "vocab_size"],
  "properties": {"eos_token": {"type": ["string", "null"]}, "bos_token": {"type": ["string", "null"]},
    "pad_token": {"type": ["string", "null"]}, "vocab_size": {"type": "integer"},
    "model_max_length": {"type": "integer"}, "chat_template": {"type": ["string", "null"]}}},
"Version": {"type": "object", "required": ["version", "commit"], "properties": {
  "version": {"type": "string"}, "commit": {"type": "string"}}},
"Load": {"type": "object", "required": ["server_load", "waiting"], "properties": {
  "server_load": {"type": "integer", "description": "Requests that wait or run"},
  "waiting": {"type": "integer"}, "expected_wait_s": {"type": ["number", "null"]}}},
"Requests": {"type": "object", "required": ["object", "data"], "properties": {
  "object": {"const": "list"}, "data": {"type": "array", "items": {"type": "object",
    "required": ["request_id", "state"], "properties": {
      "request_id": {"type": "string"}, "state": {"enum": ["waiting", "prefill", "running"]},
      "prompt_tokens": {"type": "integer"}, "cached_tokens": {"type": "integer"},
      "completion_tokens": {"type": "integer"}, "blocks": {"type": "integer"},
      "preemptions": {"type": "integer"}, "age_s": {"type": "number"}}}}}}
})json";
}

}  // namespace octavo
