// What an edge publishes, and what it then seals.
#include <gtest/gtest.h>

#include "stream/edge_for_tests.h"

namespace orla::stream::edge_tests {
namespace {

TEST(Publication, IsTheLeastWatermarkMinusDisorder) {
  const model::Plan plan = make_test_plan();
  Life life(plan, SealScope::kPublished, keys(plan));
  EXPECT_EQ(life.engine->publications(), (std::vector<Publication>{{"load", kMinTime}, {"work", kMinTime}}));
  life.apply({{0, plug("load", 1, 1), at(70), 1}, {0, plug("load", 1, 2), at(64), 1}}, 1);
  EXPECT_EQ(load_publication(*life.engine), at(59));
  EXPECT_FALSE(life.engine->seal(SealScope::kPublished, SealWhen::kSomethingNew).has_value() &&
               life.engine->open_rows() < 5);
  life.apply({{0, plug("load", 1, 2), at(126), 1}}, 2);
  EXPECT_EQ(load_publication(*life.engine), at(65));
  // A new series with an old time is a correction; publication does not go back.
  life.apply({{0, plug("load", 1, 3), at(30), 1}}, 3);
  EXPECT_EQ(load_publication(*life.engine), at(65));
  const std::optional<Sealed> sealed = life.commit(SealWhen::kSomethingNew, false);
  ASSERT_TRUE(sealed.has_value());
  EXPECT_EQ(life.cells.count({"plug_load", {"{house=1,plug=3}", at(0)}}), 1u);
  EXPECT_EQ(life.cells.count({"plug_load", {"{house=1,plug=1}", at(60)}}), 0u);
}

TEST(Publication, SeriesFarBehindTheirInputDoNotHoldIt) {
  const model::Plan plan = make_test_plan();  // load: 100 s allowed, 5 s disorder
  Life life(plan, SealScope::kPublished, keys(plan));
  life.apply({{0, plug("load", 1, 1), at(0), 1}, {0, plug("load", 1, 2), at(100), 1}}, 1);
  EXPECT_EQ(load_publication(*life.engine), at(-5));
  // The newest of the input may be of another metric.
  life.apply({{0, plug("work", 1, 1), at(101), 1}}, 2);
  EXPECT_EQ(load_publication(*life.engine), at(95));
}

TEST(Publication, EndedInputsDoNotHoldIt) {
  const model::Plan plan = make_test_plan(2);
  Life life(plan, SealScope::kPublished, keys(plan));
  life.apply({{0, plug("load", 1, 1), at(10), 1}, {1, plug("load", 2, 1), at(500), 1}}, 1);
  EXPECT_EQ(load_publication(*life.engine), at(5));
  life.engine->end_input(0);
  EXPECT_EQ(load_publication(*life.engine), at(495));
  life.engine->end_input(1);
  EXPECT_EQ(load_publication(*life.engine), kMaxTime);
  EXPECT_TRUE(life.engine->input(1).ended);
  EXPECT_EQ(life.engine->apply(1, InputBatch(), Time{}).code(), absl::StatusCode::kInvalidArgument);
}

TEST(Publication, IdleSeriesDoNotHoldIt) {
  const model::Plan plan = make_test_plan(1, {}, seconds(60));
  Life life(plan, SealScope::kPublished, keys(plan));
  life.apply({{0, plug("load", 1, 1), at(10), 1}, {0, plug("load", 1, 2), at(40), 1}}, 1);
  EXPECT_EQ(load_publication(*life.engine), at(5));
  EXPECT_FALSE(life.engine->tick(0, at(69)));
  EXPECT_EQ(load_publication(*life.engine), at(5));
  EXPECT_TRUE(life.engine->tick(0, at(70)));  // the first is idle: past 0 s
  EXPECT_EQ(load_publication(*life.engine), at(35));
  life.commit(SealWhen::kSomethingNew, false);
  // Both are idle: the clock says how far there was nothing.
  EXPECT_TRUE(life.engine->tick(0, at(130)));
  EXPECT_EQ(load_publication(*life.engine), at(125));
  EXPECT_FALSE(life.commit(SealWhen::kSomethingNew, false)->rows.empty());
  EXPECT_FALSE(life.engine->tick(0, at(131)));
  EXPECT_TRUE(life.engine->tick(0, at(200)));
  EXPECT_EQ(load_publication(*life.engine), at(195));
}

TEST(Publication, OfWhatIsOpenReachesTheEndOfTheLastSlice) {
  const model::Plan plan = make_test_plan();
  Life life(plan, SealScope::kPublished, keys(plan));
  life.engine->publish_open();
  EXPECT_EQ(load_publication(*life.engine), kMinTime);
  life.apply({{0, plug("load", 1, 1), at(10), 1}, {0, plug("load", 1, 2), at(70), 1}}, 1);
  life.engine->publish_open();
  EXPECT_EQ(life.engine->publications(), (std::vector<Publication>{{"load", at(120)}, {"work", at(120)}}));
  life.commit(SealWhen::kAlways, false);
  EXPECT_EQ(life.engine->open_rows(), 0u);
  // Going on later: corrections first, then publication as before.
  life.restart(keys(plan));
  life.apply({{0, plug("load", 1, 1), at(80), 1}, {0, plug("load", 1, 2), at(90), 1}}, 2);
  EXPECT_EQ(load_publication(*life.engine), at(120));
  EXPECT_EQ(life.commit(SealWhen::kSomethingNew, false)->rows.size(), 5u);
}

TEST(Seal, SaysNothingWithoutNews) {
  const model::Plan plan = make_test_plan();
  Life life(plan, SealScope::kPublished, keys(plan));
  EXPECT_FALSE(life.commit(SealWhen::kSomethingNew, false).has_value());
  life.apply({{0, plug("load", 1, 1), at(10), 1}}, 1);
  EXPECT_TRUE(life.commit(SealWhen::kSomethingNew, false).has_value());  // publication began
  life.apply({{0, plug("load", 1, 1), at(11), 1}}, 2);
  EXPECT_FALSE(life.commit(SealWhen::kSomethingNew, false).has_value());
  const std::optional<Sealed> forced = life.commit(SealWhen::kAlways, false);
  ASSERT_TRUE(forced.has_value());
  EXPECT_TRUE(forced->rows.empty());
  EXPECT_EQ(forced->ledgers.at(0).second.aggregated, 2u);
}

TEST(Seal, EmitsOpenSlicesEverySoOften) {
  model::Plan plan = make_test_plan();
  for (model::StreamDef& stream : plan.streams)
    if (stream.name == "house_load") stream.emit = seconds(5);
  Life life(plan, SealScope::kPublished, keys(plan));
  Feed feed;
  const Time clock = at(1'000'000);
  const auto add = [&](double s, Time now) {
    ASSERT_TRUE(life.engine->apply(0, feed.batch({{0, plug("load", 1, 1), at(s), 2.5}}, 1), now).ok());
  };
  add(10, clock);
  life.commit(SealWhen::kSomethingNew, false);
  EXPECT_TRUE(life.cells.empty());
  EXPECT_FALSE(life.engine->emission_due(clock + seconds(4)));
  EXPECT_TRUE(life.engine->emission_due(clock + seconds(5)));
  life.commit(SealWhen::kSomethingNew, false);
  const Cell cell{"house_load", {"{house=1}", at(0)}};
  ASSERT_EQ(life.cells.size(), 1u);
  EXPECT_EQ(life.cells.at(cell).count, 1u);
  EXPECT_FALSE(life.engine->emission_due(clock + seconds(20)));  // nothing new
  // What is left open survives a restart, what was emitted does not come twice.
  life.restart(keys(plan));
  feed = Feed();
  EXPECT_EQ(life.engine->open_rows(), 2u);
  add(11, clock + seconds(20));
  EXPECT_FALSE(life.engine->emission_due(clock + seconds(10)));  // the clock was set back
  EXPECT_TRUE(life.engine->emission_due(clock + seconds(15)));
  life.engine->end_input(0);
  life.commit(SealWhen::kAlways, false);
  for (const auto& [where, partial] : life.cells) EXPECT_EQ(partial.count, 2u) << where.first;
  EXPECT_EQ(life.cells.size(), 3u);
}

}  // namespace
}  // namespace orla::stream::edge_tests
