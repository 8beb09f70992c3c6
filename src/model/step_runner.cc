#include "model/step_runner.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "model/step_slices.h"

namespace octavo {
namespace {

constexpr int64_t kRows = kernels::kPanelRows;

using detail::slice;
using detail::with_cols;

void gather_row(const float* in, const StepOp& op, float* out) {
  for (int64_t i = 0; i < op.cols; ++i) out[i] = in[op.order[i]];
}

}  // namespace

void StepRunner::step(const StepProgram& program) {
  for (const StepOp& op : program.ops) {
    if (op.kind == StepOp::Kind::layer_end) {
      const bool stopped = stopped_at_layer_end();
      lap(op.part);
      if (stopped) return;
      continue;
    }
    carry_out(op, program.places_in_attention);
    lap(op.part);
  }
}

void StepRunner::carry_out(const StepOp& op, bool places_in_attention) {
  switch (op.kind) {
    case StepOp::Kind::begin:
      return begin(op.rows);
    case StepOp::Kind::barrier:
    case StepOp::Kind::layer_end:
      return team_.barrier();
    case StepOp::Kind::norm:
    case StepOp::Kind::round:
      return prepare(op);
    case StepOp::Kind::norm_heads:
      return norm_heads(op);
    case StepOp::Kind::shrink:
      return shrink(op);
    case StepOp::Kind::multiply:
      return multiply(op);
    case StepOp::Kind::multiply_add:
      return multiply_add(op);
    case StepOp::Kind::gate_up:
      return gate_up(op);
    case StepOp::Kind::up:
      return up(op);
    case StepOp::Kind::layer_norm:
      return layer_norm(op);
    case StepOp::Kind::reorder:
      return reorder(op);
    case StepOp::Kind::add_normed:
      return add_normed(op);
    case StepOp::Kind::route:
      return route(op);
    case StepOp::Kind::group:
      return team_.once([&] { group(op.rows); });
    case StepOp::Kind::gather:
      return gather(op);
    case StepOp::Kind::expert_gate_up:
      return expert_gate_up(op);
    case StepOp::Kind::expert_round:
      return expert_round(op);
    case StepOp::Kind::expert_down:
      return expert_down(op);
    case StepOp::Kind::combine:
      return combine(op);
    case StepOp::Kind::place:
      return place(op);
    case StepOp::Kind::attend:
      return attend(op, places_in_attention);
    case StepOp::Kind::keep:
      return team_.once([&] { keep(); });
  }
}

// A thread that stops leaves its work to the others, until they stop, too.
bool StepRunner::stopped_at_layer_end() {
  if (run_.cancel.stop_requested()) run_.cancelled.store(true, std::memory_order_relaxed);
  team_.barrier();
  return run_.cancelled.load(std::memory_order_relaxed);
}

void StepRunner::begin(int rows) {
  for_rows(rows, [&](int64_t row) {
    embed(row);
    find_angles(row);
  });
}

void StepRunner::embed(int64_t row) {
  const int64_t hidden = run_.config.hidden_size;
  float* x = buffers_.residual + row * hidden;
  kernels::unpack_row(run_.weights.embedding.view(),
                      raw(run_.inputs.tokens()[static_cast<size_t>(row)]), x);
  const float scale = run_.config.embedding_scale;
  if (scale != 1)
    for (int64_t i = 0; i < hidden; ++i) x[i] *= scale;
  if (run_.config.architecture->encoder) finish_encoder_embedding(row, x);
}

void StepRunner::find_angles(int64_t row) {
  const int position = run_.inputs.places()[static_cast<size_t>(row)].position;
  int64_t at = row * std::ssize(run_.ropes) * run_.ropes[0].pairs();
  for (const RopeTable& rope : run_.ropes) {
    rope.angles(position, buffers_.cosines + at, buffers_.sines + at);
    at += rope.pairs();
  }
}

// Shared out in whole groups of kA8Tokens where there are enough: a group's scales lie in one line.
template <class Body>
void StepRunner::for_groups_of_rows(int64_t rows, const Body& body) {
  const int64_t unit = rows >= kernels::kA8Tokens * team_.size() ? kernels::kA8Tokens : 1;
  for_rows((rows + unit - 1) / unit, [&](int64_t group) {
    for (int64_t row = group * unit; row < std::min((group + 1) * unit, rows); ++row) body(row);
  });
}

// Few rows are prepared by each thread for itself, but only when it has got a piece of the product
// that reads them: a thread that is late would see what the others have made of the residual since.
void StepRunner::prepare(const StepOp& op) {
  if (op.few)
    to_prepare_ = &op;
  else
    for_groups_of_rows(op.rows, [&](int64_t row) { prepare_row(op, row); });
}

void StepRunner::prepare_few() {
  if (!to_prepare_) return;
  for (int64_t row = 0; row < to_prepare_->rows; ++row) prepare_row(*to_prepare_, row);
  to_prepare_ = nullptr;
}

// Whether the product reads normed or rounded rows. If not, what a thread without a piece of the
// one before has left over is no matter of this one, whose sum others may be adding to what that
// reads.
bool StepRunner::reads_prepared(const StepOp& op) const {
  if (!op.in) return true;
  const std::span linears(op.linears.data(), static_cast<size_t>(op.num_linears));
  return run_.rounds && std::ranges::any_of(linears, [](const Linear* linear) {
           return info(linear->weight.view().type).quantized;
         });
}

void StepRunner::prepare_row(const StepOp& op, int64_t row) {
  const RowBuffers& out = row_buffers(op.few);
  const kernels::A8 rounded = with_cols(out.rounded, op.cols);
  const float* in = op.in + row * op.cols;
  if (op.kind == StepOp::Kind::round) return ops_.quantize_a8(in, rounded, row);
  float* normed = out.normed + row * op.cols;
  if (op.order) {
    gather_row(in, op, normed);
    in = normed;
  }
  ops_.rms_norm(in, op.weight, run_.config.norm_eps, op.cols, normed);
  if (op.rounds) ops_.quantize_a8(normed, rounded, row);
}

void StepRunner::norm_heads(const StepOp& op) {
  const ModelConfig& c = run_.config;
  const LayerWeights& w = run_.weights.layers[static_cast<size_t>(op.layer)];
  const auto norm = [&](float* rows, const std::vector<float>& weight, int64_t row) {
    const auto cols = std::ssize(weight);
    if (!rows) return;
    ops_.rms_norm(rows + row * cols, weight.data(), c.norm_eps, cols, rows + row * cols);
  };
  for_rows(op.rows, [&](int64_t row) {
    norm(op.out[0], w.all_q_norm, row);
    norm(op.out[1], w.all_k_norm, row);
  });
}

void StepRunner::reorder(const StepOp& op) {
  for_rows(op.rows, [&](int64_t row) {
    float* x = const_cast<float*>(op.in) + row * op.cols;
    gather_row(x, op, mine_.products);
    std::copy_n(mine_.products, op.cols, x);
  });
}

// With so few rows the time goes into reading panels, each fetched while the one before is
// multiplied.
constexpr int kReadingRows = 32;
Team::Sharing StepRunner::sharing_of(const StepOp& op) {
  return op.rows <= kReadingRows ? Team::Sharing::even : Team::Sharing::balanced;
}

// Which takes a core some 10 us to read. In smaller pieces SmolLM2 135M lost 2 % of its decode
// speed.
constexpr size_t kPieceBytes = size_t{512} << 10;
int64_t StepRunner::panels_of_a_piece(const StepOp& op) {
  const size_t bytes = op.linears[0]->weight.view().panel_bytes;
  return static_cast<int64_t>((kPieceBytes + bytes - 1) / bytes);
}

StepRunner::Input StepRunner::input_of(const StepOp& op) const {
  const RowBuffers& rows = row_buffers(op.few);
  return {op.in ? op.in : rows.normed, with_cols(rows.rounded, op.cols), op.cols, op.rows};
}

// All panels of w times the rows. y: of w's first row
void StepRunner::multiply_panels(const kernels::PanelMatrix& w, const Input& in, float* y,
                                 int64_t y_stride) {
  if (run_.rounds && info(w.type).quantized)
    return ops_.matmul_a8(w, 0, w.panels(), in.rounded, in.rows, y, y_stride);
  const bool in_bf16 = run_.rounds && w.type == DType::bf16 && ops_.matmul_bf16;
  const auto product = in_bf16 ? ops_.matmul_bf16 : ops_.matmul_f32;
  product(w, 0, w.panels(), in.floats, in.cols, in.rows, y, y_stride);
}

void StepRunner::add_bias(const Linear& linear, int64_t first, int64_t width, int64_t rows,
                          float* y, int64_t y_stride) {
  if (linear.bias.empty()) return;
  for (int64_t row = 0; row < rows; ++row)
    ops_.add(y + row * y_stride, linear.bias.data() + first, width);
}

// The panels of all products are one range, shared out once.
void StepRunner::multiply(const StepOp& op) {
  const std::span linears(op.linears.data(), static_cast<size_t>(op.num_linears));
  int64_t total = 0;
  for (const Linear* linear : linears) total += linear->weight.view().panels();
  share_panels(op, total, [&](int64_t begin, int64_t end) {
    int64_t first = 0;  // panel of the current matrix
    for (size_t i = 0; i < linears.size(); ++i) {
      const kernels::PanelMatrix w = linears[i]->weight.view();
      const int64_t from = std::max(begin - first, int64_t{0}),
                    to = std::min(end - first, w.panels());
      first += w.panels();
      if (from >= to) continue;
      const int64_t stride = w.panels() * kRows;
      float* y = op.out[i] + from * kRows;
      multiply_panels(slice(w, from, to), input_of(op), y, stride);
      add_bias(*linears[i], from * kRows, (to - from) * kRows, op.rows, y, stride);
      if (op.adapted) add_adapters(op, i, from, to, y, stride);
    }
  });
}

// The products of some panels go to the thread's own memory and from there into the residual.
void StepRunner::multiply_add(const StepOp& op) {
  const kernels::PanelMatrix w = op.linears[0]->weight.view();
  const int64_t stride = w.panels() * kRows;
  const int64_t most = std::max<int64_t>(1, buffers_.product_floats / (op.rows * kRows));
  share_panels(op, w.panels(), [&](int64_t begin, int64_t end) {
    for (int64_t from = begin; from < end; from += most) {
      const int64_t to = std::min(from + most, end), width = (to - from) * kRows;
      multiply_panels(slice(w, from, to), input_of(op), mine_.products, width);
      add_bias(*op.linears[0], from * kRows, width, op.rows, mine_.products, width);
      if (op.adapted) add_adapters(op, 0, from, to, mine_.products, width);
      for (int64_t row = 0; row < op.rows; ++row)
        ops_.add_scaled(op.out[0] + row * stride + from * kRows, mine_.products + row * width,
                        run_.config.residual_scale, width);
    }
  });
}

void StepRunner::gate_up(const StepOp& op) {
  const kernels::PanelMatrix gate = op.linears[0]->weight.view();
  const kernels::PanelMatrix up = op.linears[1]->weight.view();
  const int64_t stride = gate.panels() * kRows;
  const int64_t most = std::max<int64_t>(1, buffers_.product_floats / (2 * op.rows * kRows));
  share_panels(op, gate.panels(), [&](int64_t begin, int64_t end) {
    for (int64_t from = begin; from < end; from += most) {
      const int64_t to = std::min(from + most, end), width = (to - from) * kRows;
      float* gates = mine_.products;
      float* ups = mine_.products + op.rows * width;
      multiply_panels(slice(gate, from, to), input_of(op), gates, width);
      multiply_panels(slice(up, from, to), input_of(op), ups, width);
      add_bias(*op.linears[0], from * kRows, width, op.rows, gates, width);
      add_bias(*op.linears[1], from * kRows, width, op.rows, ups, width);
      if (op.adapted) {
        add_adapters(op, 0, from, to, gates, width);
        add_adapters(op, 1, from, to, ups, width);
      }
      lap(StepPart::gate_up);
      for (int64_t row = 0; row < op.rows; ++row)
        activate(op, gates + row * width, ups + row * width, width,
                 op.out[0] + row * stride + from * kRows);
      lap(StepPart::activation);
    }
  });
}

void StepRunner::activate(const StepOp& op, const float* gates, const float* ups, int64_t n,
                          float* out) {
  (op.gelu ? ops_.gelu_mul : ops_.silu_mul)(gates, ups, n, out);
}

void StepRunner::add_normed(const StepOp& op) {
  for_rows(op.rows, [&](int64_t row) {
    float* x = const_cast<float*>(op.in) + row * op.cols;
    ops_.rms_norm(x, op.weight, run_.config.norm_eps, op.cols, x);
    ops_.add_scaled(buffers_.residual + row * op.cols, x, run_.config.residual_scale, op.cols);
  });
}

// Heads of q or k are normed, if the family does, and rotated.
void StepRunner::prepare_heads(float* x, int heads, const std::vector<float>& norm, int layer,
                               int64_t row) const {
  const ModelConfig& c = run_.config;
  if (!norm.empty())
    for (int head = 0; head < heads; ++head)
      ops_.rms_norm(x + head * c.head_dim, norm.data(), c.norm_eps, c.head_dim,
                    x + head * c.head_dim);
  const int64_t pairs = run_.ropes[0].pairs();
  const int64_t kind = std::ssize(run_.ropes) > 1 && c.window(layer) > 0 ? 1 : 0;
  const int64_t at = (row * std::ssize(run_.ropes) + kind) * pairs;
  ops_.rope(x, heads, c.head_dim, static_cast<int>(pairs), c.architecture->rope_interleaved,
            buffers_.cosines + at, buffers_.sines + at);
}

void StepRunner::place(const StepOp& op) {
  const ModelConfig& c = run_.config;
  const LayerWeights& w = run_.weights.layers[static_cast<size_t>(op.layer)];
  const kernels::KvLayer kv = run_.kv.layer(run_.config.kv_layer(op.layer));
  for_rows(op.rows, [&](int64_t row) {
    float* k = buffers_.k + row * c.num_kv_heads * c.head_dim;
    const float* v = buffers_.v + row * c.num_kv_heads * c.head_dim;
    prepare_heads(buffers_.q + row * c.num_heads * c.head_dim, c.num_heads, w.q_norm, op.layer,
                  row);
    prepare_heads(k, c.num_kv_heads, w.k_norm, op.layer, row);
    const auto store = [&](const RowPlace& place) {
      for (int head = 0; head < c.num_kv_heads; ++head)
        ops_.store_kv(kv, place.block, head, place.position % kv.block_size, k + head * c.head_dim,
                      v + head * c.head_dim);
    };
    store(run_.inputs.places()[static_cast<size_t>(row)]);
    for (const RowCopy& copy :
         std::ranges::equal_range(run_.inputs.copies(), static_cast<int>(row), {}, &RowCopy::row))
      store(copy.place);
  });
}

void StepRunner::attend(const StepOp& op, bool places) {
  const LayerView at = {op.layer, run_.kv.layer(run_.config.kv_layer(op.layer)),
                        run_.config.window(op.layer)};
  if (run_.inputs.num_shared_units() > 0) {
    if (places) place(op);  // once, not for each part
    places = false;
    barrier_after(StepPart::rope_kv);
    attend_shared(at);
    barrier_after(StepPart::attention);
  }
  const auto attend_to = [&](int64_t i) { attend_unit(i, at, places); };
  if (!run_.inputs.is_split()) return team_.each(run_.inputs.num_units(), attend_to);
  // A thread takes parts in a row, since each fetches the keys of the next.
  team_.share(
      run_.inputs.num_units(),
      [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) attend_to(i);
      },
      Team::Sharing::even);
}

