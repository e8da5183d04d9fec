#include "link/uplink_core.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>

namespace orla::link {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class UplinkCoreTest : public testing::Test {
 protected:
  static UplinkSettings settings(std::vector<std::vector<std::string>> groups) {
    UplinkSettings s;
    s.fleet = "fleet";
    s.node = "edge";
    for (const auto& group : groups) {
      s.parents.emplace_back();
      for (const std::string& name : group) s.parents.back().push_back({name, "addr-" + name});
    }
    return s;
  }

  template <typename T>
  std::vector<T> take(UplinkCore& core) {
    std::vector<T> found;
    for (UplinkCore::Action& action : core.take_actions()) {
      if (auto* wanted = std::get_if<T>(&action)) found.push_back(std::move(*wanted));
    }
    return found;
  }

  // Takes the one Connect that is out.
  UplinkCore::Connect dialed(UplinkCore& core) {
    auto connects = take<UplinkCore::Connect>(core);
    EXPECT_EQ(connects.size(), 1U);
    return connects.empty() ? UplinkCore::Connect{} : connects.front();
  }

  void welcome(UplinkCore& core, UplinkCore::Attempt attempt, std::uint64_t credit = 1000) {
    core.connected(attempt);
    Welcome w;
    w.credit_bytes = credit;
    core.received(now, attempt, w);
  }

