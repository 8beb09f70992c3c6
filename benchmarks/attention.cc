#include "benchmarks/cases.h"
#include "kernels/test_util.h"
#include "kv/kv_layout.h"

namespace octavo::kernels {
namespace {

using namespace testing;

constexpr int kBlockSize = 32, kHeadDim = 64, kGroup = 3;

// One KV head: the last `tokens` of a context.
class Attention : public Case {
 public:
  Attention(KvType type, int context, int tokens)
      : type_(type),
        context_(context),
        tokens_(tokens),
        q_(random_floats(static_cast<size_t>(tokens * kGroup * kHeadDim), 3)),
        out_(q_.size()) {
    fill_cache();
    double seen = 0;
    for (int t = 0; t < tokens; ++t) seen += context - t;
    macs = 2.0 * kGroup * kHeadDim * seen;
    bytes = static_cast<double>(layout().bytes_per_part()) / kBlockSize * 2 * context;
  }
  std::string check() override {
    run();
    const std::vector<float> fast = out_;
    compute(ref());
    return difference(fast, out_, type_ == KvType::int8 ? 1e-3f : 1e-4f);
  }
  void run() override { compute(ops()); }

 private:
  KvLayout layout() const { return {1, 1, kHeadDim, kBlockSize, type_}; }
  void fill_cache() {
    const size_t part = layout().bytes_per_part();
    const int blocks = (context_ + kBlockSize - 1) / kBlockSize;
    memory_.resize(static_cast<size_t>(blocks) * 2 * part);
    layer_.base = memory_.data();
    layer_.block_stride = layer_.head_stride = 2 * part;
    layer_.v_offset = part;
    layer_.block_size = kBlockSize;
    layer_.head_dim = kHeadDim;
    layer_.type = type_;
    for (int i = 0; i < blocks; ++i) table_.push_back(i);
    const auto keys = random_floats(static_cast<size_t>(context_ * kHeadDim), 1);
    const auto values = random_floats(keys.size(), 2);
    for (int p = 0; p < context_; ++p)
      ops().store_kv(layer_, p / kBlockSize, 0, p % kBlockSize, keys.data() + p * kHeadDim,
                     values.data() + p * kHeadDim);
  }
  void compute(const Ops& isa) {
    const int most = kMaxAttentionRows / kGroup;
    for (int first = 0; first < tokens_; first += most) {
      AttentionItem item{};
      item.kv = &layer_;
      item.block_table = table_.data();
      item.group = kGroup;
      item.tokens = std::min(most, tokens_ - first);
      item.first_position = context_ - tokens_ + first;
      item.scale = 0.125f;
      item.q_stride = item.out_stride = kGroup * kHeadDim;
      item.q = q_.data() + first * item.q_stride;
      item.out = out_.data() + first * item.out_stride;
      item.part = kAllParts;
      isa.attention(item);
    }
  }

  KvType type_;
  int context_, tokens_;
  std::vector<float> q_, out_;
  std::vector<uint8_t> memory_;
  std::vector<int32_t> table_;
  KvLayer layer_{};
};

}  // namespace

void register_attention() {
  for (const KvType type : {KvType::f32, KvType::f16, KvType::bf16, KvType::int8})
    for (const int context : {16, 300, 1024, 4096}) {
      const std::string of = "/" + std::string(name(type)) + "/" + std::to_string(context);
      register_case("attention_decode" + of,
                    [=] { return std::make_unique<Attention>(type, context, 1); });
      register_case("attention_prefill" + of, [=] {
        return std::make_unique<Attention>(type, context, std::min(context, 128));
      });
    }
}

}  // namespace octavo::kernels
