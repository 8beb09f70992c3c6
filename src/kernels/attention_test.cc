#include <gtest/gtest.h>

#include <cmath>

#include "kernels/test_util.h"

namespace octavo::kernels {
namespace {

using namespace testing;

constexpr int kKvHeads = 2;

// A paged cache of one layer, filled with `context` random tokens through a block table out of
// order.
struct Cache {
  Cache(const Ops& isa, KvType type, int block_size, int head_dim, int context) {
    const size_t element = type == KvType::f32 ? 4 : 2;
    const size_t part = static_cast<size_t>(block_size * head_dim) * element;
    const int blocks = (context + block_size - 1) / block_size;
    // Bytes that nobody wrote are NaN in every type: reading one would show.
    memory.assign(static_cast<size_t>(blocks + 2) * 2 * part * kKvHeads, 0xff);
    layer = {memory.data(), 2 * part * kKvHeads, 2 * part, part, block_size, head_dim, type};
    for (int i = 0; i < blocks; ++i) table.push_back(i);
    for (int i = 0; i + 1 < blocks; i += 2)
      std::swap(table[static_cast<size_t>(i)], table[static_cast<size_t>(i + 1)]);
    const auto keys = random_floats(static_cast<size_t>(context * kKvHeads * head_dim), 1);
    const auto values = random_floats(keys.size(), 2);
    for (int p = 0; p < context; ++p)
      for (int h = 0; h < kKvHeads; ++h) {
        const size_t at = static_cast<size_t>((p * kKvHeads + h) * head_dim);
        isa.store_kv(layer, table[static_cast<size_t>(p / block_size)], h, p % block_size,
                     keys.data() + at, values.data() + at);
      }
  }
  std::vector<uint8_t> memory;
  std::vector<int32_t> table;
  KvLayer layer;
};

// Tokens [context - tokens, context) of a sequence, in items of at most `tile` tokens. Returns
// [token][head][dim].
std::vector<float> attend(const Ops& isa, const Cache& cache, int context, int tokens, int group,
                          int tile) {
  const int d = cache.layer.head_dim;
  const int64_t stride = static_cast<int64_t>(kKvHeads) * group * d;
  const auto all = random_floats(static_cast<size_t>(context * stride), 3);
  std::vector<float> out(static_cast<size_t>(tokens * stride));
  for (int first = 0; first < tokens; first += tile)
    for (int h = 0; h < kKvHeads; ++h) {
      const int position = context - tokens + first;
      isa.attention({&cache.layer, cache.table.data(), h, group, std::min(tile, tokens - first),
                     position, 0.125f, all.data() + position * stride + h * group * d, stride,
                     out.data() + first * stride + h * group * d, stride, kAllParts, nullptr});
    }
  return out;
}

TEST(Attention, AgreesWithRef) {
  for (KvType type : {KvType::f32, KvType::f16, KvType::bf16})
    for (int head_dim : {16, 64, 128})
      for (int group : {1, 3, 4})
        for (int context : {1, 16, 31, 255, 256, 257, 600}) {
          const Cache cache(ops(), type, 32, head_dim, context);
          const int tokens = std::min(context, 5);
          const auto a = attend(ops(), cache, context, tokens, group, 3);
          const auto b = attend(ref(), cache, context, tokens, group, 1);
          for (size_t i = 0; i < a.size(); ++i)
            ASSERT_NEAR(a[i], b[i], 3e-6)
                << "head_dim " << head_dim << " group " << group << " context " << context;
        }
}

TEST(Attention, BlockSizeAndTileChangeNoBit) {
  for (int context : {40, 300, 520}) {
    const Cache base(ops(), KvType::f16, 16, 64, context);
    const auto expected = attend(ops(), base, context, 20, 3, 1);
    for (int block_size : {16, 32, 64, 128, 256})
      for (int tile : {1, 2, 3, 5}) {
        const Cache cache(ops(), KvType::f16, block_size, 64, context);
        const auto actual = attend(ops(), cache, context, 20, 3, tile);
        ASSERT_EQ(std::memcmp(actual.data(), expected.data(), expected.size() * 4), 0)
            << "block_size " << block_size << " tile " << tile << " context " << context;
      }
  }
}

// Parts computed in any order and then joined are the same bits as one call.
TEST(Attention, SplittingChangesNoBit) {
  for (int context : {1, 256, 257, 700}) {
    const Cache cache(ops(), KvType::f16, 32, 64, context);
    const int tokens = std::min(context, 4), group = 3;
    const auto expected = attend(ops(), cache, context, tokens, group, tokens);
    const auto q = random_floats(static_cast<size_t>(context * kKvHeads * group * 64), 3);
    const int64_t stride = kKvHeads * group * 64;
    std::vector<float> out(expected.size());
    for (int h = 0; h < kKvHeads; ++h) {
      const int parts = (context + kSplit - 1) / kSplit;
      std::vector<float> partial(static_cast<size_t>(parts * tokens * group * (64 + 2)));
      AttentionItem item{&cache.layer,
                         cache.table.data(),
                         h,
                         group,
                         tokens,
                         context - tokens,
                         0.125f,
                         q.data() + (context - tokens) * stride + h * group * 64,
                         stride,
                         out.data() + h * group * 64,
                         stride,
                         kAllParts,
                         partial.data()};
      for (item.part = parts - 1; item.part >= 0; --item.part) ops().attention(item);
      ops().merge_attention(item);
    }
    EXPECT_EQ(std::memcmp(out.data(), expected.data(), expected.size() * 4), 0) << context;
  }
}

TEST(StoreKv, RoundsAsRef) {
  for (KvType type : {KvType::f32, KvType::f16, KvType::bf16}) {
    const Cache a(ops(), type, 32, 64, 50), b(ref(), type, 32, 64, 50);
    EXPECT_EQ(a.memory, b.memory);
  }
}

}  // namespace
}  // namespace octavo::kernels
