#include "benchmarks/cases.h"
#include "kernels/test_util.h"

namespace octavo::kernels {
namespace {

using namespace testing;

class RmsNorm : public Case {
 public:
  explicit RmsNorm(size_t n) : x_(random_floats(n, 1)), weight_(random_floats(n, 2)), y_(n) {
    bytes = 8.0 * static_cast<double>(n);
  }
  std::string check() override {
    run();
    const std::vector<float> fast = y_;
    compute(ref());
    return difference(fast, y_, 1e-5f);
  }
  void run() override { compute(ops()); }

 private:
  void compute(const Ops& isa) {
    isa.rms_norm(x_.data(), weight_.data(), 1e-5f, static_cast<int64_t>(x_.size()), y_.data());
  }
  std::vector<float> x_, weight_, y_;
};

class SiluMul : public Case {
 public:
  explicit SiluMul(size_t n) : gate_(random_floats(n, 1)), up_(random_floats(n, 2)), y_(n) {
    bytes = 8.0 * static_cast<double>(n);
  }
  std::string check() override {
    run();
    const std::vector<float> fast = y_;
    compute(ref());
    return difference(fast, y_, 1e-5f);
  }
  void run() override { compute(ops()); }

 private:
  void compute(const Ops& isa) {
    isa.silu_mul(gate_.data(), up_.data(), static_cast<int64_t>(gate_.size()), y_.data());
  }
  std::vector<float> gate_, up_, y_;
};

class QuantizeA8 : public Case {
 public:
  explicit QuantizeA8(size_t n)
      : x_(random_floats(n, 1)),
        fast_(1, static_cast<int64_t>(n)),
        slow_(1, static_cast<int64_t>(n)) {
    bytes = 4.0 * static_cast<double>(n);
  }
  std::string check() override {
    run();
    ref().quantize_a8(x_.data(), slow_.a8, 0);
    const bool same = fast_.q == slow_.q && fast_.q_low == slow_.q_low &&
                      fast_.wide == slow_.wide && fast_.d == slow_.d && fast_.sum == slow_.sum;
    return same ? "" : "the rounded rows differ";
  }
  void run() override { ops().quantize_a8(x_.data(), fast_.a8, 0); }

 private:
  std::vector<float> x_;
  A8Buffer fast_, slow_;
};

template <class Kind>
void register_kind(const std::string& kind) {
  for (const size_t n : {576, 1536, 2048, 8192})
    register_case(kind + "/" + std::to_string(n), [n] { return std::make_unique<Kind>(n); });
}

}  // namespace

void register_float_ops() {
  register_kind<RmsNorm>("rms_norm");
  register_kind<SiluMul>("silu_mul");
  register_kind<QuantizeA8>("quantize_a8");
}

}  // namespace octavo::kernels
