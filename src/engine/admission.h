// Whether a request can be served at all: rules that depend on nothing that changes.
#pragma once

#include "base/result.h"
#include "engine/request.h"

namespace octavo {

inline constexpr std::string_view kEncoderWritesNoText =
    "this model is an encoder: it makes embeddings and writes no text; ask /v1/embeddings or "
    "octavo "
    "embed, or take a model that generates";

struct AdmissionLimits {
  int num_tokens = 0;     // of the vocabulary
  int max_model_len = 0;  // tokens of prompt and answer
  int num_blocks = 0;     // of the KV cache
  int block_size = 0;
  int max_logprobs = kMaxLogprobs;
  int max_lora_rank = 0;       // of adapters
  int hidden_size = 0;         // of an embedding; 0: the model makes none
  bool is_encoder = false;     // it makes nothing else
  bool has_priorities = true;  // false: a request that names one is refused
};

// Errors: invalid_argument (parameters, an empty prompt, ids that are no tokens),
// context_overflow (of the model's context, or of all KV blocks that there are), unsupported (text
// from an encoder, or an embedding from a model without).
Result<void> check_request(const Request& request, const AdmissionLimits& limits);

// Tokens that each choice may have. context_overflow if prompt and max_tokens do not fit: a prompt
// may fill max_model_len if nothing is to be generated; else one token must have room, and
// max_tokens, if given, all of it.
Result<int> tokens_to_generate(const Request& request, int max_model_len);

// context_overflow if no request could have a prompt of so many tokens.
Result<void> check_prompt_length(int64_t num_tokens, int max_model_len);

}  // namespace octavo
