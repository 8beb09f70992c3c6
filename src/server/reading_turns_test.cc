#include "server/reading_turns.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <stop_token>
#include <thread>
#include <vector>

namespace octavo {
namespace {

const auto kRoom = [] { return true; };
const auto kNoRoom = [] { return false; };

TEST(ReadingTurns, WhoFindsNoRoomAndNobodyReadingIsToldSo) {
  ReadingTurns turns;
  EXPECT_FALSE(turns.begin(1, kNoRoom));
  ASSERT_TRUE(turns.begin(1, kRoom));
  { const ReadingTurns::End end(turns, 1); }
  EXPECT_FALSE(turns.begin(1, kNoRoom));
}

TEST(ReadingTurns, WhoFindsNoRoomWaitsForThoseWhoRead) {
  ReadingTurns turns;
  std::atomic<bool> is_free{false};
  ASSERT_TRUE(turns.begin(1, kRoom));
  auto first = std::make_unique<ReadingTurns::End>(turns, 1);
  std::atomic<int> begun{0}, tries{0};
  std::thread waits([&] {
    begun += turns.begin(1, [&] { return ++tries, is_free.load(); });
    const ReadingTurns::End end(turns, 1);
  });
  while (tries == 0) std::this_thread::yield();
  EXPECT_EQ(begun, 0);
  is_free = true;
  first.reset();
  waits.join();
  EXPECT_EQ(begun, 1);
}

TEST(ReadingTurns, WhoWaitsIsTakenBackWhenItIsToStop) {
  ReadingTurns turns;
  ASSERT_TRUE(turns.begin(1, kRoom));
  const ReadingTurns::End first(turns, 1);
  std::stop_source gone;
  std::atomic<int> tries{0};
  bool begun = true;
  std::thread waits([&] {
    begun = turns.begin(
        1, [&] { return ++tries, false; }, gone.get_token());
  });
  while (tries == 0) std::this_thread::yield();
  gone.request_stop();
  waits.join();
  EXPECT_FALSE(begun);
}

TEST(ReadingTurns, WhatTheSystemWouldNotGiveIsNoRoom) {
  ReadingTurns turns;
  EXPECT_FALSE(turns.begin(size_t{1} << 60, kRoom));
  EXPECT_TRUE(turns.begin(size_t{1} << 30, kRoom));
}

TEST(ReadingTurns, ManyTakeTurns) {
  ReadingTurns turns;
  std::atomic<int> room{2}, done{0};
  const auto reserve = [&] {
    if (--room >= 0) return true;
    ++room;
    return false;
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] {
      for (int k = 0; k < 200; ++k) {
        if (!turns.begin(1, reserve)) continue;
        const ReadingTurns::End end(turns, 1);
        ++done;
        ++room;
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(done, 1600) << "whoever found no room saw somebody read";
  EXPECT_EQ(room, 2);
}

}  // namespace
}  // namespace octavo
