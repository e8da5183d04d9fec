#include "model/number_set.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "base/random.h"

namespace orla::model {
namespace {

// Numbers stand for values; hashes are bad on purpose, so that runs of full slots wrap around the end.
TEST(NumberSet, FindsWhatWasInsertedAndNothingElse) {
  base::SeededRandom random(3);
  std::map<std::uint64_t, std::uint32_t> numbers;  // by value
  std::vector<std::uint64_t> values;               // by number
  const auto hash = [](std::uint64_t value) { return value % 64 << 58 | value % 8; };
  NumberSet set;
  for (int i = 0; i < 4'000; ++i) {
    const std::uint64_t value = random.below(3'000);
    const auto found = set.find(hash(value), [&](std::uint32_t number) { return values.at(number) == value; });
    const auto known = numbers.find(value);
    ASSERT_EQ(found.has_value(), known != numbers.end());
    if (found) {
      ASSERT_EQ(*found, known->second);
      continue;
    }
    const auto number = static_cast<std::uint32_t>(values.size());
    values.push_back(value);
    numbers.emplace(value, number);
    if (set.has_room(number)) {
      set.insert(number, hash(value));
      continue;
    }
    set.grow(number);
    for (std::uint32_t n = 0; n < values.size(); ++n) set.insert(n, hash(values[n]));
  }
  set.clear();
  EXPECT_EQ(set.find(hash(values[0]), [](std::uint32_t) { return true; }), std::nullopt);
}

TEST(NumberSet, TakesNumbersOfAllBits) {
  NumberSet set;
  const std::vector<std::uint32_t> numbers = {0, 1, 0x7fffffff, 0x80000000, UINT32_MAX - 1};
  std::vector<std::uint32_t> all;
  for (const std::uint32_t number : numbers) {
    all.push_back(number);
    if (set.has_room(number)) {
      set.insert(number, number);
      continue;
    }
    set.grow(number);
    for (const std::uint32_t n : all) set.insert(n, n);
  }
  for (const std::uint32_t number : numbers)
    EXPECT_EQ(set.find(number, [&](std::uint32_t n) { return n == number; }), number);
}

}  // namespace
}  // namespace orla::model
