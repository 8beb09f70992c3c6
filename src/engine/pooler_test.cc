#include "engine/pooler.h"

#include <gtest/gtest.h>

#include <cmath>

namespace octavo {
namespace {

using Vector = std::vector<float>;

// Three tokens; the second comes twice, as after a preemption.
Vector pool(PoolingParams params) {
  const std::vector<Vector> hidden = {{3, 0, 4}, {0, 3, 4}, {3, 3, 1}};
  Pooler pooler(params, 3);
  for (const int position : {0, 1, 0, 1, 2})
    if (pooler.wants(position)) pooler.add(position, hidden[static_cast<size_t>(position)]);
  return *pooler.finish();
}

TEST(Pooler, EachKind) {
  EXPECT_EQ(pool({PoolingType::mean, false}), (Vector{2, 2, 3}));
  EXPECT_EQ(pool({PoolingType::cls, false}), (Vector{3, 0, 4}));
  EXPECT_EQ(pool({PoolingType::last, false}), (Vector{3, 3, 1}));
}

TEST(Pooler, LengthOneAfterTheCut) {
  EXPECT_EQ(pool({PoolingType::cls, true}), (Vector{0.6f, 0, 0.8f}));
  EXPECT_EQ(pool({PoolingType::cls, true, 1}), (Vector{1}));
  const float half = std::sqrt(0.5f);
  EXPECT_EQ(pool({PoolingType::mean, true, 2}), (Vector{half, half}));
  EXPECT_EQ(pool({PoolingType::mean, false, 2}), (Vector{2, 2}));
}

TEST(Pooler, NothingButZerosStaysSo) {
  Pooler pooler({PoolingType::last, true}, 1);
  pooler.add(0, Vector{0, 0});
  EXPECT_EQ(*pooler.finish(), (Vector{0, 0}));
}

TEST(Pooler, WhatIsNotFiniteIsAnError) {
  for (const float bad : {NAN, INFINITY}) {
    Pooler pooler({PoolingType::last, true}, 1);
    pooler.add(0, Vector{1, bad});
    EXPECT_EQ(pooler.finish().error().code, ErrorCode::numeric_error);
  }
}

TEST(Pooler, WantsOnlyWhatItNeeds) {
  Pooler cls({PoolingType::cls}, 3), last({PoolingType::last}, 3), mean({PoolingType::mean}, 3);
  EXPECT_TRUE(cls.wants(0));
  EXPECT_FALSE(cls.wants(1));
  EXPECT_FALSE(last.wants(1));
  EXPECT_TRUE(last.wants(2));
  EXPECT_TRUE(mean.wants(1));
}

}  // namespace
}  // namespace octavo
