// Results as JSON, with vLLM's names and shapes.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "engine/outputs.h"
#include "model/step_profile.h"
#include "text/tokenizer.h"

namespace octavo::cli {

using Json = nlohmann::ordered_json;

// One position: an object from token id to logprob, rank and decoded_token, by rank.
Json logprobs_json(const TokenLogprobs& position, const Tokenizer& tokenizer);

// What was asked for, which decides between an empty list and null.
struct ShownOutput {
  std::optional<std::string> prompt;  // its text; nothing: it was given as token ids
  bool logprobs = false;
  bool prompt_logprobs = false;
  double load_s = 0;                     // how long the model took to load
  const StepProfile* prefill = nullptr;  // where the time went, if it was looked at
  const StepProfile* decode = nullptr;
};
Json request_json(const RequestOutput& output, const ShownOutput& shown,
                  const Tokenizer& tokenizer);

Json token_ids_json(const std::vector<TokenId>& ids);

// On one line, or indented by `indent` spaces. Always UTF-8, always numbers: strings that are not
// UTF-8 get U+FFFD.
std::string dump_line(const Json& json, int indent = -1);

}  // namespace octavo::cli