void StepRunner::attend_unit(int64_t index, const LayerView& at, bool places) {
  const auto item_of = [&](const StepInputs::Unit& unit) {
    kernels::AttentionItem item = unit.work->item;
    item.kv = &at.kv;
    item.window = at.window;
    item.part = unit.part;
    return item;
  };
  const StepInputs::Unit unit = run_.inputs.unit(index);
  if (!unit.work) return;
  kernels::AttentionItem item = item_of(unit), next;
  // Threads that take units one by one mostly take turns.
  if (index + team_.size() < run_.inputs.num_units() && !run_.inputs.is_split()) {
    next = item_of(run_.inputs.unit(index + team_.size()));
    item.next = &next;
  }
  const bool whole = unit.part == kernels::kAllParts;
  // The part that holds the row's own position stores it; no other reads there.
  if (places) place_heads(*unit.work, at, item, whole || unit.part + 1 == unit.work->parts);
  ops_.attention(item);
  if (!whole && run_.inputs.was_last_part(*unit.work)) ops_.merge_attention(item);
}

void StepRunner::attend_shared(const LayerView& at) {
  // Neighbours read the same blocks: a thread finds them in its cache.
  team_.share(run_.inputs.num_shared_units(), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) attend_shared_unit(run_.inputs.shared_unit(i), at);
  });
}

