#include "node/group_table.h"

#include <gtest/gtest.h>

namespace orla::node {
namespace {

model::GroupDef group(const std::string& plug) { return {"plug_load", 7, 60'000'000'000, 3, {{"plug", plug}}}; }

model::PartialRow row(std::uint32_t id, double value) {
  model::PartialRow r;
  r.group = static_cast<model::GroupId>(id);
  r.partial.add(model::Time(std::chrono::seconds(1)), value, 3);
  return r;
}

TEST(GroupTable, NumbersEachGroupOnce) {
  GroupTable table(2);
  EXPECT_EQ(*table.intern(group("a")), model::GroupId{0});
  EXPECT_EQ(*table.intern(group("b")), model::GroupId{1});
  EXPECT_EQ(*table.intern(group("a")), model::GroupId{0});
  EXPECT_EQ(table.intern(group("c")).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(table.size(), 2U);
  EXPECT_EQ(table[model::GroupId{1}], group("b"));
}

TEST(ChildGroups, TranslatesAndSorts) {
  GroupTable table(10);
  ASSERT_TRUE(table.intern(group("b")).ok());
  ChildGroups child;
  link::Dictionary dictionary;
  dictionary.entries = {{model::GroupId{0}, group("a")}, {model::GroupId{1}, group("b")}};
  ASSERT_TRUE(child.define(dictionary, [&](const model::GroupDef& g) { return table.intern(g); }).ok());
  model::PartialRows rows = {row(0, 1), row(1, 2)};
  ASSERT_TRUE(child.translate(rows).ok());
  // The child's a, b are 1 and 0 here.
  EXPECT_EQ(rows[0].group, model::GroupId{0});
  EXPECT_EQ(rows[0].partial.last, 2);
  EXPECT_EQ(rows[1].group, model::GroupId{1});
}

TEST(ChildGroups, RefusesWhatIsNotDefined) {
  GroupTable table(10);
  ChildGroups child;
  model::PartialRows rows = {row(0, 1)};
  EXPECT_EQ(child.translate(rows).code(), absl::StatusCode::kInvalidArgument);
  link::Dictionary gap;
  gap.entries = {{model::GroupId{1}, group("a")}};
  EXPECT_EQ(child.define(gap, [&](const model::GroupDef& g) { return table.intern(g); }).code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(ChildGroups, RenumbersBlocksOfSamplesAndLeavesThemAsTheyAre) {
  GroupTable table(10);
  ASSERT_TRUE(table.intern(group("b")).ok());
  ChildGroups child;
  link::Dictionary dictionary;
  dictionary.entries = {{model::GroupId{0}, group("a")}, {model::GroupId{1}, group("b")}};
  ASSERT_TRUE(child.define(dictionary, [&](const model::GroupDef& g) { return table.intern(g); }).ok());
  model::Content content{{row(0, 1)},
                         {{{{model::GroupId{0}, 3}, {model::GroupId{1}, 2}, {model::GroupId{0}, 1}}, "p"}}};
  ASSERT_TRUE(child.translate(content).ok());
  const model::SampleBlock expected{{{model::GroupId{1}, 3}, {model::GroupId{0}, 2}, {model::GroupId{1}, 1}}, "p"};
  EXPECT_EQ(content.samples.at(0), expected);
  EXPECT_EQ(content.rows.at(0).group, model::GroupId{1});
  content.samples[0].runs[1].group = model::GroupId{9};
  EXPECT_EQ(child.translate(content).code(), absl::StatusCode::kInvalidArgument);
}

TEST(SendDictionary, SendsEachEntryOnceInBoundedMessages) {
  std::vector<model::GroupDef> groups;
  for (int i = 0; i < 10'000; ++i) groups.push_back(group(std::to_string(i)));
  std::size_t sent = 0;
  std::vector<link::Dictionary> messages;
  const auto send = [&](std::size_t known) {
    send_dictionary(
        sent, known, [&](std::size_t i) { return groups[i]; },
        [&](link::Dictionary d) { messages.push_back(std::move(d)); });
  };
  send(9'000);
  send(9'000);
  send(10'000);
  std::uint32_t next = 0;
  for (const link::Dictionary& message : messages) {
    EXPECT_LE(message.entries.size(), 4096U);
    for (const link::Dictionary::Entry& entry : message.entries) {
      EXPECT_EQ(model::index(entry.id), next);
      EXPECT_EQ(entry.group, groups[next]);
      ++next;
    }
  }
  EXPECT_EQ(next, 10'000U);
}

}  // namespace
}  // namespace orla::node
