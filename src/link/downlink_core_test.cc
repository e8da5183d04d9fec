#include "link/downlink_core.h"

#include <gtest/gtest.h>

namespace orla::link {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr ConnectionId kOne{1};
constexpr ConnectionId kTwo{2};

class DownlinkCoreTest : public testing::Test {
 protected:
  static DownlinkSettings settings() {
    DownlinkSettings s;
    s.fleet = "fleet";
    s.node = "agg";
    s.children = {"edge-1", "edge-2"};
    s.credit_bytes = 777;
    return s;
  }
  static Hello hello(std::string node) {
    Hello h;
    h.fleet = "fleet";
    h.node = std::move(node);
    return h;
  }
  std::string rejection(const Hello& h) {
    core.opened(now, kOne);
    core.received(now, kOne, h);
    const auto actions = core.take_actions();
    EXPECT_EQ(actions.size(), 2U);
    EXPECT_TRUE(std::holds_alternative<DownlinkCore::Close>(actions.back()));
    return std::get<Rejected>(std::get<DownlinkCore::Send>(actions.front()).message).message;
  }

  base::SteadyTime now{seconds(100)};
  DownlinkCore core{settings()};
};

TEST_F(DownlinkCoreTest, WelcomesAChildWithItsCredit) {
  core.opened(now, kOne);
  core.received(now, kOne, hello("edge-1"));
  const auto actions = core.take_actions();
  ASSERT_EQ(actions.size(), 2U);
  const auto& welcome = std::get<Welcome>(std::get<DownlinkCore::Send>(actions[0]).message);
  EXPECT_EQ(welcome.credit_bytes, 777U);
  EXPECT_EQ(welcome.heartbeat_ms, 500);
  EXPECT_EQ(welcome.node, "agg");
  EXPECT_EQ(std::get<DownlinkCore::ChildUp>(actions[1]).node, "edge-1");
}

TEST_F(DownlinkCoreTest, RejectsAnotherMajorWithBothVersions) {
  Hello h = hello("edge-1");
  h.major = 9;
  h.minor = 3;
  const std::string text = rejection(h);
  EXPECT_NE(text.find("9.3"), std::string::npos) << text;
  EXPECT_NE(text.find("3.0"), std::string::npos) << text;
}

TEST_F(DownlinkCoreTest, AnotherMinorIsWelcome) {
  Hello h = hello("edge-1");
  h.minor = 99;
  core.opened(now, kOne);
  core.received(now, kOne, h);
  EXPECT_EQ(core.children().size(), 1U);
}

TEST_F(DownlinkCoreTest, RejectsAnotherFleetAndAnUnknownNode) {
  Hello h = hello("edge-1");
  h.fleet = "other";
  EXPECT_NE(rejection(h).find("other"), std::string::npos);
  EXPECT_NE(rejection(hello("stranger")).find("stranger"), std::string::npos);
  EXPECT_NE(rejection(hello("")).find("not a child"), std::string::npos);
}

TEST_F(DownlinkCoreTest, TheFirstMessageHasToBeHello) {
  core.opened(now, kOne);
  core.received(now, kOne, OpenEpoch{});
  EXPECT_EQ(core.counters().rejections, 1U);
  core.take_actions();
  core.received(now, kOne, hello("edge-1"));
  EXPECT_TRUE(core.take_actions().empty());
}

TEST_F(DownlinkCoreTest, ANewConnectionOfANodeReplacesTheOldOne) {
  core.opened(now, kOne);
  core.received(now, kOne, hello("edge-1"));
  core.opened(now, kTwo);
  core.take_actions();
  core.received(now, kTwo, hello("edge-1"));
  const auto actions = core.take_actions();
  ASSERT_EQ(actions.size(), 4U);
  EXPECT_EQ(std::get<DownlinkCore::ChildDown>(actions[0]).child, kOne);
  EXPECT_EQ(std::get<DownlinkCore::Close>(actions[1]).child, kOne);
  EXPECT_EQ(std::get<DownlinkCore::ChildUp>(actions[3]).child, kTwo);
  // The end of the old one does not take the new one down.
  core.closed(kOne, "reset");
  EXPECT_TRUE(core.take_actions().empty());
  ASSERT_EQ(core.children().size(), 1U);
  EXPECT_EQ(core.children()[0].first, kTwo);
}

TEST_F(DownlinkCoreTest, SilentChildrenAreClosedAndHeartbeatsSent) {
  core.opened(now, kOne);
  core.received(now, kOne, hello("edge-1"));
  core.opened(now, kTwo);  // never says anything
  core.take_actions();
  int beats = 0;
  int closed = 0;
  for (int i = 0; i < 99; ++i) {
    now += milliseconds(100);
    core.tick(now);
    for (const auto& action : core.take_actions()) {
      if (const auto* send = std::get_if<DownlinkCore::Send>(&action)) {
        beats += std::holds_alternative<Heartbeat>(send->message) ? 1 : 0;
      } else if (const auto* close = std::get_if<DownlinkCore::Close>(&action)) {
        EXPECT_EQ(close->child, kTwo);
        ++closed;
      }
    }
  }
  EXPECT_EQ(beats, 19);
  EXPECT_EQ(closed, 1);
  now += milliseconds(100);
  core.tick(now);
  const auto actions = core.take_actions();
  ASSERT_EQ(actions.size(), 2U);
  EXPECT_EQ(std::get<DownlinkCore::ChildDown>(actions[0]).node, "edge-1");
}

TEST_F(DownlinkCoreTest, MoreChildrenThanTheBoundAreRejected) {
  DownlinkSettings s = settings();
  s.max_children = 1;
  DownlinkCore small(s);
  small.opened(now, kOne);
  small.opened(now, kTwo);
  const auto actions = small.take_actions();
  ASSERT_EQ(actions.size(), 2U);
  EXPECT_EQ(std::get<DownlinkCore::Send>(actions[0]).child, kTwo);
  EXPECT_TRUE(std::holds_alternative<Rejected>(std::get<DownlinkCore::Send>(actions[0]).message));
}

TEST_F(DownlinkCoreTest, NothingIsSentToAChildThatIsGone) {
  core.opened(now, kOne);
  core.received(now, kOne, hello("edge-1"));
  core.take_actions();
  core.send(kOne, Acknowledge{});
  EXPECT_EQ(core.take_actions().size(), 1U);
  core.closed(kOne, "gone");
  core.take_actions();
  core.send(kOne, Acknowledge{});
  EXPECT_TRUE(core.take_actions().empty());
}

}  // namespace
}  // namespace orla::link
