// GET /openapi.json: what the server takes and answers, as OpenAPI 3.1. Bodies are described by the
// table that reads them (api_fields.h).
#pragma once

#include <string>
#include <vector>

#include "server/api_request.h"

namespace octavo {

struct OpenApiOptions {
  ApiLimits limits = {};  // vocab_size and max_model_len 0: not known yet
  bool needs_key = false;
  bool needs_key_for_metrics = false;
};

std::string openapi_json(const OpenApiOptions& options);

}  // namespace octavo
