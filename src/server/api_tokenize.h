// Answers of /tokenize, /detokenize and /tokenizer_info, as one line of JSON.
#pragma once

#include <span>
#include <stop_token>
#include <string>
#include <string_view>

#include "server/api_request.h"
#include "text/tokenizer.h"

namespace octavo {

// request.text as ids. Errors: those of Tokenizer::encode.
ApiResult<std::vector<TokenId>> tokenize_text(const TokenizeRequest& request,
                                              const Tokenizer& tokenizer,
                                              std::stop_token stop = {});

// vLLM's {"count","max_model_len","tokens","token_strs"}, or llama.cpp's {"tokens"}, with pieces
// {"id","piece"}, a piece that is no text as a list of bytes.
std::string tokenize_answer(const TokenizeRequest& request, std::span<const TokenId> ids,
                            const Tokenizer& tokenizer, int max_model_len);

// The text under both names, vLLM's "prompt" and llama.cpp's "content": requests do not say which
// they want.
std::string detokenize_answer(const DetokenizeRequest& request, const Tokenizer& tokenizer);

std::string tokenizer_info_answer(const Tokenizer& tokenizer, int max_model_len,
                                  std::string_view chat_template);

}  // namespace octavo
