// Embeddings: what is asked of the engine, and the answer in OpenAI's shape.
#pragma once

#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "engine/request.h"
#include "model/pooling_config.h"
#include "server/api_answer.h"
#include "server/api_request.h"
#include "text/tokenizer.h"

namespace octavo {

// One request of the engine for each input. Errors: those of Tokenizer::encode.
ApiResult<std::vector<Request>> embedding_requests(EmbeddingRequest& request,
                                                   const PoolingConfig& pooling,
                                                   const Tokenizer& tokenizer, int max_model_len,
                                                   std::stop_token stop = {});

// Its whole() alone is used: embeddings come at once.
std::unique_ptr<AnswerWriter> make_answer_writer(const EmbeddingRequest& request,
                                                 const Tokenizer& tokenizer, AnswerHead head);

// Little-endian 32-bit floats.
std::string floats_base64(std::span<const float> values);
// "[0.25,-1]": as few digits as give the same float again.
std::string floats_json(std::span<const float> values);

}  // namespace octavo
