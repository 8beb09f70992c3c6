// Writes a model in another type: tensor by tensor, with the memory of one where it must be made
// first, else of a piece of one.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <stop_token>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/thread_pool.h"
#include "formats/gguf_writer.h"
#include "formats/quantize_plan.h"
#include "formats/weight_source.h"

namespace octavo {

// What became of the tensors of one type.
struct QuantizedType {
  int num_tensors = 0;
  int64_t elements = 0;
  uint64_t bytes_before = 0, bytes_after = 0;
  double squares = 0, lost_squares = 0;  // of the values, and of what rounding took from them

  double relative_error() const;  // root of the mean square; 0 if all values are 0
};

struct QuantizeReport {
  std::map<DType, QuantizedType> types;
  uint64_t file_bytes = 0;
};

struct QuantizeOptions {
  QuantizeRules rules;
  bool overwrite = false;
  std::stop_token stop = {};
  // Before each tensor.
  std::function<void(size_t tensor, size_t num_tensors)> on_progress = {};
};

// After an error nothing is left behind. Errors: those of GgufFileWriter; numeric_error (NaN,
// infinity, or a value too large for the type; names the tensor), cancelled.
Result<QuantizeReport> quantize_to_file(const WeightSource& source, const std::string& path,
                                        const QuantizeOptions& options, ThreadPool& pool);

}  // namespace octavo
