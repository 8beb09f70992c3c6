#include "engine/admission.h"

#include <fmt/format.h>

#include <algorithm>

#include "kv/block_size.h"
#include "model/lora.h"

namespace octavo {
namespace {

// Programs that cut a conversation down and ask again know an overflow by these words: litellm,
// agents and editors look for them in the message, LangChain for the code.
std::string most_tokens(int64_t count) {
  return fmt::format("this model's maximum context length is {}", count);
}

Result<void> check_ids(std::span<const TokenId> ids, std::string_view name, int num_tokens) {
  for (size_t i = 0; i < ids.size(); ++i)
    if (raw(ids[i]) < 0 || raw(ids[i]) >= num_tokens)
      return fail(ErrorCode::invalid_argument,
                  fmt::format("token id {} at position {}{} is not in the vocabulary (0 to {})",
                              raw(ids[i]), i, name, num_tokens - 1));
  return {};
}

// The last token of an answer is never computed, so it takes no place.
Result<void> check_blocks(int64_t prompt, int max_tokens, const AdmissionLimits& limits) {
  const int64_t positions = prompt + std::max(max_tokens - 1, 0);
  const int64_t needed = blocks_for(positions, limits.block_size);
  if (needed > limits.num_blocks)
    return fail(ErrorCode::context_overflow,
                fmt::format("{} tokens, since its KV cache has no more ({} blocks of {}), but the "
                            "prompt has {} tokens and {} are to be generated, which needs {} "
                            "blocks; shorten the prompt, lower max_tokens, or give the cache more "
                            "memory with kv_cache_memory_bytes",
                            most_tokens(int64_t{limits.num_blocks} * limits.block_size),
                            limits.num_blocks, limits.block_size, prompt, max_tokens, needed));
  return {};
}

Result<void> check_purpose(const Request& request, const AdmissionLimits& limits) {
  if (!request.pooling && limits.is_encoder)
    return fail(ErrorCode::unsupported, std::string(kEncoderWritesNoText));
  if (!request.pooling) return {};
  if (limits.hidden_size == 0)
    return fail(ErrorCode::unsupported, "this model makes no embeddings");
  const int dimensions = request.pooling->dimensions;
  if (dimensions < 0 || dimensions > limits.hidden_size)
    return fail(ErrorCode::invalid_argument,
                fmt::format("dimensions is {}; an embedding of this model has 1 to {}", dimensions,
                            limits.hidden_size));
  return {};
}

tl::unexpected<Error> overflow(int64_t prompt, std::optional<int> max_tokens, int max_model_len) {
  const std::string asked = max_tokens ? fmt::format(" and max_tokens is {}, {} together",
                                                     *max_tokens, prompt + *max_tokens)
                                       : ", and the answer needs room";
  return fail(ErrorCode::context_overflow,
              fmt::format("{} tokens, but the prompt has {} tokens{}; {}",
                          most_tokens(max_model_len), prompt, asked,
                          prompt >= max_model_len ? "the prompt is too long: shorten it"
                                                  : "shorten the prompt or lower max_tokens"));
}

}  // namespace

Result<void> check_prompt_length(int64_t num_tokens, int max_model_len) {
  if (num_tokens > max_model_len) return overflow(num_tokens, std::nullopt, max_model_len);
  return {};
}

Result<int> tokens_to_generate(const Request& request, int max_model_len) {
  const auto prompt = static_cast<int64_t>(request.prompt_token_ids.size());
  const std::optional<int> asked = request.pooling ? 0 : request.params.max_tokens;
  if (request.pooling && prompt > max_model_len)
    return fail(ErrorCode::context_overflow,
                fmt::format("{} tokens, but the input has {} tokens; shorten it",
                            most_tokens(max_model_len), prompt));
  if (prompt + asked.value_or(1) > max_model_len) return overflow(prompt, asked, max_model_len);
  return asked.value_or(static_cast<int>(max_model_len - prompt));
}

Result<void> check_request(const Request& request, const AdmissionLimits& limits) {
  OCTAVO_CHECK_OK(check_purpose(request, limits));
  if (!request.pooling)
    OCTAVO_CHECK_OK(validate(request.params, limits.num_tokens, limits.max_logprobs));
  if (request.priority != 0 && !limits.has_priorities)
    return fail(
        ErrorCode::invalid_argument,
        fmt::format("priority is {}, but the engine serves requests in another order; leave "
                    "it out, or set scheduling_policy to priority",
                    request.priority));
  if (request.adapter && request.adapter->rank() > limits.max_lora_rank)
    return fail(ErrorCode::invalid_argument,
                fmt::format("the adapter has rank {} and the engine takes at most {}; raise "
                            "max_lora_rank",
                            request.adapter->rank(), limits.max_lora_rank));
  if (request.prompt_token_ids.empty())
    return fail(ErrorCode::invalid_argument, "the prompt is empty; give at least one token");
  OCTAVO_CHECK_OK(check_ids(request.prompt_token_ids, "", limits.num_tokens));
  if (request.prediction)
    OCTAVO_CHECK_OK(check_ids(*request.prediction, " of the prediction", limits.num_tokens));
  if (request.num_speculative_tokens.value_or(0) < 0)
    return fail(ErrorCode::invalid_argument, "num_speculative_tokens must not be negative");
  OCTAVO_TRY(const int max_tokens, tokens_to_generate(request, limits.max_model_len));
  return check_blocks(std::ssize(request.prompt_token_ids), max_tokens, limits);
}

}  // namespace octavo
