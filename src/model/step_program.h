// A step of one shape as a list of operations, which all threads of a team walk through together.
// Recorded once per shape and then replayed, as a CUDA graph is: only StepInputs change.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "model/model_config.h"
#include "model/step_buffers.h"
#include "model/step_profile.h"
#include "model/weights.h"

namespace octavo {

struct StepShape {
  int tokens = 0;
  int kept = 0;                // rows that go through the end of the last layer
  bool single_tokens = false;  // of as many sequences
  bool adapted = false;        // some tokens have an adapter
  int skips = 0;               // which set of layers is skipped, by a number; 0: none

  bool operator==(const StepShape&) const = default;
};

struct StepOp {
  enum class Kind : uint8_t {
    begin,           // embedding rows and the angles of their positions; of encoders, normed
    barrier,         // threads wait for each other
    layer_end,       // the same, and the step may be cancelled here
    norm,            // rows of `in`, which are the residual: normed, and rounded for the product
    norm_heads,      // rows of q and k, all heads of one together
    round,           // rows of `in`, rounded for the product
    shrink,          // what adapters make of `in` for the product that follows
    multiply,        // out = W in + bias, for up to three matrices
    multiply_add,    // residual += W in + bias
    gate_up,         // inner = activation(W0 in) * (W1 in)
    up,              // inner = gelu(W in + bias), of encoders
    layer_norm,      // the residual's rows are normed where they are
    reorder,         // values of each row of `in` in the order of a product's columns
    add_normed,      // residual += the normed rows of `in`
    route,           // norms rows of `in`; the router picks experts for each
    group,           // finds the rows of each expert
    gather,          // puts normed rows into groups
    expert_gate_up,  // the same as gate_up, of each group with its expert's part of the matrices
    expert_round,    // inner rows of groups, rounded for the product
    expert_down,     // the groups' outputs = W in
    combine,         // residual += the outputs of each row's experts, each times its share
    place,           // rotates q and k, stores k and v
    attend,          // rotates and stores as well, if place did not
    keep,            // drops the rows that nobody asks for
  };
  Kind kind;
  StepPart part;
  bool few = false;     // norm, round: every thread does all rows, into its own buffers;
                        // products read those
  bool rounds = false;  // the rounded rows are needed
  int layer = 0;
  int rows = 0;
  int64_t cols = 0;               // of `in`
  const float* in = nullptr;      // products: nullptr: the normed rows
  const float* weight = nullptr;  // of the norm
  const float* bias = nullptr;    // of a layer_norm
  // norm, reorder: value i of a row is order[i] of `in`; nullptr: i
  const int32_t* order = nullptr;
  bool gelu = false;  // the activation; else silu
  int num_linears = 0;
  std::array<const Linear*, 3> linears{};
  std::array<float*, 3> out{};
  bool adapted = false;                // products: adapters add to them
  bool kept = false;                   // rows are those that were kept
  std::array<int8_t, 3> targets = {};  // which of kLoraTargets the linears are
};

struct StepProgram {
  StepShape shape;
  int64_t barriers = 0;
  bool places_in_attention = false;
  std::vector<StepOp> ops;
};

// What programs are recorded from.
struct StepModel {
  const ModelConfig& config;
  const ModelWeights& weights;
  const StepBuffers& buffers;
  bool rounds;  // quantised weights are multiplied by rounded activations
  std::span<const int> skipped_layers{};
};

// Replaces `program`, keeping its memory.
void record_step(const StepModel& model, const StepShape& shape, StepProgram& program);

// Programs of shapes seen before.
class StepPrograms {
 public:
  // reuse: false records every step anew, for comparison.
  explicit StepPrograms(bool reuse) : reuse_(reuse) {}

  // Valid until the next call.
  const StepProgram& of(const StepModel& model, const StepShape& shape);
  int num_recorded() const { return static_cast<int>(recorded_.size()); }

 private:
  bool reuse_;
  std::vector<StepProgram> recorded_;
  StepProgram passing_;  // of a shape that is not kept
};

}  // namespace octavo
