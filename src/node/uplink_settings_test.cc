#include "node/uplink_settings.h"

#include <gtest/gtest.h>

#include "link/uplink_core.h"
#include "model/settings.h"

namespace orla::node {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// With nothing set, a parent that dies without a word is noticed within 2 s, whenever its last heartbeat was.
TEST(UplinkSettings, ByDefaultASilentParentIsNoticedWithinTwoSeconds) {
  model::Fleet fleet;
  fleet.name = "f";
  fleet.limits = model::default_limits();
  fleet.nodes = {{.name = "agg",
                  .layer = model::Layer::kAggregator,
                  .site = "",
                  .listen = "127.0.0.1:1",
                  .http = "",
                  .parents = {},
                  .gateway = {}},
                 {.name = "edge",
                  .layer = model::Layer::kEdge,
                  .site = "",
                  .listen = "",
                  .http = "",
                  .parents = {{"agg"}},
                  .gateway = {}}};
  base::SeededRandom random(1);
  const link::UplinkSettings settings = uplink_settings(fleet, fleet.nodes[1]);
  constexpr milliseconds kTick{20};  // of an edge
  for (int last = 0; last <= 500; last += 50) {
    link::UplinkCore core(settings, random);
    base::SteadyTime now{seconds(100)};
    core.start(now);
    const link::UplinkCore::Attempt attempt{1};
    core.connected(attempt);
    link::Welcome welcome;
    welcome.heartbeat_ms = downlink_settings(fleet, fleet.nodes[0]).heartbeat / milliseconds(1);
    core.received(now, attempt, welcome);
    for (int i = 0; i < 20; ++i) {
      now += settings.heartbeat;
      core.received(now, attempt, link::Heartbeat{});
      core.tick(now);
    }
    ASSERT_TRUE(core.up());
    const base::SteadyTime died = now + milliseconds(last);
    while (core.up() && now - died < seconds(10)) {
      now += kTick;
      core.tick(now);
    }
    EXPECT_LE(now - died, seconds(2) + kTick);
    EXPECT_GE(now - died, milliseconds(1400)) << "a heartbeat that is late is no death";
  }
}

}  // namespace
}  // namespace orla::node
