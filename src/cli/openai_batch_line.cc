#include "cli/openai_batch_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "cli/json_output.h"
#include "formats/quote.h"
#include "formats/shallow_json.h"
#include "text/ordered_json.h"
#include "text/utf8.h"

namespace octavo::cli {
namespace {

constexpr int kMaxDepth = 64;  // further bounds are those of the route
constexpr std::array<std::string_view, 3> kUrls = {"/v1/chat/completions", "/v1/completions",
                                                   "/v1/embeddings"};
// In this order, so that the first bytes of a result tell how it ended.
constexpr std::string_view kAnswered = ",\"error\":null,\"response\":{\"status_code\":";

template <class... Args>
tl::unexpected<Error> refuse(fmt::format_string<Args...> text, Args&&... args) {
  return fail(ErrorCode::invalid_argument, fmt::format(text, std::forward<Args>(args)...));
}

ErrorCode code_of(int status) {
  return status >= 400 && status < 500 ? ErrorCode::invalid_argument
                                       : ErrorCode::resource_exhausted;
}

std::string head_text(const ResultHead& head) {
  return fmt::format("{{\"id\":\"{}\"", openai_result_id(head));
}

std::optional<ErrorCode> error_of(std::string_view after_head) {
  if (!after_head.starts_with(kAnswered)) return ErrorCode::invalid_argument;
  const std::string_view number = after_head.substr(kAnswered.size());
  int status = 0;
  std::from_chars(number.data(), number.data() + number.size(), status);
  if (status < 400) return std::nullopt;
  return code_of(status);
}

Result<nlohmann::json> parse_object(std::string_view text) {
  if (const auto at = find_invalid_utf8(text)) return refuse("not UTF-8 at byte {}", *at);
  StrictJson parsed = parse_strict_json(text, kMaxDepth);
  if (parsed.too_deep) return refuse("nested deeper than {} levels", kMaxDepth);
  if (!parsed.root.is_object()) return refuse("not a JSON object");
  if (parsed.repeated_key) return refuse("{} is there twice", quote(*parsed.repeated_key));
  return std::move(parsed.root);
}

Result<void> check_members(const nlohmann::json& object) {
  for (const auto& [name, value] : object.items()) {
    const bool is_known =
        name == "custom_id" || name == "method" || name == "url" || name == "body";
    if (!is_known)
      return refuse("unknown name {}; a line has custom_id, method, url and body", quote(name));
    if (name != "body" && !value.is_string()) return refuse("{} must be a string", name);
  }
  for (const std::string_view name : {"custom_id", "url", "body"})
    if (!object.contains(name)) return refuse("needs {}", name);
  if (!object["body"].is_object()) return refuse("body must be an object");
  if (object.value("method", "POST") != "POST") return refuse("method must be POST");
  const std::string url = object["url"].get<std::string>();
  if (std::find(kUrls.begin(), kUrls.end(), url) == kUrls.end())
    return refuse("url is {}; allowed: {}, {}, {}", quote(url), kUrls[0], kUrls[1], kUrls[2]);
  if (object["body"].contains("stream") && object["body"]["stream"] == true)
    return refuse("body.stream: a batch has no streams; leave it out");
  return {};
}

int64_t generated_tokens(const std::string& body) {
  const auto answer = nlohmann::json::parse(body, nullptr, /*allow_exceptions=*/false);
  if (!answer.is_object() || !answer.contains("usage")) return 0;
  return answer["usage"].value("completion_tokens", int64_t{0});
}

}  // namespace

const ResultFormat kOpenAiFormat = {&head_text, &error_of};

std::string openai_result_id(const ResultHead& head) {
  return fmt::format("batch_req_{}_{:016x}", head.line, head.input_hash);
}

std::optional<bool> is_openai_batch_line(std::string_view text) {
  const auto object = parse_object(text);
  if (!object) return std::nullopt;
  if (object->contains("url") || object->contains("body")) return true;
  const bool is_own = object->contains("prompt") || object->contains("prompt_token_ids") ||
                      object->contains("messages");
  return is_own ? std::optional(false) : std::nullopt;
}

ParsedOpenAiLine parse_openai_line(std::string_view text, std::optional<int> default_max_tokens) {
  auto object = parse_object(text);
  if (!object) return {tl::make_unexpected(object.error())};
  ParsedOpenAiLine parsed{OpenAiLine{}};
  if (object->contains("custom_id") && (*object)["custom_id"].is_string())
    parsed.custom_id = (*object)["custom_id"];
  if (auto checked = check_members(*object); !checked) {
    parsed.line = tl::make_unexpected(checked.error());
    return parsed;
  }
  auto body = std::move(parse_ordered_json(text)["body"]);
  const bool generates = (*object)["url"] != "/v1/embeddings";
  if (generates && default_max_tokens && !body.contains("max_tokens") &&
      !body.contains("max_completion_tokens"))
    body["max_tokens"] = *default_max_tokens;
  parsed.line->url = (*object)["url"].get<std::string>();
  parsed.line->body = body.dump();
  return parsed;
}

OpenAiResult openai_result(const ResultHead& head, const nlohmann::ordered_json& custom_id,
                           const http::Response& response) {
  std::string body = response.body;
  std::erase(body, '\n');  // JSON has none inside its strings
  const std::string* id = http::find_header(response.headers, "x-request-id");
  const Json request_id = id ? *id : openai_result_id(head);
  std::optional<ErrorCode> error;
  if (response.status >= 400) error = code_of(response.status);
  return {
      fmt::format("{}{}{},\"request_id\":{},\"body\":{}}},\"custom_id\":{}}}\n", head_text(head),
                  kAnswered, response.status, request_id.dump(), body, custom_id.dump()),
      error, error ? 0 : generated_tokens(response.body)};
}

OpenAiResult openai_result(const ResultHead& head, const nlohmann::ordered_json& custom_id,
                           const Error& error) {
  const Json rest = {{"error",
                      {{"code", error_name(error.code)},
                       {"message", fmt::format("line {}: {}", head.line, error.message)}}},
                     {"response", nullptr},
                     {"custom_id", custom_id}};
  return {head_text(head) + "," + dump_line(rest).substr(1), error.code, 0};
}

}  // namespace octavo::cli
