#include "model/label_table.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "base/random.h"
#include "fmt/format.h"

namespace orla::model {
namespace {

TEST(Texts, KeepsEachOnceAndFindsIt) {
  Texts texts;
  EXPECT_EQ(texts.find(""), std::nullopt);
  const std::uint32_t empty = texts.add("");
  const std::uint32_t house = texts.add("house");
  const std::uint32_t zero = texts.add(std::string("a\0b", 3));
  EXPECT_EQ(texts.add("house"), house);
  EXPECT_EQ(texts.add(""), empty);
  EXPECT_EQ((std::set<std::uint32_t>{empty, house, zero}.size()), 3U);
  EXPECT_EQ(texts.find("hous"), std::nullopt);
  EXPECT_EQ(texts[empty], "");
  EXPECT_EQ(texts[house], "house");
  EXPECT_EQ(texts[zero], std::string("a\0b", 3));
  texts.clear();
  EXPECT_EQ(texts.find("house"), std::nullopt);
  EXPECT_EQ(texts[texts.add("plug")], "plug");
}

// Lengths around those of a block and of a length's bytes; enough others that all are found anew in a larger table.
TEST(Texts, OfAnyLengthStayWhereTheyAre) {
  Texts texts;
  std::vector<std::string> expected;
  for (const std::size_t length : {1, 65'532, 2, 65'533, 3, 65'534, 126, 65'400, 127, 65'536, 200'000, 4, 131'072, 5})
    expected.emplace_back(length, static_cast<char>('a' + expected.size()));
  for (int i = 0; i < 30'000; ++i) expected.push_back(fmt::format("text {}", i * 7));
  std::vector<std::uint32_t> numbers;
  std::vector<std::string_view> seen;
  for (const std::string& text : expected) {
    numbers.push_back(texts.add(text));
    seen.push_back(texts[numbers.back()]);
  }
  for (std::size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(texts[numbers[i]], expected[i]) << i;
    ASSERT_EQ(seen[i], expected[i]) << i;
    ASSERT_EQ(texts.find(expected[i]), numbers[i]);
  }
  EXPECT_EQ(std::set(numbers.begin(), numbers.end()).size(), expected.size());
}

// Some longer than a block of the table, which holds 16,384 numbers.
TEST(LabelTable, TakesThingsOfAnyNumberOfLabels) {
  Texts texts;
  LabelTable table(texts);
  const std::vector<std::size_t> counts = {3, 16'379, 1, 16'380, 0, 16'384, 2, 40'000, 5, 16'383, 16'382, 9};
  const auto labels = [](std::size_t thing, std::size_t count) {
    std::vector<Label> out;
    for (std::size_t i = 0; i < count; ++i) out.emplace_back(fmt::format("{}", i), fmt::format("{}", thing));
    return out;
  };
  for (std::size_t i = 0; i < counts.size(); ++i) ASSERT_EQ(table.add(7, labels(i, counts[i])), i);
  for (std::uint32_t n = 12; n < 40; ++n) ASSERT_EQ(table.add(7, labels(n, 1)), n);
  for (std::size_t i = 0; i < counts.size(); ++i) {
    ASSERT_EQ(table.labels(static_cast<std::uint32_t>(i)), labels(i, counts[i]));
    ASSERT_EQ(table.find(7, labels(i, counts[i])), i);
  }
  EXPECT_EQ(table.find(8, labels(0, 3)), std::nullopt);
}

// Against a map of the plain definitions. Many share texts, names in another order, or nothing but the kind.
TEST(LabelTable, GivesBackWhatWasAdded) {
  Texts texts;
  LabelTable table(texts);
  base::SeededRandom random(7);
  std::map<std::pair<std::uint32_t, std::vector<Label>>, std::uint32_t> expected;
  for (int i = 0; i < 20'000; ++i) {
    const auto kind = static_cast<std::uint32_t>(random.below(3));
    std::vector<Label> labels;
    for (std::uint64_t k = random.below(4); k > 0; --k)
      labels.emplace_back(fmt::format("n{}", random.below(4)), fmt::format("{}", random.below(12)));
    const auto known = expected.find({kind, labels});
    const std::optional<std::uint32_t> found = table.find(kind, labels);
    ASSERT_EQ(found.has_value(), known != expected.end());
    if (found) {
      ASSERT_EQ(*found, known->second);
      continue;
    }
    ASSERT_EQ(table.add(kind, labels), expected.size());
    expected.emplace(std::pair(kind, labels), expected.size());
  }
  ASSERT_GT(expected.size(), 1'000U);
  ASSERT_EQ(table.size(), expected.size());
  for (const auto& [definition, number] : expected) {
    EXPECT_EQ(table.kind(number), definition.first);
    EXPECT_EQ(table.labels(number), definition.second);
  }
  table.clear();
  EXPECT_EQ(table.size(), 0U);
  EXPECT_EQ(table.find(0, {}), std::nullopt);
}

}  // namespace
}  // namespace orla::model