// The tokens' heads are copied side by side.
void StepRunner::attend_shared_unit(const StepInputs::SharedUnit& unit, const LayerView& at) {
  std::array<kernels::SharedToken, kernels::kMaxAttentionRows> tokens;
  kernels::AttentionItem item{};
  for (int i = 0; i < unit.num_tokens; ++i) {
    const StepInputs::SharingToken of = run_.inputs.token_of(unit, i);
    item = of.work->item;  // in the end that of the longest context
    tokens[static_cast<size_t>(i)] = {item.first_position + of.token,
                                      run_.inputs.partial_of(unit, of)};
    const int64_t floats = int64_t{item.group} * at.kv.head_dim;
    std::copy_n(item.q + of.token * item.q_stride, floats, mine_.heads + i * floats);
  }
  item.kv = &at.kv;
  item.window = at.window;
  item.tokens = unit.num_tokens;
  item.q = mine_.heads;
  item.q_stride = int64_t{item.group} * at.kv.head_dim;
  item.part = unit.part;
  item.shared = tokens.data();
  ops_.attention(item);
}

// Prepared copies: other threads may read the same heads.
void StepRunner::place_heads(const AttentionWork& work, const LayerView& at,
                             kernels::AttentionItem& item, bool stores) {
  const int head_dim = run_.config.head_dim;
  const LayerWeights& w = run_.weights.layers[static_cast<size_t>(at.layer)];
  float* q = mine_.heads;
  std::memcpy(q, item.q, static_cast<size_t>(item.group * head_dim) * sizeof(float));
  prepare_heads(q, item.group, w.q_norm, at.layer, work.row);
  item.q = q;
  if (!stores) return;
  float* k = mine_.heads + kernels::kMaxAttentionRows * kernels::kMaxHeadDim;
  const int64_t offset = (int64_t{work.row} * run_.config.num_kv_heads + item.kv_head) * head_dim;
  std::memcpy(k, buffers_.k + offset, static_cast<size_t>(head_dim) * sizeof(float));
  prepare_heads(k, 1, w.k_norm, at.layer, work.row);
  const RowPlace place = run_.inputs.places()[static_cast<size_t>(work.row)];
  ops_.store_kv(*item.kv, place.block, item.kv_head, place.position % item.kv->block_size, k,
                buffers_.v + offset);
}

