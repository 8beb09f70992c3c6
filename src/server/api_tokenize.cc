#include "server/api_tokenize.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "server/api_json.h"
#include "server/api_logprobs.h"
#include "text/utf8.h"

namespace octavo {
namespace {

using Json = nlohmann::ordered_json;

Json piece_json(const Tokenizer& tokenizer, TokenId id) {
  const std::string piece = tokenizer.piece(id);
  if (!find_invalid_utf8(piece)) return piece;
  Json bytes = Json::array();
  for (const char byte : piece) bytes.push_back(static_cast<uint8_t>(byte));
  return bytes;
}

// Lists as text: as values that of a long text takes five times what reading the request does.
template <class JsonOf>
void append_list(std::string& out, std::span<const TokenId> ids, size_t bytes_of_each,
                 const JsonOf& json_of) {
  out.reserve(out.size() + ids.size() * bytes_of_each);  // in one go: growing takes it twice
  out += '[';
  for (size_t i = 0; i < ids.size(); ++i)
    out.append(i > 0 ? "," : "").append(to_line(json_of(ids[i])));
  out += ']';
}

void append_ids(std::string& out, std::span<const TokenId> ids) {
  append_list(out, ids, 7, [](TokenId id) { return Json(raw(id)); });
}

void append_llama_tokens(std::string& out, const TokenizeRequest& request,
                         std::span<const TokenId> ids, const Tokenizer& tokenizer) {
  if (!request.return_token_strs) return append_ids(out, ids);
  append_list(out, ids, 32, [&](TokenId id) {
    return Json{{"id", raw(id)}, {"piece", piece_json(tokenizer, id)}};
  });
}

void append_token_strs(std::string& out, const TokenizeRequest& request,
                       std::span<const TokenId> ids, const Tokenizer& tokenizer) {
  if (!request.return_token_strs)
    out += "null";
  else
    append_list(out, ids, 24, [&](TokenId id) { return Json(shown_token(tokenizer, id)); });
}

Json id_json(std::optional<TokenId> id) { return id ? Json(raw(*id)) : Json(nullptr); }

Json spelling_json(const Tokenizer& tokenizer, std::optional<TokenId> id) {
  return id ? Json(shown_token(tokenizer, *id)) : Json(nullptr);
}

}  // namespace

ApiResult<std::vector<TokenId>> tokenize_text(const TokenizeRequest& request,
                                              const Tokenizer& tokenizer, std::stop_token stop) {
  auto ids = tokenizer.encode(*request.text, {.parse_special = request.parse_special,
                                              .add_special = request.add_special_tokens,
                                              .stop = std::move(stop)});
  if (ids) return std::move(*ids);
  ApiError error = to_api_error(ids.error());
  error.param = request.is_llama_shape ? "content" : "prompt";
  return tl::unexpected(std::move(error));
}

std::string tokenize_answer(const TokenizeRequest& request, std::span<const TokenId> ids,
                            const Tokenizer& tokenizer, int max_model_len) {
  std::string out;
  if (request.is_llama_shape) {
    append_llama_tokens(out = R"({"tokens":)", request, ids, tokenizer);
    return out += '}';
  }
  out = fmt::format(R"({{"count":{},"max_model_len":{},"tokens":)", ids.size(), max_model_len);
  append_ids(out, ids);
  append_token_strs(out += R"(,"token_strs":)", request, ids, tokenizer);
  return out += '}';
}

std::string detokenize_answer(const DetokenizeRequest& request, const Tokenizer& tokenizer) {
  const std::string text =
      tokenizer.decode(request.tokens, /*skip_special=*/false, SpacePrefix::strip);
  return to_line({{"prompt", text}, {"content", text}});
}

std::string tokenizer_info_answer(const Tokenizer& tokenizer, int max_model_len,
                                  std::string_view chat_template) {
  Json json = {{"tokenizer_class", tokenizer.model()},  {"pre_tokenizer", tokenizer.pretokenizer()},
               {"vocab_size", tokenizer.vocab_size()},  {"model_max_length", max_model_len},
               {"add_bos_token", tokenizer.adds_bos()}, {"add_eos_token", tokenizer.adds_eos()}};
  const std::pair<std::string, std::optional<TokenId>> tokens[] = {
      {"bos_token", tokenizer.bos()},     {"eos_token", tokenizer.eos()},
      {"eot_token", tokenizer.eot()},     {"pad_token", tokenizer.padding()},
      {"unk_token", tokenizer.unknown()},
  };
  for (const auto& [name, id] : tokens) {
    json[name] = spelling_json(tokenizer, id);
    json[name + "_id"] = id_json(id);
  }
  json["chat_template"] = chat_template.empty() ? Json(nullptr) : Json(chat_template);
  return to_line(json);
}

}  // namespace octavo
