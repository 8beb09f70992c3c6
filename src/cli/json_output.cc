#include "cli/json_output.h"

#include <fmt/format.h>

namespace octavo::cli {
namespace {

Json stop_reason_json(const StopReason& reason) {
  if (const auto* text = std::get_if<std::string>(&reason)) return *text;
  if (const auto* id = std::get_if<TokenId>(&reason)) return raw(*id);
  return nullptr;
}

Json choice_json(const CompletionOutput& output, bool with_logprobs, const Tokenizer& tokenizer) {
  Json logprobs = nullptr;
  if (with_logprobs) {
    logprobs = Json::array();
    for (const TokenLogprobs& position : output.logprobs)
      logprobs.push_back(logprobs_json(position, tokenizer));
  }
  return {{"index", output.index},
          {"text", output.text},
          {"token_ids", token_ids_json(output.token_ids)},
          {"cumulative_logprob",
           output.cumulative_logprob ? Json(*output.cumulative_logprob) : Json(nullptr)},
          {"logprobs", std::move(logprobs)},
          {"finish_reason", name(output.finish_reason)},
          {"stop_reason", stop_reason_json(output.stop_reason)}};
}

Json prompt_logprobs_json(const RequestOutput& output, const Tokenizer& tokenizer) {
  Json positions = Json::array();
  for (const auto& position : output.prompt_logprobs)
    positions.push_back(position ? logprobs_json(*position, tokenizer) : Json(nullptr));
  return positions;
}

// Shares of the forwards' time by kind of work.
Json time_share_json(const StepProfile& profile) {
  Json json = Json::object();
  for (size_t i = 0; i < kStepPartNames.size(); ++i)
    json[std::string(kStepPartNames[i])] = profile.share(static_cast<StepPart>(i));
  return json;
}

Json metrics_json(const RequestMetrics& metrics, double load_s) {
  Json json = {{"load_s", load_s},
               {"prefill_s", metrics.prefill_s()},
               {"decode_s", metrics.decode_s()},
               {"decode_steps", metrics.decode_steps}};
  if (metrics.speculates) {
    json["num_draft_tokens"] = metrics.num_draft_tokens;
    json["num_accepted_tokens"] = metrics.num_accepted_tokens;
  }
  return json;
}

Json usage_json(const RequestOutput& output) {
  size_t completion_tokens = 0;
  for (const CompletionOutput& choice : output.outputs)
    completion_tokens += choice.token_ids.size();
  return {{"prompt_tokens", output.prompt_token_ids.size()},
          {"completion_tokens", completion_tokens},
          {"total_tokens", output.prompt_token_ids.size() + completion_tokens}};
}

// JSON with DEL and U+0080 to U+009F (C2 80 to C2 9F) written as \uNNNN, too: terminals obey them.
// They can only stand in strings.
std::string without_raw_controls(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  for (size_t i = 0; i < json.size(); ++i) {
    const auto next = static_cast<unsigned char>(i + 1 < json.size() ? json[i + 1] : 0);
    const bool is_c1 = json[i] == '\xC2' && next >= 0x80 && next < 0xA0;
    if (is_c1 || json[i] == 0x7F)
      out += fmt::format("\\u{:04x}", is_c1 ? next : 0x7Fu);
    else
      out += json[i];
    if (is_c1) ++i;
  }
  return out;
}

}  // namespace

Json token_ids_json(const std::vector<TokenId>& ids) {
  Json array = Json::array();
  for (const TokenId id : ids) array.push_back(raw(id));
  return array;
}

Json logprobs_json(const TokenLogprobs& position, const Tokenizer& tokenizer) {
  Json object = Json::object();
  for (const LogprobEntry& entry : position.entries)
    object[std::to_string(raw(entry.id))] = {
        {"logprob", entry.logprob},
        {"rank", entry.rank},
        {"decoded_token", tokenizer.decode(std::vector{entry.id}, /*skip_special=*/false)}};
  return object;
}

Json request_json(const RequestOutput& output, const ShownOutput& shown,
                  const Tokenizer& tokenizer) {
  Json json;
  json["prompt"] = shown.prompt ? Json(*shown.prompt) : Json(nullptr);
  json["prompt_token_ids"] = token_ids_json(output.prompt_token_ids);
  json["prompt_logprobs"] =
      shown.prompt_logprobs ? prompt_logprobs_json(output, tokenizer) : Json(nullptr);
  json["outputs"] = Json::array();
  for (const CompletionOutput& choice : output.outputs)
    json["outputs"].push_back(choice_json(choice, shown.logprobs, tokenizer));
  json["seed"] = output.seed;
  json["num_cached_tokens"] = output.num_cached_tokens;
  if (!output.warnings.empty()) json["warnings"] = output.warnings;
  json["usage"] = usage_json(output);
  json["metrics"] = metrics_json(output.metrics, shown.load_s);
  if (shown.prefill && shown.decode)
    json["metrics"]["time_share"] = {{"prefill", time_share_json(*shown.prefill)},
                                     {"decode", time_share_json(*shown.decode)}};
  return json;
}

std::string dump_line(const Json& json, int indent) {
  return without_raw_controls(json.dump(indent, ' ', false, Json::error_handler_t::replace)) + "\n";
}

}  // namespace octavo::cli
