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
  Link link;
  FakeLoop child_loop{queue, [] {}};
  FakeLoop parent_loop{queue, [] {}};
};

TEST_F(FakeNetworkTest, KeepsTheOrderAndTellsBothEnds) {
  network.heal();
  FakeUplink up(network, child_loop, link, "child");
  FakeDownlink down(network, parent_loop, "parent");
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
  FakeUplink up(network, child_loop, link, "child");
  FakeDownlink down(network, parent_loop, "parent");
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
  FakeUplink up(network, child_loop, link, "child");
  std::vector<absl::Status> closed;
  up.set_events({{}, {}, [&](link::ConnectionId, const absl::Status& why) { closed.push_back(why); }});
  up.connect("nowhere", "parent");
  drain();
  ASSERT_EQ(closed.size(), 1U);
  EXPECT_FALSE(closed[0].ok());
}

TEST_F(FakeNetworkTest, WhatArrivedAtAFrozenNodeIsReadWhenItWakes) {
  network.heal();
  FakeUplink up(network, child_loop, link, "child");
  FakeDownlink down(network, parent_loop, "parent");
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

TEST_F(FakeNetworkTest, ASlowLinkCarriesItsBytesAndHeartbeatsOvertake) {
  link.bytes_per_s = 1000;
  link.delay_min = link.delay_max = std::chrono::milliseconds(5);
  FakeUplink up(network, child_loop, link, "child");
  FakeDownlink down(network, parent_loop, "parent");
  std::vector<std::pair<std::string, double>> arrived;
  const auto now = [&] { return std::chrono::duration<double>(queue.now().time_since_epoch()).count(); };
  up.set_events({});
  down.set_events({{},
                   [&](link::ConnectionId, const link::UpMessage& message) {
                     arrived.emplace_back(std::holds_alternative<link::Heartbeat>(message) ? "heartbeat" : "frame",
                                          now());
                   },
                   {}});
  ASSERT_TRUE(down.listen("here").ok());
  const link::ConnectionId id = up.connect("here", "parent");
  drain();
  const double began = now();
  link::FrameMessage frame;
  frame.rows = std::string(10'000, 'x');
  const double bytes = static_cast<double>(link::wire_bytes(link::UpMessage(frame)));
  up.send(id, frame);
  up.send(id, link::Heartbeat{});
  up.send(id, link::Heartbeat{});  // one that waits is enough
  EXPECT_GE(up.queued_bytes(id), 10'000U);
  drain();
  // Every piece of the frame but the last is a sign of life as well.
  ASSERT_GT(arrived.size(), 100U);
  for (std::size_t i = 0; i + 1 < arrived.size(); ++i) EXPECT_EQ(arrived[i].first, "heartbeat");
  EXPECT_LT(arrived[0].second - began, 0.15) << "it waits for a piece at most";
  EXPECT_EQ(arrived.back().first, "frame");
  EXPECT_NEAR(arrived.back().second - began, bytes / 1000, 0.1);
  EXPECT_EQ(up.queued_bytes(id), 0U);
}

TEST_F(FakeNetworkTest, ABusyLoopTakesMessagesInOrderWhenItIsFree) {
  FakeUplink up(network, child_loop, link, "child");
  FakeDownlink down(network, parent_loop, "parent");
  std::vector<std::uint64_t> arrived;
  up.set_events({});
  down.set_events({{},
                   [&](link::ConnectionId, const link::UpMessage& message) {
                     arrived.push_back(std::get<link::OpenEpoch>(message).request);
                     parent_loop.spend(std::chrono::seconds(1));
                   },
                   {}});
  ASSERT_TRUE(down.listen("here").ok());
  const link::ConnectionId id = up.connect("here", "parent");
  const base::SteadyTime began = queue.now();
  for (std::uint64_t i = 1; i <= 5; ++i) up.send(id, link::OpenEpoch{i, "n", {}, {}});
  drain();
  EXPECT_EQ(arrived, (std::vector<std::uint64_t>{1, 2, 3, 4, 5}));
  EXPECT_GE(queue.now() - began, std::chrono::seconds(4));
  EXPECT_EQ(parent_loop.spent(), std::chrono::seconds(5));
}

}  // namespace
}  // namespace orla::sim
