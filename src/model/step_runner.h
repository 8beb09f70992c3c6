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
  bool rounds;                       // quantised weights are multiplied by rounded activations
  std::span<const RopeTable> ropes;  // of layers that see all, then of those with a window
  StepBuffers& buffers;
  StepInputs& inputs;
  KvStorage& kv;
  StepProfile* profile;  // filled by the first thread, or nullptr
  std::stop_token cancel{};
  std::atomic<bool> cancelled{false};
  std::atomic<int> num_active_experts{0};  // of the layer that is computed
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
  void prepare(const StepOp& op);
  void prepare_few();
  void prepare_row(const StepOp& op, int64_t row);
  void norm_heads(const StepOp& op);
  void reorder(const StepOp& op);
  // Adapters: step_runner_lora.cc
  void shrink(const StepOp& op);
  void shrink_rows(const StepOp& op, size_t linear, int64_t first, int64_t last);
  // Adds what adapters add to panels [begin, end) of a product. y: of the first row and panel.
  void add_adapters(const StepOp& op, size_t linear, int64_t begin, int64_t end, float* y,
                    int64_t y_stride);
  float* shrunk(size_t linear, int64_t row) const;
  // To rows of `width` outputs from `first` on.
  void add_bias(const Linear& linear, int64_t first, int64_t width, int64_t rows, float* y,
                int64_t y_stride);
  void multiply(const StepOp& op);
  void multiply_add(const StepOp& op);
  void gate_up(const StepOp& op);
  void activate(const StepOp& op, const float* gates, const float* ups, int64_t n, float* out);
  void add_normed(const StepOp& op);
  void place(const StepOp& op);

  // A layer, as its attention sees it.
  struct LayerView {
    int layer;
    kernels::KvLayer kv;
    int window;
  };
  void attend(const StepOp& op, bool places);
  void attend_unit(int64_t index, const LayerView& at, bool places);
  void attend_shared(const LayerView& at);
  void attend_shared_unit(const StepInputs::SharedUnit& unit, const LayerView& at);
  void place_heads(const AttentionWork& work, const LayerView& at, kernels::AttentionItem& item,
                   bool stores);

  // Encoders: step_runner_encoder.cc
  void finish_encoder_embedding(int64_t row, float* x);
  void up(const StepOp& op);
  void layer_norm(const StepOp& op);

  // Experts: step_runner_experts.cc
  void route(const StepOp& op);
  void choose(int64_t row);
  void group(int rows);
  void gather(const StepOp& op);
  void expert_gate_up(const StepOp& op);
  void expert_round(const StepOp& op);
  void expert_down(const StepOp& op);
  void combine(const StepOp& op);
  // Shares the panels of all active experts out: body(expert, first panel, last).
  template <class Body>
  void for_expert_panels(int64_t panels_of_each, const Body& body);
  void keep();
  bool stopped_at_layer_end();

  // Calls body(row) for all rows, which are shared out.
  template <class Body>
  void for_rows(int64_t rows, const Body& body) {
    const auto some = [&](int64_t first, int64_t last) {
      for (int64_t row = first; row < last; ++row) body(row);
    };
    team_.share(rows, some, Team::Sharing::even);
  }
  template <class Body>
  void for_groups_of_rows(int64_t rows, const Body& body);
  void norm_for_head(const StepOp& op, int64_t row, int64_t to);
  const RowBuffers& row_buffers(bool few) const { return few ? mine_.few : buffers_.many; }
  // Rows to be multiplied, as floats and, for quantised weights, rounded.
  struct Input {
    const float* floats;
    kernels::A8 rounded;  // with its cols
    int64_t cols;
    int64_t rows;
  };
  bool reads_prepared(const StepOp& op) const;
  static Team::Sharing sharing_of(const StepOp& op);
  static int64_t panels_of_a_piece(const StepOp& op);
  // Shares the panels of a product out: body(first panel, last).
  template <class Body>
  void share_panels(const StepOp& op, int64_t panels, const Body& body) {
    const auto prepared = [&](int64_t begin, int64_t end) {
      if (reads_prepared(op)) prepare_few();
      body(begin, end);
    };
    team_.share(panels, prepared, sharing_of(op), panels_of_a_piece(op));
  }
  Input input_of(const StepOp& op) const;
  Input expert_input(int expert, const float* rows, int64_t cols) const;
  void finish_logits(float* logits, int64_t n) const;
  void multiply_panels(const kernels::PanelMatrix& w, const Input& in, float* y, int64_t y_stride);
  void prepare_heads(float* x, int heads, const std::vector<float>& norm, int layer,
                     int64_t row) const;
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
  const StepOp* to_prepare_ = nullptr;  // by this thread, for the product that follows
};

}  // namespace octavo