  base::SeededRandom random{1};
  base::SteadyTime now{seconds(100)};
};

TEST_F(UplinkCoreTest, GreetsAndComesUpWithTheParentsCredit) {
  UplinkCore core(settings({{"agg"}}), random);
  core.start(now);
  const auto connect = dialed(core);
  EXPECT_EQ(connect.to.address, "addr-agg");
  core.connected(connect.attempt);
  const auto sends = take<UplinkCore::Send>(core);
  ASSERT_EQ(sends.size(), 1U);
  const auto& hello = std::get<Hello>(sends[0].message);
  EXPECT_EQ(hello.fleet, "fleet");
  EXPECT_EQ(hello.node, "edge");
  EXPECT_EQ(hello.major, kProtocolMajor);
  EXPECT_FALSE(core.up());
  Welcome w;
  w.credit_bytes = 4242;
  core.received(now, connect.attempt, w);
  const auto ups = take<UplinkCore::SessionUp>(core);
  ASSERT_EQ(ups.size(), 1U);
  EXPECT_EQ(ups[0].credit_bytes, 4242U);
  EXPECT_EQ(core.parent(), "agg");
}

TEST_F(UplinkCoreTest, ADeadParentIsNoticedAndTheNextOneTried) {
  UplinkCore core(settings({{"agg"}, {"cloud"}}), random);
  core.start(now);
  welcome(core, dialed(core).attempt);
  take<UplinkCore::SessionUp>(core);
  // Heartbeats of the parent keep it alive.
  for (int i = 0; i < 10; ++i) {
    now += milliseconds(500);
    core.received(now, UplinkCore::Attempt{1}, Heartbeat{});
    core.tick(now);
  }
  EXPECT_TRUE(core.up());
  core.take_actions();
  now += milliseconds(1999);
  core.tick(now);
  EXPECT_TRUE(core.up());
  now += milliseconds(1);
  core.tick(now);
  EXPECT_FALSE(core.up());
  EXPECT_EQ(take<UplinkCore::SessionDown>(core).size(), 1U);
  now += milliseconds(200);  // at most backoff_min later, so that all children do not come at once
  core.tick(now);
  EXPECT_EQ(dialed(core).to.node, "cloud");
}

// However late the node looks again: it may be busy, and by then all could be tried.
TEST_F(UplinkCoreTest, TheOthersAreTriedBeforeTheOneThatFellSilent) {
  for (int look = 1; look <= 2'000; look += 37) {
    UplinkCore core(settings({{"a"}, {"b"}}), random);
    core.start(now);
    welcome(core, dialed(core).attempt);
    ASSERT_EQ(core.parent(), "a");
    now += seconds(2);
    core.tick(now);
    ASSERT_FALSE(core.up());
    std::vector<UplinkCore::Connect> next = take<UplinkCore::Connect>(core);
    while (next.empty()) {
      now += milliseconds(look);
      core.tick(now);
      next = take<UplinkCore::Connect>(core);
    }
    EXPECT_EQ(next.front().to.node, "b") << look << " ms";
  }
}

TEST_F(UplinkCoreTest, BacksOffFromASingleParentMoreAndMore) {
  UplinkCore core(settings({{"agg"}}), random);
  core.start(now);
  std::vector<std::chrono::nanoseconds> waits;
  for (int i = 0; i < 10; ++i) {
    const auto connect = dialed(core);
    core.closed(now, connect.attempt, absl::UnavailableError("refused"));
    const base::SteadyTime failed = now;
    for (;;) {
      now += milliseconds(10);
      core.tick(now);
      if (core.counters().attempts == static_cast<std::uint64_t>(i) + 2) break;
      ASSERT_LT(now - failed, seconds(20));
    }
    waits.push_back(now - failed);
  }
  EXPECT_LE(waits[0], milliseconds(260));
  EXPECT_GE(waits[0], milliseconds(150));
  EXPECT_GE(waits[9], milliseconds(7500));
  EXPECT_LE(waits[9], milliseconds(12510));
}

// A link that is there for 300 ms at a time.
TEST_F(UplinkCoreTest, ALinkThatFlapsIsUsedWheneverItIsThereAsLongAsItCarriesSomething) {
  for (const bool carries : {true, false}) {
    UplinkCore core(settings({{"agg"}}), random);
    core.start(now);
    std::vector<std::chrono::nanoseconds> waits;
    for (int i = 0; i < 12; ++i) {
      const auto connect = dialed(core);
      welcome(core, connect.attempt);
      if (carries) core.received(now, connect.attempt, Acknowledge{{{"edge", model::Epoch{1}, 5, {}}}});
      now += milliseconds(300);
      core.closed(now, connect.attempt, absl::UnavailableError("cut"));
      core.take_actions();
      const base::SteadyTime lost = now;
      while (core.counters().attempts == static_cast<std::uint64_t>(i) + 1 && now - lost < seconds(20)) {
        now += milliseconds(5);
        core.tick(now);
      }
      waits.push_back(now - lost);
    }
    if (carries) {
      for (const auto wait : waits) EXPECT_LE(wait, milliseconds(255));
    } else {
      EXPECT_GT(waits.back(), seconds(5)) << "a parent that is of no use is tried ever more rarely";
    }
  }
}

// 90 edges of a site over three aggregators, of which one dies.
TEST_F(UplinkCoreTest, ManyEdgesSpreadOverAGroupAndMoveWithoutAHerd) {
  struct Edge {
    std::unique_ptr<UplinkCore> core;
    UplinkCore::Attempt attempt{};
    std::string parent;
  };
  std::vector<Edge> edges(90);
  std::map<std::string, int> children;
  for (std::size_t i = 0; i < edges.size(); ++i) {
    UplinkSettings s = settings({{"agg-1", "agg-2", "agg-3"}, {"cloud"}});
    s.node = fmt::format("edge-{}", i);
    edges[i].core = std::make_unique<UplinkCore>(s, random);
    edges[i].core->start(now);
    const auto connect = dialed(*edges[i].core);
    edges[i].attempt = connect.attempt;
    edges[i].parent = connect.to.node;
    welcome(*edges[i].core, connect.attempt);
    edges[i].core->take_actions();
    ++children[connect.to.node];
  }
  ASSERT_EQ(children.size(), 3U);
  for (const auto& [name, n] : children) {
    EXPECT_GE(n, 18) << name;
    EXPECT_LE(n, 42) << name;
  }
  const base::SteadyTime died = now;
  std::map<std::string, int> taken_over;
  std::map<std::int64_t, int> per_10_ms;
  std::set<std::size_t> moving;
  for (std::size_t i = 0; i < edges.size(); ++i) {
    if (edges[i].parent != "agg-1") continue;
    moving.insert(i);
    edges[i].core->closed(now, edges[i].attempt, absl::UnavailableError("killed"));
  }
  const std::size_t orphans = moving.size();
  while (!moving.empty() && now - died < seconds(2)) {
    for (const std::size_t i : std::set(moving)) {
      edges[i].core->tick(now);
      for (const auto& connect : take<UplinkCore::Connect>(*edges[i].core)) {
        if (connect.to.node == "agg-1") {  // by chance its pause was over first
          edges[i].core->closed(now, connect.attempt, absl::UnavailableError("killed"));
          continue;
        }
        ++taken_over[connect.to.node];
        ++per_10_ms[(now - died) / milliseconds(10)];
        edges[i].attempt = connect.attempt;
        welcome(*edges[i].core, connect.attempt);
        moving.erase(i);
      }
    }
    now += milliseconds(1);
  }
  EXPECT_TRUE(moving.empty());
  EXPECT_LE(now - died, milliseconds(210)) << "backoff_min";
  EXPECT_EQ(taken_over.size(), 2U) << "all go to the others of the group";
  for (const auto& [name, n] : taken_over) EXPECT_GE(n, static_cast<int>(orphans) / 5) << name;
  for (const auto& [at, n] : per_10_ms) EXPECT_LE(n, static_cast<int>(orphans) / 3) << at;
  EXPECT_GE(per_10_ms.size(), 8U);

  // It is back: they return over many seconds, and none loses its session by trying.
  const base::SteadyTime back = now;
  std::map<std::int64_t, int> per_second;
  while (now - back < seconds(60)) {
    now += milliseconds(100);
    for (Edge& edge : edges) {
      if (edge.parent != "agg-1" || edge.core->parent() == "agg-1") continue;
      edge.core->received(now, edge.attempt, Heartbeat{});
      edge.core->tick(now);
      for (const auto& connect : take<UplinkCore::Connect>(*edge.core)) {
        EXPECT_EQ(connect.to.node, "agg-1");
        EXPECT_TRUE(edge.core->up());
        ++per_second[(now - back) / seconds(1)];
        welcome(*edge.core, connect.attempt);
        edge.core->take_actions();
      }
    }
  }
  for (const Edge& edge : edges) EXPECT_EQ(edge.core->parent(), edge.parent);
  for (const auto& [at, n] : per_second) EXPECT_LE(n, static_cast<int>(orphans) / 3) << "second " << at;
  EXPECT_GE(per_second.size(), 6U);
}

TEST_F(UplinkCoreTest, AConnectThatHangsIsGivenUp) {
  UplinkCore core(settings({{"agg"}, {"cloud"}}), random);
  core.start(now);
  const auto connect = dialed(core);
  now += seconds(2);
  core.tick(now);
  const auto actions = core.take_actions();
  ASSERT_EQ(actions.size(), 2U);
  EXPECT_EQ(std::get<UplinkCore::Close>(actions[0]).attempt, connect.attempt);
  EXPECT_EQ(std::get<UplinkCore::Connect>(actions[1]).to.node, "cloud");
  // What the old attempt still says is not heard.
  core.received(now, connect.attempt, Welcome{});
  EXPECT_FALSE(core.up());
}

TEST_F(UplinkCoreTest, AnotherMajorIsAClearErrorAndALongPause) {
  UplinkCore core(settings({{"agg"}}), random);
  core.start(now);
  const auto connect = dialed(core);
  core.connected(connect.attempt);
  core.take_actions();
  core.received(now, connect.attempt, Rejected{"speaks protocol 9.0"});
  const auto actions = core.take_actions();
  ASSERT_EQ(actions.size(), 2U);
  EXPECT_TRUE(std::holds_alternative<UplinkCore::Close>(actions[0]));
  EXPECT_NE(std::get<UplinkCore::Trouble>(actions[1]).text.find("speaks protocol 9.0"), std::string::npos);
  now += seconds(44);
  core.tick(now);
  EXPECT_TRUE(core.take_actions().empty());
  now += seconds(31);
  core.tick(now);
  EXPECT_EQ(take<UplinkCore::Connect>(core).size(), 1U);
}

TEST_F(UplinkCoreTest, ReturnsToABetterParentOnlyWhenThatOneWelcomesIt) {
  UplinkCore core(settings({{"agg"}, {"cloud"}}), random);
  core.start(now);
  core.closed(now, dialed(core).attempt, absl::UnavailableError("down"));
  welcome(core, dialed(core).attempt);
  EXPECT_EQ(core.parent(), "cloud");
  core.take_actions();
  const auto session = UplinkCore::Attempt{2};
  std::vector<UplinkCore::Connect> tries;
  const auto wait_for_try = [&] {
    for (int i = 0; i < 500 && tries.empty(); ++i) {
      now += milliseconds(100);
      core.received(now, session, Heartbeat{});
      core.tick(now);
      tries = take<UplinkCore::Connect>(core);
    }
    ASSERT_EQ(tries.size(), 1U);
    EXPECT_EQ(tries[0].to.node, "agg");
    EXPECT_EQ(core.parent(), "cloud");
  };
  base::SteadyTime before = now;
  wait_for_try();
  EXPECT_GE(now - before, seconds(1));
  EXPECT_LE(now - before, seconds(10));
  core.closed(now, tries[0].attempt, absl::UnavailableError("still down"));
  tries.clear();
  before = now;
  wait_for_try();
  EXPECT_GE(now - before, seconds(22));  // 30 s, 25 % jitter
  core.closed(now, tries[0].attempt, absl::UnavailableError("still down"));
  EXPECT_EQ(core.parent(), "cloud");
  EXPECT_TRUE(take<UplinkCore::SessionDown>(core).empty());
  tries.clear();
  wait_for_try();
  welcome(core, tries[0].attempt);
  EXPECT_EQ(core.parent(), "agg");
  const auto actions = core.take_actions();
  ASSERT_EQ(actions.size(), 4U);  // Hello, then the old session ends before the new one begins
  EXPECT_TRUE(std::holds_alternative<UplinkCore::SessionDown>(actions[1]));
  EXPECT_EQ(std::get<UplinkCore::Close>(actions[2]).attempt, session);
  EXPECT_EQ(std::get<UplinkCore::SessionUp>(actions[3]).parent, "agg");
}

TEST_F(UplinkCoreTest, ChildrenSpreadOverAGroupAndOnlyThoseOfADeadMemberMove) {
  std::map<std::string, int> children;
  for (int i = 0; i < 300; ++i) {
    UplinkSettings all = settings({{"agg-1", "agg-2", "agg-3"}, {"cloud"}});
    all.node = fmt::format("edge-{}", i);
    const UplinkCore core(all, random);
    ++children[core.preference()[0].node];
    EXPECT_EQ(core.preference()[3].node, "cloud");
    UplinkSettings without = settings({{"agg-1", "agg-3"}});
    without.node = all.node;
    const UplinkCore fewer(without, random);
    if (core.preference()[0].node != "agg-2") {
      EXPECT_EQ(fewer.preference()[0].node, core.preference()[0].node);
    }
  }
  // Binomial(300, 1/3): mean 100, standard deviation 8.2.
  for (const char* name : {"agg-1", "agg-2", "agg-3"}) EXPECT_NEAR(children[name], 100, 35) << name;
}

TEST_F(UplinkCoreTest, SendsHeartbeatsAtTheShorterInterval) {
  UplinkCore core(settings({{"agg"}}), random);
  core.start(now);
  const auto connect = dialed(core);
  core.connected(connect.attempt);
  Welcome w;
  w.heartbeat_ms = 100;
  core.received(now, connect.attempt, w);
  core.take_actions();
  int beats = 0;
  for (int i = 0; i < 100; ++i) {
    now += milliseconds(10);
    core.received(now, connect.attempt, Heartbeat{});
    core.tick(now);
    beats += static_cast<int>(take<UplinkCore::Send>(core).size());
  }
  EXPECT_EQ(beats, 10);
}

TEST_F(UplinkCoreTest, ReconnectsOnDemandWithoutBackoff) {
  UplinkCore core(settings({{"agg"}, {"cloud"}}), random);
  core.start(now);
  welcome(core, dialed(core).attempt);
  core.take_actions();
  core.reconnect(now, "a new dictionary");
  const auto actions = core.take_actions();
  ASSERT_EQ(actions.size(), 3U);
  EXPECT_EQ(std::get<UplinkCore::SessionDown>(actions[0]).reason, "a new dictionary");
  EXPECT_EQ(std::get<UplinkCore::Close>(actions[1]).attempt, UplinkCore::Attempt{1});
  EXPECT_EQ(std::get<UplinkCore::Connect>(actions[2]).to.node, "agg");
}

TEST_F(UplinkCoreTest, StopClosesEverything) {
  UplinkCore core(settings({{"agg"}}), random);
  core.start(now);
  welcome(core, dialed(core).attempt);
  core.take_actions();
  core.stop();
  EXPECT_EQ(take<UplinkCore::Close>(core).size(), 1U);
  core.send(Heartbeat{});
  now += seconds(100);
  core.tick(now);
  EXPECT_TRUE(core.take_actions().empty());
}

}  // namespace
}  // namespace orla::link
