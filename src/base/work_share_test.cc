#include "base/work_share.h"

#include <gtest/gtest.h>

namespace octavo {
namespace {

TEST(PieceCounter, GivesEachPieceOnceInEachPhase) {
  PieceCounter pieces;
  for (const uint64_t phase : {0, 1, 2, 7}) {
    for (int64_t i = 0; i < 5; ++i) EXPECT_EQ(pieces.take(phase, 5), i);
    EXPECT_EQ(pieces.take(phase, 5), -1);
  }
}

TEST(PieceCounter, WhoIsLateGetsNothing) {
  PieceCounter pieces;
  EXPECT_EQ(pieces.take(3, 1), 0);
  EXPECT_EQ(pieces.take(4, 10), 0);
  EXPECT_EQ(pieces.take(3, 100), -1);
  EXPECT_EQ(pieces.take(0, 100), -1);
  EXPECT_EQ(pieces.take(4, 10), 1) << "and takes nothing from the others";
}

TEST(PieceCounter, HasRoomForManyPiecesAndPhases) {
  PieceCounter pieces;
  const uint64_t last = (uint64_t{1} << 43) - 1;
  for (int64_t i = 0; i < PieceCounter::kMaxPieces; ++i)
    ASSERT_EQ(pieces.take(last, PieceCounter::kMaxPieces), i);
  EXPECT_EQ(pieces.take(last, PieceCounter::kMaxPieces), -1);
  EXPECT_EQ(pieces.take(last - 1, 1), -1);
}

TEST(Cut, PiecesCoverTheRange) {
  for (int64_t count = 0; count < 50; ++count)
    for (const Cut cut : {Cut{count, 4, 4}, {count, 7, 2}, {count, 50, 3}}) {
      EXPECT_EQ(cut.pieces() == 0, count == 0);
      EXPECT_EQ(cut.begin(0), 0);
      EXPECT_EQ(cut.begin(cut.pieces()), count == 0 ? 0 : count);
      for (int64_t i = 0; i < cut.pieces(); ++i) EXPECT_LT(cut.begin(i), cut.begin(i + 1));
    }
}

}  // namespace
}  // namespace octavo
