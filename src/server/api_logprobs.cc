#include "server/api_logprobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "text/utf8.h"

namespace octavo {
namespace {

using Json = nlohmann::ordered_json;

// Json's own operator[] would look through all members for the key.
void append_member(Json& object, std::string key, Json value) {
  object.get_ref<Json::object_t&>().emplace_back(std::move(key), std::move(value));
}

Json logprob_json(float logprob) { return std::max(logprob, kLogprobFloor); }

const LogprobEntry& chosen_entry(const TokenLogprobs& place) {
  const auto found = std::find_if(place.entries.begin(), place.entries.end(),
                                  [&](const LogprobEntry& e) { return e.id == place.chosen; });
  return found == place.entries.end() ? place.entries.back() : *found;
}

Json chat_entry(const LogprobEntry& entry, const TokenNames& names) {
  Json bytes = Json::array();
  for (const char byte : names.tokenizer.piece(entry.id))
    bytes.push_back(static_cast<uint8_t>(byte));
  return {{"token", names(entry.id)},
          {"logprob", logprob_json(entry.logprob)},
          {"bytes", std::move(bytes)}};
}

Json top_json(const TokenLogprobs& place, const TokenNames& names) {
  Json top = Json::object();
  std::set<std::string> seen;
  for (const LogprobEntry& entry : place.entries) {
    std::string token = names(entry.id);
    if (seen.insert(token).second)
      append_member(top, std::move(token), logprob_json(entry.logprob));
  }
  return top;
}

}  // namespace

std::string shown_token(const Tokenizer& tokenizer, TokenId id) {
  std::string piece = tokenizer.piece(id);
  if (!find_invalid_utf8(piece)) return piece;
  std::string shown = "bytes:";
  for (const char byte : piece) shown += fmt::format("\\x{:02x}", static_cast<uint8_t>(byte));
  return shown;
}

std::string TokenNames::operator()(TokenId id) const {
  return are_ids ? fmt::format("token_id:{}", raw(id)) : shown_token(tokenizer, id);
}

size_t count_characters(std::string_view utf8) {
  return static_cast<size_t>(std::count_if(utf8.begin(), utf8.end(), [](char byte) {
    return (static_cast<uint8_t>(byte) & 0xC0) != 0x80;  // not a continuation
  }));
}

Json chat_logprobs_json(std::span<const TokenLogprobs> places, int top, const TokenNames& names) {
  Json content = Json::array();
  for (const TokenLogprobs& place : places) {
    Json entry = chat_entry(chosen_entry(place), names);
    Json others = Json::array();
    const size_t count =
        top < 0 ? place.entries.size() : std::min<size_t>(top, place.entries.size());
    for (size_t i = 0; i < count; ++i) others.push_back(chat_entry(place.entries[i], names));
    entry["top_logprobs"] = std::move(others);
    content.push_back(std::move(entry));
  }
  return content;
}

Json prompt_logprobs_json(std::span<const std::optional<TokenLogprobs>> places,
                          const Tokenizer& tokenizer) {
  Json list = Json::array();
  for (const auto& place : places) {
    Json& object = list.emplace_back(nullptr);
    if (!place) continue;
    object = Json::object();
    for (const LogprobEntry& entry : place->entries)
      append_member(object, std::to_string(raw(entry.id)),
                    {{"logprob", logprob_json(entry.logprob)},
                     {"rank", entry.rank},
                     {"decoded_token", shown_token(tokenizer, entry.id)}});
  }
  return list;
}

void CompletionLogprobs::add_prompt(const RequestOutput& prompt, std::string_view text) {
  const Tokenizer& tokenizer = names_.tokenizer;
  Detokenizer detokenizer(tokenizer, /*skip_special=*/false, SpacePrefix::strip);
  // Begin of text and the like are not in a prompt that was given as text, unless it spells them.
  const auto is_added = [&](TokenId id, size_t at) {
    return tokenizer.is_control(id) &&
           !text.substr(std::min(at, text.size())).starts_with(tokenizer.piece(id));
  };
  size_t num_bytes = 0;
  const size_t end = count_characters(text);
  for (size_t i = 0; i < prompt.prompt_token_ids.size(); ++i) {
    const TokenId id = prompt.prompt_token_ids[i];
    const bool known = i < prompt.prompt_logprobs.size() && prompt.prompt_logprobs[i];
    add_one(id, known ? &*prompt.prompt_logprobs[i] : nullptr, std::min(num_characters_, end));
    if (is_added(id, num_bytes)) continue;
    const std::string shown = detokenizer.push(id);
    num_bytes += shown.size();
    num_characters_ += count_characters(shown);
  }
  num_characters_ = end;
}

void CompletionLogprobs::add(std::span<const TokenLogprobs> places) {
  for (const TokenLogprobs& place : places) {
    add_one(place.chosen, &place, num_characters_);
    num_characters_ += count_characters(detokenizer_.push(place.chosen));
  }
}

void CompletionLogprobs::add_one(TokenId id, const TokenLogprobs* place, size_t offset) {
  tokens_.push_back(names_(id));
  token_logprobs_.push_back(place ? logprob_json(chosen_entry(*place).logprob) : Json(nullptr));
  top_logprobs_.push_back(place ? top_json(*place, names_) : Json(nullptr));
  offsets_.push_back(offset);
}

Json CompletionLogprobs::take() {
  Json json = {{"tokens", std::move(tokens_)},
               {"token_logprobs", std::move(token_logprobs_)},
               {"top_logprobs", std::move(top_logprobs_)},
               {"text_offset", std::move(offsets_)}};
  clear();
  return json;
}

void CompletionLogprobs::clear() {
  tokens_ = token_logprobs_ = top_logprobs_ = offsets_ = Json::array();
}

}  // namespace octavo
