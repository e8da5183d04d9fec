#include "sim/fake_network.h"

#include <gtest/gtest.h>

#include <vector>

namespace orla::sim {
namespace {

class FakeNetworkTest : public testing::Test {
 protected:
  void drain() {
    while (queue.step()) {
    }
  }
  base::SeededRandom random{1};
  EventQueue queue;
  FakeNetwork network{queue, random};
  FakeLoop child_loop{queue, [] {}};
  FakeLoop parent_loop{queue, [] {}};
};

TEST_F(FakeNetworkTest, KeepsTheOrderAndTellsBothEnds) {
  network.heal();
  FakeUplink up(network, child_loop);
  FakeDownlink down(network, parent_loop);
  std::vector<std::uint64_t> arrived;
  std::vector<link::ConnectionId> opened, connected, up_closed, down_closed;
  up.set_events({[&](link::ConnectionId id) { connected.push_back(id); }, [](link::ConnectionId, link::DownMessage) {},
                 [&](link::ConnectionId id, const absl::Status&) { up_closed.push_back(id); }});
  down.set_events({[&](link::ConnectionId id) { opened.push_back(id); },
                   [&](link::ConnectionId, link::UpMessage message) {
                     arrived.push_back(std::get<link::OpenEpoch>(message).request);
                   },
                   [&](link::ConnectionId id, const absl::Status&) { down_closed.push_back(id); }});
  ASSERT_TRUE(down.listen("here").ok());
  EXPECT_FALSE(down.listen("here").ok());
  const link::ConnectionId id = up.connect("here", "parent");
  for (std::uint64_t i = 1; i <= 20; ++i) up.send(id, link::OpenEpoch{i, "n", {}, {}});
  drain();
  EXPECT_EQ(opened, std::vector{id});
  EXPECT_EQ(connected, std::vector{id});
  ASSERT_EQ(arrived.size(), 20U);
  for (std::uint64_t i = 0; i < 20; ++i) EXPECT_EQ(arrived[i], i + 1);
  up.close(id);
  up.send(id, link::OpenEpoch{});
  drain();
  EXPECT_EQ(down_closed, std::vector{id});
  EXPECT_TRUE(up_closed.empty()) << "who closes is not told";
  EXPECT_EQ(arrived.size(), 20U);
}

TEST_F(FakeNetworkTest, ACutLosesWhatIsUnderWay) {
  network.heal();
  FakeUplink up(network, child_loop);
  FakeDownlink down(network, parent_loop);
  int arrived = 0;
  up.set_events({});
  down.set_events({{}, [&](link::ConnectionId, const link::UpMessage&) { ++arrived; }, {}});
  ASSERT_TRUE(down.listen("here").ok());
  const link::ConnectionId id = up.connect("here", "parent");
  drain();
  up.send(id, link::Heartbeat{});
  EXPECT_EQ(network.cut(up), 1);
  drain();
  EXPECT_EQ(arrived, 0);
  EXPECT_EQ(network.counters().lost, 1U);
}

TEST_F(FakeNetworkTest, NobodyThereIsAnError) {
  FakeUplink up(network, child_loop);
  std::vector<absl::Status> closed;
  up.set_events({{}, {}, [&](link::ConnectionId, const absl::Status& why) { closed.push_back(why); }});
  up.connect("nowhere", "parent");
  drain();
  ASSERT_EQ(closed.size(), 1U);
  EXPECT_FALSE(closed[0].ok());
}

TEST_F(FakeNetworkTest, WhatArrivedAtAFrozenNodeIsReadWhenItWakes) {
  network.heal();
  FakeUplink up(network, child_loop);
  FakeDownlink down(network, parent_loop);
  int arrived = 0;
  int closed = 0;
  up.set_events({});
  down.set_events({{},
                   [&](link::ConnectionId, const link::UpMessage&) { ++arrived; },
                   [&](link::ConnectionId, const absl::Status&) { ++closed; }});
  ASSERT_TRUE(down.listen("here").ok());
  const link::ConnectionId id = up.connect("here", "parent");
  drain();
  parent_loop.freeze();
  up.send(id, link::Heartbeat{});
  up.close(id);
  drain();
  EXPECT_EQ(arrived, 0);
  parent_loop.thaw();
  EXPECT_EQ(arrived, 1);
  EXPECT_EQ(closed, 1);
}

}  // namespace
}  // namespace orla::sim
