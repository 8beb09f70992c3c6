#include "benchmarks/cases.h"
#include "kernels/test_util.h"

namespace octavo::kernels {
namespace {

using namespace testing;

struct Shape {
  int64_t rows, cols;
};

// Of a small model, and of the 1B class.
constexpr Shape kShapes[] = {{576, 576}, {1536, 576}, {576, 1536}, {2048, 2048}, {8192, 2048}};
constexpr int64_t kTokens[] = {1, 2, 4, 8, 16, 64, 512};

class Matmul : public Case {
 public:
  Matmul(DType type, Shape shape, int64_t tokens)
      : w_(packed(random_matrix(type, shape.rows, shape.cols, 1))),
        x_(random_floats(static_cast<size_t>(tokens * shape.cols), 2)),
        tokens_(tokens),
        y_(static_cast<size_t>(tokens * stride())) {
    macs = static_cast<double>(shape.rows * shape.cols * tokens);
    bytes = static_cast<double>(w_.view().panels()) * static_cast<double>(w_.view().panel_bytes);
  }

  // The first and the last panel, all tokens: results depend on no other panel.
  std::string check() override {
    const int64_t last = w_.view().panels() - 1;
    for (const int64_t panel : {int64_t{0}, last}) {
      multiply(ops(), panel, panel + 1);
      const std::vector<float> fast = results(panel);
      multiply(ref(), panel, panel + 1);
      const std::string fault = difference(fast, results(panel), tolerance_);
      if (!fault.empty()) return fault;
    }
    return "";
  }
  void run() override { multiply(ops(), 0, w_.view().panels()); }

 protected:
  virtual void multiply(const Ops& isa, int64_t begin, int64_t end) = 0;
  int64_t stride() const { return w_.view().panels() * kPanelRows; }
  std::vector<float> results(int64_t panel) const {
    std::vector<float> out;
    for (int64_t t = 0; t < tokens_; ++t) {
      const auto at = y_.begin() + t * stride() + panel * kPanelRows;
      out.insert(out.end(), at, at + kPanelRows);
    }
    return out;
  }

  PackedMatrix w_;
  std::vector<float> x_;
  int64_t tokens_;
  std::vector<float> y_;
  float tolerance_ = 1e-5f;
};

class MatmulA8 : public Matmul {
 public:
  MatmulA8(DType type, Shape shape, int64_t tokens)
      : Matmul(type, shape, tokens), rounded_(tokens, shape.cols) {
    for (int64_t t = 0; t < tokens; ++t)
      ops().quantize_a8(x_.data() + t * shape.cols, rounded_.a8, t);
    tolerance_ = 0;  // integers, and float sums in one order
  }
  void multiply(const Ops& isa, int64_t begin, int64_t end) override {
    isa.matmul_a8(w_.view(), begin, end, rounded_.a8, tokens_, y_.data(), stride());
  }

 private:
  A8Buffer rounded_;
};

class MatmulF32 : public Matmul {
 public:
  using Matmul::Matmul;
  void multiply(const Ops& isa, int64_t begin, int64_t end) override {
    isa.matmul_f32(w_.view(), begin, end, x_.data(), w_.view().cols, tokens_, y_.data(), stride());
  }
};

template <class Kind>
void register_kind(const std::string& kind, DType type) {
  for (const Shape shape : kShapes)
    for (const int64_t tokens : kTokens) {
      if (shape.cols % info(type).block_elements != 0) continue;
      const std::string name = kind + "/" + std::string(octavo::name(type)) + "/" +
                               std::to_string(shape.rows) + "x" + std::to_string(shape.cols) + "/" +
                               std::to_string(tokens);
      register_case(name, [=] { return std::make_unique<Kind>(type, shape, tokens); });
    }
}

}  // namespace

void register_matmul() {
  for (const DType type : kAllTypes) {
    if (info(type).quantized) register_kind<MatmulA8>("matmul_a8", type);
    register_kind<MatmulF32>("matmul_f32", type);
  }
}

}  // namespace octavo::kernels
