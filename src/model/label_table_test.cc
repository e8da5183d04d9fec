#include "model/label_table.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "base/random.h"
#include "fmt/format.h"

namespace orla::model {
namespace {

TEST(Texts, KeepsEachOnceAndFindsIt) {
  Texts texts;
  EXPECT_EQ(texts.find(""), std::nullopt);
  EXPECT_EQ(texts.add(""), 0U);
  EXPECT_EQ(texts.add("house"), 1U);
  EXPECT_EQ(texts.add(std::string("a\0b", 3)), 2U);
  EXPECT_EQ(texts.add("house"), 1U);
  EXPECT_EQ(texts.find("hous"), std::nullopt);
  EXPECT_EQ(texts[0], "");
  EXPECT_EQ(texts[1], "house");
  EXPECT_EQ(texts[2], std::string("a\0b", 3));
  EXPECT_EQ(texts.size(), 3U);
  texts.clear();
  EXPECT_EQ(texts.find("house"), std::nullopt);
  EXPECT_EQ(texts.add("plug"), 0U);
  EXPECT_EQ(texts[0], "plug");
}

// Lengths around those of a block and of a length's bytes.
TEST(Texts, OfAnyLengthStayWhereTheyAre) {
  Texts texts;
  std::vector<std::string> expected;
  std::vector<std::string_view> seen;
  const std::vector<std::size_t> lengths = {1, 65'533, 2, 65'534, 3, 127, 65'400, 128, 65'536, 200'000, 4, 131'072, 5};
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    expected.emplace_back(lengths[i], static_cast<char>('a' + i));
    EXPECT_EQ(texts.add(expected.back()), i);
    seen.push_back(texts[static_cast<std::uint32_t>(i)]);
  }
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    EXPECT_EQ(texts[static_cast<std::uint32_t>(i)], expected[i]) << i;
    EXPECT_EQ(seen[i], expected[i]) << i;
    EXPECT_EQ(texts.find(expected[i]), i);
  }
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
