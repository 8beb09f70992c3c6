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
  uint64_t file_bytes = 0;              // of all files
  std::vector<std::string> files = {};  // several with max_shard_bytes
};

struct QuantizeOptions {
  QuantizeRules rules;
  bool overwrite = false;
  uint64_t max_shard_bytes = 0;  // of the tensors of one file, if they are several; 0: one file
  std::stop_token stop = {};
  // Before each tensor.
  std::function<void(size_t tensor, size_t num_tensors)> on_progress = {};
};

// The files that quantize_to_file() writes: `path`, or, if not all tensors fit into one of
// options.max_shard_bytes, STEM-00001-of-00003.gguf and so on. A tensor that alone is larger has a
// file of its own. Errors: invalid_argument (more files than their names can number).
Result<std::vector<std::string>> quantized_files(const WeightSource& source,
                                                 const std::string& path,
                                                 const QuantizeOptions& options);

// After an error nothing is left behind. Errors: those of GgufFileWriter; numeric_error (NaN,
// infinity, or a value too large for the type; names the tensor), cancelled.
Result<QuantizeReport> quantize_to_file(const WeightSource& source, const std::string& path,
                                        const QuantizeOptions& options, ThreadPool& pool);

}  // namespace octavo
