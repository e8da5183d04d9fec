#include "model/loss.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace orla::model {
namespace {

Tombstone lost(Sequence first, Sequence last, std::string reason, std::string input, std::uint64_t samples) {
  Tombstone t;
  t.first = first;
  t.last = last;
  t.reason = std::move(reason);
  t.samples = {{std::move(input), samples}};
  return t;
}

TEST(Loss, AddsUpByReasonAndInput) {
  std::vector<Loss> losses;
  EXPECT_TRUE(add_loss(losses, lost(3, 5, "drop_oldest", "b", 7)));
  EXPECT_TRUE(add_loss(losses, lost(9, 9, "damaged", "a", 1)));
  EXPECT_FALSE(add_loss(losses, lost(10, 11, "drop_oldest", "a", 2)));
  EXPECT_FALSE(add_loss(losses, lost(12, 12, "drop_oldest", "b", 5)));
  EXPECT_EQ(losses, (std::vector<Loss>{{"damaged", 1, {{"a", 1}}}, {"drop_oldest", 6, {{"a", 2}, {"b", 12}}}}));
  EXPECT_EQ(lost_samples(losses[1]), 14U);
}

TEST(Loss, ReasonsAndInputsAreBoundedAndNothingIsForgotten) {
  std::vector<Loss> losses;
  for (int i = 0; i < 100; ++i) add_loss(losses, lost(1, 1, fmt::format("reason-{:03}", i), "in", 2));
  EXPECT_EQ(losses.size(), kMaxLossReasons);
  std::uint64_t chunks = 0;
  std::uint64_t samples = 0;
  for (const Loss& loss : losses) {
    chunks += loss.chunks;
    samples += lost_samples(loss);
  }
  EXPECT_EQ(chunks, 100U);
  EXPECT_EQ(samples, 200U);

  losses.clear();
  for (std::size_t i = 0; i < kMaxLossInputs + 50; ++i)
    add_loss(losses, lost(1, 1, "damaged", fmt::format("{}", i), 1));
  ASSERT_EQ(losses.size(), 1U);
  EXPECT_EQ(losses[0].samples.size(), kMaxLossInputs);
  EXPECT_EQ(lost_samples(losses[0]), kMaxLossInputs + 50);
}

}  // namespace
}  // namespace orla::model
