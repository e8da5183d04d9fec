#include "stream/cloud_publication.h"

#include <gtest/gtest.h>

namespace orla::stream {
namespace {

using std::chrono::minutes;

constexpr base::SteadyTime kStart{std::chrono::hours(1)};
constexpr model::Time at(int minute) { return model::Time(minutes(minute)); }

// Edges a and b feed load; only a feeds work; c feeds nothing.
model::Plan two_edges() {
  model::Fleet fleet;
  fleet.zone = "UTC";
  fleet.idle_after = minutes(5);
  fleet.metrics = {{"load", "W", 3, {}, {}}, {"work", "kWh", 3, {}, {}}};
  for (const char* name : {"a", "b", "c"}) {
    model::NodeSpec node;
    node.name = name;
    fleet.nodes.push_back(node);
  }
  model::InputSpec both;
  both.node = "a";
  model::InputSpec mapped;
  mapped.node = "b";
  mapped.schema = model::InputSpec::Schema::kMapping;
  mapped.mapping.values = {{"load", "w"}};
  mapped.idle_after = minutes(10);
  fleet.inputs = {both, mapped};
  return model::make_plan(fleet);
}

struct CloudPublicationTest : testing::Test {
  model::Time load(base::SteadyTime now) {
    publication.publish(publication.at(now));
    return publication.of(0);
  }
  CloudPublication publication{two_edges(), kStart};
};

TEST_F(CloudPublicationTest, IsTheLeastOfTheFeeders) {
  EXPECT_EQ(load(kStart), model::kMinTime);
  publication.heard("a", {{"load", at(30)}, {"work", at(31)}, {"other", at(99)}}, kStart);
  publication.heard("c", {{"load", at(1)}}, kStart);
  EXPECT_EQ(load(kStart), model::kMinTime);  // b never spoke
  EXPECT_EQ(publication.of(1), at(31));      // b does not feed work
  publication.heard("b", {{"load", at(20)}}, kStart);
  EXPECT_EQ(load(kStart), at(20));
  publication.heard("b", {{"load", at(40)}}, kStart);
  EXPECT_EQ(load(kStart), at(30));
}

TEST_F(CloudPublicationTest, ASilentEdgeHoldsItForItsIdleTimeOnly) {
  publication.heard("a", {{"load", at(30)}}, kStart + minutes(9));
  EXPECT_EQ(load(kStart + minutes(10) - std::chrono::nanoseconds(1)), model::kMinTime);
  EXPECT_EQ(load(kStart + minutes(10)), at(30));  // b has been silent for its ten minutes
}

TEST_F(CloudPublicationTest, NeverGoesBackWhenAnEdgeReturns) {
  publication.heard("a", {{"load", at(30)}}, kStart + minutes(9));
  EXPECT_EQ(load(kStart + minutes(10)), at(30));
  publication.heard("b", {{"load", at(3)}}, kStart + minutes(11));
  EXPECT_EQ(load(kStart + minutes(11)), at(30));
  publication.heard("a", {{"load", at(35)}}, kStart + minutes(12));
  EXPECT_EQ(load(kStart + minutes(12)), at(30));  // b holds it again
  publication.heard("b", {{"load", at(34)}}, kStart + minutes(12));
  EXPECT_EQ(load(kStart + minutes(12)), at(34));
}

TEST_F(CloudPublicationTest, AFrameWithoutNewsIsNotSilence) {
  publication.heard("a", {{"load", at(30)}}, kStart + minutes(9));
  publication.heard("b", {}, kStart + minutes(9));
  EXPECT_EQ(load(kStart + minutes(12)), model::kMinTime);
}

TEST_F(CloudPublicationTest, AnEndedEdgeHoldsNothing) {
  publication.heard("a", {{"load", model::kMaxTime}}, kStart);
  publication.heard("b", {{"load", at(7)}}, kStart + minutes(20));
  EXPECT_EQ(load(kStart + minutes(20)), at(7));
  publication.heard("b", {{"load", model::kMaxTime}}, kStart + minutes(20));
  EXPECT_EQ(load(kStart + minutes(20)), model::kMaxTime);
}

TEST_F(CloudPublicationTest, NothingMovesWhileEverybodyIsSilent) {
  publication.heard("a", {{"load", at(30)}}, kStart);
  publication.heard("b", {{"load", at(20)}}, kStart);
  EXPECT_EQ(load(kStart), at(20));
  EXPECT_EQ(load(kStart + minutes(60)), at(20));
}

TEST_F(CloudPublicationTest, ARestoredEdgeCountsFromItsOldTimeUntilItIsSilent) {
  publication.restore(0, at(15));
  publication.restore("a", {{"load", at(30)}});
  publication.restore("b", {{"load", at(18)}});
  EXPECT_EQ(load(kStart), at(18));
  publication.heard("a", {}, kStart + minutes(10));
  EXPECT_EQ(load(kStart + minutes(10)), at(30));
}

}  // namespace
}  // namespace orla::stream
