#include "sim/shrink.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace orla::sim {
namespace {

bool has(const std::vector<std::size_t>& list, std::size_t n) { return std::count(list.begin(), list.end(), n) > 0; }

std::vector<std::size_t> up_to(std::size_t n) {
  std::vector<std::size_t> all(n);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

TEST(Shrink, FindsThePairThatFails) {
  int runs = 0;
  const auto fails = [&](const std::vector<std::size_t>& list) {
    ++runs;
    return has(list, 3) && has(list, 41);
  };
  EXPECT_EQ(shrink(up_to(64), fails, [] { return true; }), (std::vector<std::size_t>{3, 41}));
  EXPECT_LT(runs, 64) << "parts go before single ones";
}

TEST(Shrink, AFailureWithoutFaultsNeedsNone) {
  EXPECT_TRUE(shrink(
                  up_to(10), [](const auto&) { return true; }, [] { return true; })
                  .empty());
}

TEST(Shrink, WithoutTimeKeepsWhatFails) {
  int left = 3;
  const auto fails = [](const std::vector<std::size_t>& list) { return has(list, 7); };
  const std::vector<std::size_t> found = shrink(up_to(16), fails, [&] { return left-- > 0; });
  EXPECT_TRUE(has(found, 7));
}

}  // namespace
}  // namespace orla::sim
