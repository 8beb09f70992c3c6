// One matrix of four-bit weights as GPTQ, AWQ and compressed-tensors store it, in several tensors:
// w = scale * (code - zero point), with scale and zero point for a group of inputs of each output.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "formats/hf_quantization.h"
#include "formats/shards.h"

namespace octavo {

// The tensors of one matrix; nothing: there is none of that kind.
struct PackedParts {
  std::optional<ShardIntegers> codes = {}, zeros = {}, groups = {};
  std::optional<ShardIntegers> shape = {};  // of compressed-tensors: says what is known
  std::optional<ShardTensor> scales = {};
};

// Of every module ("model.layers.0.mlp.up_proj") that has packed weights. What is not part of one
// goes to `plain`. Errors: unsupported (integers that are no part of one).
struct PackedModules {
  std::map<std::string, PackedParts, std::less<>> modules;
  std::vector<ShardTensor> plain;

  static Result<PackedModules> find(const Shards& shards, const HfQuantization& how);
};

class HfPackedMatrix {
 public:
  // `parts` lie in files that outlive the result. Errors: corrupt_file (a tensor is missing or
  // misshapen; a group that does not exist), unsupported; they name the tensor.
  static Result<HfPackedMatrix> create(std::string module, const PackedParts& parts,
                                       const HfQuantization& how);

  const std::string& module() const { return module_; }
  const std::string& name() const { return parts_.codes->view->name; }  // for messages
  int64_t rows() const { return rows_; }
  int64_t cols() const { return cols_; }
  // All zero points are 8: it can be q4_0. Any matrix can be q4_z.
  bool symmetric() const { return symmetric_; }

  // Not empty: the groups do not follow the inputs ("act-order"). Columns are then written so that
  // groups lie together, and column i belongs to input order()[i].
  std::span<const int32_t> order() const { return order_; }

  // All rows as blocks of `type`, q4_0 or q4_z, to `out`; half_turn_rows: heads of so many rows
  // whose halves are interleaved on the way (GGUF's order of rotary pairs), 0: none. REQUIRES: out
  // has rows() * row_bytes(type, cols()) bytes; q4_0 only if symmetric(). Errors: numeric_error (a
  // scale that is not finite, or beyond f16).
  Result<void> write(DType type, int64_t half_turn_rows, std::byte* out) const;

  void drop() const;  // the pages of its tensors

 private:
  HfPackedMatrix() = default;
  Result<void> check_shapes();
  Result<void> check_integers(const ShardIntegers& part, std::array<int64_t, 2> shape) const;
  Result<void> check_said_shape() const;
  Result<void> read_groups();
  Result<void> sort_inputs(const std::vector<int32_t>& group_of);
  Result<std::vector<uint16_t>> read_scales() const;
  void find_zeros();
  int zero(int64_t row, int64_t group) const;
  void unpack(int64_t first, int64_t count, uint8_t* codes) const;
  int64_t place(int64_t input) const {
    return places_.empty() ? input : places_[static_cast<size_t>(input)];
  }
  tl::unexpected<Error> error(std::string_view tensor, std::string_view what,
                              ErrorCode code = ErrorCode::corrupt_file) const;

  std::string module_;
  PackedParts parts_;
  HfQuantization how_;
  int64_t rows_ = 0, cols_ = 0, num_groups_ = 0;
  bool symmetric_ = true;
  std::vector<int32_t> order_;         // empty: as they come
  std::vector<int32_t> places_;        // its inverse
  std::vector<int32_t> block_groups_;  // of each block of 32 columns
};

}  // namespace octavo
