#include "stream/hop_sweep.h"

#include <gtest/gtest.h>

#include <map>

#include "base/random.h"

namespace orla::stream {
namespace {

using model::Time;
using std::chrono::minutes;

const Time kStart = model::from_ns(1'379'073'600'000'000'000);

// Panes in memory, and a sweep over them.
class HopSweepTest : public testing::Test {
 protected:
  void put(int pane, std::uint32_t group, double value) {
    model::Partial one;
    one.add(at(pane), value, 3);
    panes_[pane][group].merge(one);
    if (sweep_.holds(at(pane))) sweep_.add(at(pane), group, one);
  }

  absl::Status move(int first, int end) {
    return sweep_.move({at(first), at(end)}, [&](Time start, HopSweep::Visit visit) -> absl::Status {
      if (fail_) return absl::UnavailableError("the disk is gone");
      ++reads_;
      for (const auto& [group, partial] : panes_[static_cast<int>((start - kStart) / minutes(1))]) {
        visit(group, partial);
      }
      return absl::OkStatus();
    });
  }

  std::map<std::uint32_t, model::Partial> found() {
    std::map<std::uint32_t, model::Partial> out;
    sweep_.visit([&](std::uint32_t group, const model::Partial& partial) { out[group] = partial; });
    return out;
  }

  std::map<std::uint32_t, model::Partial> expected(int first, int end) {
    std::map<std::uint32_t, model::Partial> out;
    for (auto pane = panes_.lower_bound(first); pane != panes_.end() && pane->first < end; ++pane) {
      for (const auto& [group, partial] : pane->second) out[group].merge(partial);
    }
    return out;
  }

  static Time at(int pane) { return kStart + minutes(pane); }

  HopSweep sweep_{minutes(1), minutes(100)};
  std::map<int, std::map<std::uint32_t, model::Partial>> panes_;
  bool fail_ = false;
  int reads_ = 0;
};

TEST_F(HopSweepTest, EachWindowIsTheSumOfItsPanesWhateverIsAddedInBetween) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    base::SeededRandom random(seed);
    panes_.clear();
    sweep_.forget();
    int first = static_cast<int>(random.below(50)) - 25;
    for (int step = 0; step < 300; ++step) {
      for (std::uint64_t n = random.below(4); n > 0; --n) {
        // Anywhere in the window, before it or after it; some of it no decimal.
        const int pane = first - 20 + static_cast<int>(random.below(160));
        const double value = random.below(5) == 0 ? random.unit() * 1e9 : static_cast<double>(random.below(1000));
        put(pane, static_cast<std::uint32_t>(random.below(3 + step / 50)), value);
      }
      // Mostly a hop; sometimes none, sometimes past everything. Windows may also grow.
      first += random.below(30) == 0 ? static_cast<int>(random.below(250)) : static_cast<int>(random.below(3));
      const int end = first + 100;
      if (random.below(40) == 0) {
        fail_ = true;
        const absl::Status status = move(first, end);
        fail_ = false;
        if (!status.ok()) {
          EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
        }
      }
      ASSERT_TRUE(move(first, end).ok());
      ASSERT_EQ(found(), expected(first, end)) << "seed " << seed << ", step " << step;
    }
  }
}

TEST_F(HopSweepTest, APaneIsReadAndMergedThreeTimesAndAWindowTakesTwoMerges) {
  constexpr int kPanes = 2000;
  for (int pane = 0; pane < kPanes; ++pane) put(pane, 0, pane);
  for (int first = 0; first + 100 <= kPanes; ++first) {
    ASSERT_TRUE(move(first, first + 100).ok());
    found();
    EXPECT_LE(sweep_.sums(), 21u);  // 2 sqrt(100) + 1
  }
  EXPECT_LE(reads_, 3 * kPanes);
  EXPECT_LE(sweep_.merges(), 5u * kPanes);
}

TEST_F(HopSweepTest, WhatComesLateIsMergedToAFewSums) {
  for (int pane = 0; pane < 200; ++pane) put(pane, 0, pane);
  for (int first = 0; first < 50; ++first) ASSERT_TRUE(move(first, first + 100).ok());
  std::uint64_t most = 0;
  for (int pane = 49; pane < 149; ++pane) {
    const std::uint64_t before = sweep_.merges();
    put(pane, 0, 1);
    most = std::max(most, sweep_.merges() - before);
  }
  EXPECT_LE(most, 20u);
  EXPECT_EQ(found(), expected(49, 149));
}

}  // namespace
}  // namespace orla::stream
