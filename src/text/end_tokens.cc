#include "text/end_tokens.h"

#include <algorithm>
#include <array>

namespace octavo {
namespace {

// What publishers call the ends of turns, of messages to a tool and of texts. Files often name but
// one of those that a model writes.
constexpr std::array<std::string_view, 17> kUsualNames = {
    "<|im_end|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|end|>",
    "<end_of_turn>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "</s>",
    "<eos>",
    "<|eot|>",
    "<|eom|>",
    "<EOT>",
    "[EOT]",
    "<|end_of_turn|>",
    "<end_of_utterance>",
    "<|return|>",
    "<\xEF\xBD\x9C"
    "end\xE2\x96\x81of\xE2\x96\x81sentence\xEF\xBD\x9C>"};

bool is_usual_end(const TokenizerSpec& spec, size_t i) {
  return spec.types[i] == TokenType::control &&
         std::ranges::find(kUsualNames, spec.tokens[i]) != kUsualNames.end();
}

}  // namespace

std::string_view text_of(EndReason reason) {
  switch (reason) {
    case EndReason::eos:
      return "the model's end of text";
    case EndReason::eot:
      return "the model's end of turn";
    case EndReason::listed:
      return "listed by the model";
    case EndReason::usual_name:
      return "a usual name";
    case EndReason::chat_template:
      return "ends turns in the chat template";
  }
  return "";
}

std::vector<EndToken> end_tokens(const TokenizerSpec& spec) {
  std::vector<EndToken> ends;
  if (spec.eos) ends.push_back({*spec.eos, EndReason::eos});
  if (spec.eot) ends.push_back({*spec.eot, EndReason::eot});
  for (const TokenId id : spec.extra_eog) ends.push_back({id, EndReason::listed});
  for (size_t i = 0; i < spec.types.size() && i < spec.tokens.size(); ++i)
    if (is_usual_end(spec, i))
      ends.push_back({TokenId{static_cast<int32_t>(i)}, EndReason::usual_name});
  std::ranges::stable_sort(ends, {}, &EndToken::id);
  const auto same = [](const EndToken& a, const EndToken& b) { return a.id == b.id; };
  ends.erase(std::unique(ends.begin(), ends.end(), same), ends.end());
  return ends;
}

}  // namespace octavo
