// A model as it is written to a GGUF file: pairs, and tensors by their canonical names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "formats/gguf_writer.h"
#include "formats/hf_model.h"
#include "formats/model_source.h"

namespace octavo {

// Views point into whatever the model lies in.
struct WeightSource {
  std::string name = {};  // for messages
  GgufPairs metadata = {};
  std::span<const TensorView> tensors = {};  // names are canonical
  int num_experts = 0;
  uint64_t alignment = kGgufDefaultAlignment;  // that of `metadata`
  // One of `tensors` with its bytes, which may be in `room`; empty: they are there already.
  std::function<Result<TensorView>(const TensorView&, std::vector<std::byte>& room)> read = {};
  std::function<void(const TensorView&)> drop = {};  // a tensor that is not needed again
  std::vector<std::string> notes = {};               // what of the model a GGUF file cannot say
};

// Of a model in GGUF, which must outlive the source.
Result<WeightSource> weight_source(const ModelSource& gguf);

// The same of a folder, which must outlive the source, with its tokenizer. Errors: those of
// ModelSource::tokenizer; corrupt_file (a layer lacks a tensor that another has, or has it in
// another shape); unsupported (a tokenizer that has no name in GGUF).
Result<WeightSource> weight_source(const HfModel& folder);

struct OpenWeightSource {
  std::unique_ptr<ModelSource> model;
  WeightSource weights;
};
// Errors: those of open_model and weight_source.
Result<OpenWeightSource> open_weight_source(const std::string& path);

}  // namespace octavo