// The kept rows move to the front, by one thread: a row may move to where another one was.
void StepRunner::keep() {
  const int64_t hidden = run_.config.hidden_size;
  const int64_t q_dim = int64_t{run_.config.num_heads} * run_.config.head_dim;
  const std::span<const int> rows = run_.inputs.kept_rows();
  for (int64_t to = 0; to < std::ssize(rows); ++to) {
    const int64_t from = rows[static_cast<size_t>(to)];
    if (from == to) continue;
    std::copy_n(buffers_.residual + from * hidden, hidden, buffers_.residual + to * hidden);
    std::copy_n(buffers_.attended + from * q_dim, q_dim, buffers_.attended + to * q_dim);
  }
}

void StepRunner::finish_logits(float* logits, int64_t n) const {
  const ModelConfig& c = run_.config;
  if (c.logit_scale != 1)
    for (int64_t i = 0; i < n; ++i) logits[i] *= c.logit_scale;
  if (c.logit_cap > 0) ops_.softcap(logits, c.logit_cap, n);
}

void StepRunner::head(std::span<const int> rows, float* out) {
  const kernels::PanelMatrix w = run_.weights.output_head().view();
  StepOp op{.kind = StepOp::Kind::multiply, .part = StepPart::head};
  op.rows = static_cast<int>(rows.size());
  op.few = op.rows <= kFewRows;
  op.cols = run_.config.hidden_size;
  const auto norm = [&](int64_t i) { norm_for_head(op, rows[static_cast<size_t>(i)], i); };
  if (!op.few) for_groups_of_rows(op.rows, norm);
  lap(StepPart::head);
  team_.barrier();
  lap(StepPart::wait);
  bool prepared = !op.few;
  team_.share(
      w.panels(),
      [&](int64_t begin, int64_t end) {
        for (int64_t i = 0; !prepared && i < op.rows; ++i) norm(i);
        prepared = true;
        const int64_t stride = w.panels() * kRows;
        float* logits = out + begin * kRows;
        multiply_panels(slice(w, begin, end), input_of(op), logits, stride);
        for (int64_t row = 0; row < op.rows; ++row)
          finish_logits(logits + row * stride, (end - begin) * kRows);
      },
      sharing_of(op));
  lap(StepPart::head);
}

void StepRunner::norm_for_head(const StepOp& op, int64_t row, int64_t to) {
  const RowBuffers& out = row_buffers(op.few);
  float* normed = out.normed + to * op.cols;
  ops_.rms_norm(buffers_.residual + row * op.cols, run_.weights.final_norm.data(),
                run_.config.norm_eps, op.cols, normed);
  if (run_.rounds && info(run_.weights.output_head().view().type).quantized)
    ops_.quantize_a8(normed, with_cols(out.rounded, op.cols), to);
}

}  // namespace octavo
