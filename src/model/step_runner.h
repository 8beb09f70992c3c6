// Carries out step programs: one runner per thread of a team.
#pragma once

#include <atomic>
#include <span>
#include <stop_token>

#include "base/thread_pool.h"
#include "kernels/api.h"
#include "model/kv_storage.h"
#include "model/model_config.h"
#include "model/step_buffers.h"
#include "model/step_inputs.h"
#include "model/step_profile.h"
#include "model/step_program.h"

namespace octavo {

// What all threads of a step share.
struct StepRun {
  const ModelConfig& config;
  const ModelWeights& weights;
  const kernels::Ops& ops;
  bool rounds;                         // quantised weights are multiplied by rounded activations
  std::span<const float> frequencies;  // of the rotary pairs
  StepBuffers& buffers;
  StepInputs& inputs;
  KvStorage& kv;
  StepProfile* profile;  // filled by the first thread, or nullptr
  std::stop_token cancel{};
  std::atomic<bool> cancelled{false};
};

class StepRunner {
 public:
  StepRunner(StepRun& run, Team& team)
      : run_(run),
        ops_(run.ops),
        buffers_(run.buffers),
        mine_(run.buffers.threads[static_cast<size_t>(team.index())]),
        team_(team),
        profile_(team.index() == 0 ? run.profile : nullptr) {}

  void step(const StepProgram& program);

  // Logits of the given rows of the residual. out: [rows.size()][stride]
  void head(std::span<const int> rows, float* out);

 private:
  void carry_out(const StepOp& op, bool places_in_attention);
  void begin(int rows);
  void embed(int64_t row);
  void find_angles(int64_t row);
  void norm(const StepOp& op);
  void round(const StepOp& op);
  void multiply(const StepOp& op);
  void multiply_add(const StepOp& op);
  void gate_up(const StepOp& op);
  void place(const StepOp& op);
  void attend(const StepOp& op, bool places);
  void attend_unit(int64_t index, const kernels::KvLayer& kv, int window, bool places);
  void attend_shared(const kernels::KvLayer& kv, int window);
  void attend_shared_unit(const StepInputs::SharedUnit& unit, const kernels::KvLayer& kv,
                          int window);
  void place_heads(const AttentionWork& work, kernels::AttentionItem& item, bool stores);
  void keep();
  bool stopped_at_layer_end();

  // Calls body(row) for the rows this thread has to prepare for a product.
  template <class Body>
  void for_my_rows(int64_t rows, bool few, const Body& body);
  const RowBuffers& row_buffers(bool few) const { return few ? mine_.few : buffers_.many; }
  void multiply_panels(const kernels::PanelMatrix& w, const StepOp& op, float* y, int64_t y_stride);
  void rope(float* x, int heads, int64_t row) const;
  void barrier_after(StepPart part) {
    lap(part);
    team_.barrier();
    lap(StepPart::wait);
  }
  void lap(StepPart part) {
    if (profile_) profile_->lap(part);
  }

  StepRun& run_;
  const kernels::Ops& ops_;
  StepBuffers& buffers_;
  const ThreadBuffers& mine_;
  Team& team_;
  StepProfile* profile_;
};

}  // namespace octavo
