// Experts are worked off in groups: however many tokens of a step go through an expert, its weights
// are read once.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "support/paths.h"
#include "support/test_model.h"

namespace octavo {
namespace {

using namespace testing;

// How often each panel was multiplied.
struct Reads {
  std::mutex mutex;
  std::map<const uint8_t*, int> count;
  kernels::Ops real{};
} reads;

void note(const kernels::PanelMatrix& w, int64_t begin, int64_t end) {
  const std::scoped_lock lock(reads.mutex);
  for (int64_t panel = begin; panel < end; ++panel)
    ++reads.count[w.data + static_cast<size_t>(panel) * w.panel_bytes];
}

void counting_a8(const kernels::PanelMatrix& w, int64_t begin, int64_t end, const kernels::A8& x,
                 int64_t tokens, float* y, int64_t y_stride) {
  note(w, begin, end);
  reads.real.matmul_a8(w, begin, end, x, tokens, y, y_stride);
}

void counting_f32(const kernels::PanelMatrix& w, int64_t begin, int64_t end, const float* x,
                  int64_t x_stride, int64_t tokens, float* y, int64_t y_stride) {
  note(w, begin, end);
  reads.real.matmul_f32(w, begin, end, x, x_stride, tokens, y, y_stride);
}

kernels::Ops counting_ops() {
  reads.real = **kernels::select_isa_from_environment();
  kernels::Ops ops = reads.real;
  ops.matmul_a8 = counting_a8;
  ops.matmul_f32 = counting_f32;
  return ops;
}

TEST(Experts, WeightsAreReadOncePerStep) {
  const kernels::Ops ops = counting_ops();
  for (const char* name : {"mixtral", "qwen3moe"})
    for (const char* type : {"F32", "Q4_0"}) {
      const std::string path = tiny_data(std::string(name) + "/" + name + "-" + type + ".gguf");
      const auto config = *read_model_config(**open_model(path));
      TestModel model(path, {.threads = 2, .ops = &ops});
      std::vector<TokenId> tokens;
      for (int i = 0; i < 100; ++i) tokens.push_back(TokenId{4 + i * 37 % 500});
      reads.count.clear();
      model.logits(tokens, {99});
      int once = 0, more = 0;
      for (const auto& [panel, times] : reads.count) (times == 1 ? once : more) += 1;
      // Only the router's panels are read by each thread for its own rows.
      EXPECT_LE(more, config.num_layers) << path;
      // With 100 tokens every expert has some: all of three matrices of each layer.
      const int panels =
          config.experts.count * (2 * config.intermediate_size + config.hidden_size) / 16;
      EXPECT_GE(once, config.num_layers * panels) << path;
    }
}

}  // namespace
}  // namespace octavo
