#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "kernels/test_util.h"
#include "kv/kv_layout.h"

namespace octavo::kernels {
namespace {

using namespace testing;

constexpr int kKvHeads = 2;
constexpr KvType kKvTypes[] = {KvType::f32, KvType::f16, KvType::bf16, KvType::int8};

// A paged cache of one layer, filled with `context` random tokens through a block table out of
// order.
struct Cache {
  Cache(const Ops& isa, KvType type, int block_size, int head_dim, int context) {
    const KvLayout layout{1, kKvHeads, head_dim, block_size, type};
    const int blocks = (context + block_size - 1) / block_size;
    // Bytes that nobody wrote are NaN in every float type: reading one would show.
    memory.assign(static_cast<size_t>(blocks + 2) * layout.bytes_per_layer_block(), 0xff);
    layer = {memory.data(),
             layout.bytes_per_layer_block(),
             layout.bytes_per_head(),
             layout.bytes_per_part(),
             block_size,
             head_dim,
             type};
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
  // Makes every number of the blocks below and above a range of positions NaN. Codes of int8 are
  // integers: their scales become NaN.
  void poison_outside(int begin, int end) {
    const int blocks = static_cast<int>(table.size()), size = layer.block_size;
    for (int i = 0; i < blocks; ++i)
      if ((i + 1) * size <= begin || i * size >= end)
        std::memset(
            memory.data() + static_cast<size_t>(table[static_cast<size_t>(i)]) * layer.block_stride,
            0xff, layer.block_stride);
  }

  std::vector<uint8_t> memory;
  std::vector<int32_t> table;
  KvLayer layer;
};

struct Shape {
  int context;
  int tokens;  // [context - tokens, context) are computed
  int group;
  int tile;  // tokens of an item at most
  int window = 0;
  bool split = false;    // in parts, the last one first
  bool encoder = false;  // every token sees the whole context
  float cap = 0;
};

// Returns [token][head][dim].
std::vector<float> attend(const Ops& isa, const Cache& cache, const Shape& s) {
  const int d = cache.layer.head_dim;
  const int64_t stride = static_cast<int64_t>(kKvHeads) * s.group * d;
  const auto all = random_floats(static_cast<size_t>(s.context * stride), 3);
  std::vector<float> out(static_cast<size_t>(s.tokens * stride));
  const int parts = (s.context + kSplit - 1) / kSplit;
  std::vector<float> partial(static_cast<size_t>(parts * s.tile * s.group * (d + 2)), NAN);
  for (int first = 0; first < s.tokens; first += s.tile)
    for (int h = 0; h < kKvHeads; ++h) {
      const int position = s.context - s.tokens + first;
      AttentionItem item{.kv = &cache.layer,
                         .block_table = cache.table.data(),
                         .kv_head = h,
                         .group = s.group,
                         .tokens = std::min(s.tile, s.tokens - first),
                         .first_position = s.encoder ? s.context - 1 : position,
                         .window = s.window,
                         .scale = 0.125f,
                         .q = all.data() + position * stride + h * s.group * d,
                         .q_stride = stride,
                         .out = out.data() + first * stride + h * s.group * d,
                         .out_stride = stride,
                         .part = kAllParts,
                         .partial = partial.data(),
                         .score_cap = s.cap,
                         .step = s.encoder ? 0 : 1};
      if (!s.split) {
        isa.attention(item);
        continue;
      }
      for (item.part = parts - 1; item.part >= 0; --item.part) isa.attention(item);
      isa.merge_attention(item);
    }
  return out;
}

void expect_same_bits(const std::vector<float>& actual, const std::vector<float>& expected,
                      const Shape& s) {
  ASSERT_EQ(actual.size(), expected.size());
  ASSERT_EQ(std::memcmp(actual.data(), expected.data(), expected.size() * 4), 0)
      << "context " << s.context << " tile " << s.tile << " window " << s.window << " split "
      << s.split;
}

// int8: queries and weights are rounded to 16 bits, the reference's are not.
double tolerance(KvType type) { return type == KvType::int8 ? 4e-4 : 3e-6; }

void expect_near_ref(KvType type, int head_dim, const Shape& s) {
  const Cache cache(ops(), type, 32, head_dim, s.context);
  Shape one_by_one = s;
  one_by_one.tile = 1;
  const auto a = attend(ops(), cache, s);
  const auto b = attend(ref(), cache, one_by_one);
  for (size_t i = 0; i < a.size(); ++i)
    ASSERT_NEAR(a[i], b[i], tolerance(type))
        << name(type) << " head_dim " << head_dim << " group " << s.group << " context "
        << s.context << " window " << s.window;
}

TEST(Attention, AgreesWithRef) {
  for (KvType type : kKvTypes)
    for (int head_dim : {16, 64, 128})
      for (int group : {1, 3, 4})
        for (int context : {1, 16, 31, 255, 256, 257, 600})
          expect_near_ref(type, head_dim, {context, std::min(context, 5), group, 3});
}

TEST(Attention, AgreesWithRefInFullItems) {
  for (KvType type : kKvTypes)
    for (int group : {1, 2, 3, 8, 24})
      expect_near_ref(type, 80, {300, 40, group, kMaxAttentionRows / group});
}

TEST(Attention, AgreesWithRefInAWindow) {
  for (KvType type : kKvTypes)
    for (int window : {1, 2, 17, 255, 256, 257, 600})
      for (int context : {1, 16, 256, 257, 600})
        expect_near_ref(type, 64, {context, std::min(context, 9), 3, 8, window});
}

TEST(Attention, AgreesWithRefUnderACap) {
  for (KvType type : kKvTypes)
    for (int context : {1, 16, 257, 600}) {
      Shape shape{context, std::min(context, 9), 3, 8, 300};
      const Cache cache(ops(), type, 32, 64, context);
      const auto free = attend(ops(), cache, shape);
      shape.cap = 0.25f;
      expect_near_ref(type, 64, shape);
      if (context == 1) continue;
      EXPECT_NE(attend(ops(), cache, shape), free);
      Shape split = shape;
      split.split = true;
      expect_same_bits(attend(ops(), cache, split), attend(ops(), cache, shape), split);
    }
}

TEST(Attention, AgreesWithRefWhereEveryTokenSeesAll) {
  for (KvType type : kKvTypes)
    for (int head_dim : {16, 32, 64})
      for (int context : {1, 2, 17, 256, 257, 512})
        for (bool split : {false, true})
          expect_near_ref(type, head_dim,
                          {context, std::min(context, 40), 1, kMaxAttentionRows, 0, split, true});
}

TEST(Attention, BlockSizeTileAndSplitChangeNoBit) {
  for (KvType type : {KvType::f16, KvType::int8})
    for (int context : {40, 300, 520})
      for (int window : {0, 30, 270}) {
        const Cache base(ops(), type, 16, 64, context);
        const auto expected = attend(ops(), base, {context, 20, 3, 1, window});
        for (int block_size : {16, 32, 64, 128, 256})
          for (int tile : {1, 2, 3, 8})
            for (bool split : {false, true}) {
              const Cache cache(ops(), type, block_size, 64, context);
              const Shape shape{context, 20, 3, tile, window, split};
              expect_same_bits(attend(ops(), cache, shape), expected, shape);
            }
      }
}

// Parts computed in any order and then joined are the same bits as one call.
TEST(Attention, SplittingChangesNoBit) {
  for (KvType type : kKvTypes)
    for (int context : {1, 256, 257, 700}) {
      const Cache cache(ops(), type, 32, 64, context);
      Shape shape{context, std::min(context, 4), 3, 4};
      const auto expected = attend(ops(), cache, shape);
      shape.split = true;
      expect_same_bits(attend(ops(), cache, shape), expected, shape);
    }
}

// Blocks that lie outside of every row's window are not read: they may hold anything.
TEST(Attention, BlocksOutsideTheWindowAreNotRead) {
  for (KvType type : kKvTypes)
    for (int window : {1, 16, 100, 256, 400})
      for (int tokens : {1, 20}) {
        Shape shape{900, tokens, 3, 8, window};
        Cache cache(ops(), type, 32, 64, shape.context);
        const auto expected = attend(ops(), cache, shape);
        cache.poison_outside(shape.context - tokens + 1 - window, shape.context);
        expect_same_bits(attend(ops(), cache, shape), expected, shape);
        shape.split = true;
        expect_same_bits(attend(ops(), cache, shape), expected, shape);
        for (float x : expected) ASSERT_TRUE(std::isfinite(x));
      }
}

TEST(Attention, AWindowAsLongAsTheContextChangesNoBit) {
  for (KvType type : kKvTypes) {
    const Cache cache(ops(), type, 32, 64, 500);
    Shape shape{500, 20, 3, 8};
    const auto expected = attend(ops(), cache, shape);
    shape.window = 500;
    expect_same_bits(attend(ops(), cache, shape), expected, shape);
    shape.window = 499;
    EXPECT_NE(attend(ops(), cache, shape), expected);
  }
}

// A number that is not finite must not be lost on the way through rounding.
TEST(Attention, WhatIsNotFiniteStaysSo) {
  for (KvType type : kKvTypes)
    for (bool in_value : {false, true})
      for (float bad : {NAN, INFINITY}) {
        const Cache cache(ops(), type, 32, 64, 20);
        std::vector<float> k(64, 1.0f), v(64, 1.0f);
        (in_value ? v : k)[5] = bad;
        ops().store_kv(cache.layer, cache.table[0], 0, 7, k.data(), v.data());
        const auto out = attend(ops(), cache, {20, 1, 3, 1});
        EXPECT_FALSE(std::all_of(out.begin(), out.end(), [](float x) { return std::isfinite(x); }))
            << name(type) << " " << bad;
      }
}

TEST(StoreKv, RoundsAsRef) {
  for (KvType type : kKvTypes)
    for (int head_dim : {16, 64, 80}) {
      const Cache a(ops(), type, 32, head_dim, 50), b(ref(), type, 32, head_dim, 50);
      EXPECT_EQ(a.memory, b.memory);
    }
}

TEST(StoreKv, Int8TakesZerosAndTinyNumbers) {
  for (float x : {0.0f, 1e-44f, 1e-38f, 1e30f}) {
    Cache a(ops(), KvType::int8, 32, 64, 20), b(ref(), KvType::int8, 32, 64, 20);
    const std::vector<float> same(64, x);
    ops().store_kv(a.layer, 0, 0, 3, same.data(), same.data());
    ref().store_kv(b.layer, 0, 0, 3, same.data(), same.data());
    EXPECT_EQ(a.memory, b.memory) << x;
    for (float y : attend(ops(), a, {20, 1, 3, 1})) EXPECT_TRUE(std::isfinite(y)) << x;
  }
}

}  // namespace
}  // namespace octavo::kernels
