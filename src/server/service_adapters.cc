// Adapters that come and go while a server runs.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "formats/quote.h"
#include "server/api_json.h"
#include "server/service.h"
#include "server/service_parts.h"

namespace octavo {
namespace {

ApiError field_error(std::string_view field, std::string_view why) {
  return {.message = fmt::format("{} {}", field, why), .param = std::string(field)};
}

ApiResult<std::string> text_of(const BodyFields& body, std::string_view field) {
  const auto found = body.find(field);
  if (found == body.end() || found->second.is_null())
    return tl::make_unexpected(field_error(field, "is missing"));
  if (!found->second.is_string())
    return tl::make_unexpected(field_error(field, "must be a string"));
  auto text = found->second.get<std::string>();
  // It would end a path for the system.
  if (text.find('\0') != std::string::npos)
    return tl::make_unexpected(field_error(field, "has U+0000 in it"));
  return text;
}

ApiResult<bool> flag_of(const BodyFields& body, std::string_view field) {
  const auto found = body.find(field);
  if (found == body.end() || found->second.is_null()) return false;
  if (!found->second.is_boolean())
    return tl::make_unexpected(field_error(field, "must be true or false"));
  return found->second.get<bool>();
}

struct LoadRequest {
  LoraModule module;
  bool replace = false;
};
ApiResult<LoadRequest> parse_load(std::string_view text) {
  OCTAVO_TRY(const BodyFields body, parse_body(text));
  LoadRequest request;
  OCTAVO_TRY(request.module.name, text_of(body, "lora_name"));
  OCTAVO_TRY(request.module.path, text_of(body, "lora_path"));
  OCTAVO_TRY(request.replace, flag_of(body, "load_inplace"));
  return request;
}

// Whoever may call these can have the server read any of its files.
std::optional<ApiError> check_allowed(const LoraOptions& lora) {
  if (lora.enabled && lora.allow_runtime_updating) return std::nullopt;
  return ApiError{.status = 403,
                  .message =
                      "adapters may not be changed while this server runs; --enable-lora "
                      "and --allow-runtime-lora-updating let them",
                  .type = "permission_error",
                  .code = "lora_updating_not_allowed"};
}

http::Response said(std::string text) {
  return {.content_type = "text/plain; charset=utf-8", .headers = {}, .body = std::move(text)};
}

}  // namespace

void Service::post_load_adapter(const Exchange& exchange, const std::stop_token&) {
  if (const auto error = check_allowed(options_.lora)) return respond(exchange, *error);
  const auto request = parse_load(exchange->request().body);
  if (!request) return respond(exchange, request.error());
  const LoadedEngine& loaded = serving_.loaded;
  const auto done = adapters_.load(request->module, request->replace, [&](const std::string& path) {
    return load_adapter(path, loaded.config, loaded.model->limits().max_lora_rank);
  });
  if (!done) return respond(exchange, done.error());
  log_.say(LogLevel::info, fmt::format("adapter {} was loaded from {}", quote(request->module.name),
                                       quote(request->module.path)));
  respond(exchange, said(fmt::format("Success: LoRA adapter '{}' added successfully.",
                                     request->module.name)));
}

// Requests on their way keep it until they end.
void Service::post_unload_adapter(const Exchange& exchange, const std::stop_token&) {
  if (const auto error = check_allowed(options_.lora)) return respond(exchange, *error);
  const auto body = parse_body(exchange->request().body);
  if (!body) return respond(exchange, body.error());
  const auto name = text_of(*body, "lora_name");
  if (!name) return respond(exchange, name.error());
  if (!adapters_.unload(*name))
    return respond(exchange,
                   ApiError{.status = 404,
                            .message = fmt::format("there is no adapter {}", quote(*name)),
                            .param = "lora_name",
                            .code = "model_not_found"});
  log_.say(LogLevel::info, fmt::format("adapter {} was unloaded", quote(*name)));
  respond(exchange, said(fmt::format("Success: LoRA adapter '{}' removed successfully.", *name)));
}

}  // namespace octavo
