// What a GGUF file of any architecture, run by this program or not, says about the memory of its KV
// cache.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "formats/model_source.h"
#include "kv/estimator.h"

namespace octavo {

struct KvFacts {
  std::string family;  // general.architecture
  KvShape shape;
  std::optional<int64_t> context_length;
};

// Errors: corrupt_file (a count is missing or absurd), unsupported (heads that differ from layer to
// layer, or keys and values of different sizes).
Result<KvFacts> read_kv_facts(const ModelSource& file);

}  // namespace octavo
