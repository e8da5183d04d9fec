#include "node/edge_disk.h"

#include <gtest/gtest.h>

#include <map>

#include "base/faulty_disk.h"
#include "base/random.h"
#include "model/settings.h"
#include "store/edge_for_tests.h"

namespace orla::node {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

class WithinFsync : public ::testing::TestWithParam<nanoseconds> {};

// Commits at random moments, looks at the store as often as an edge does: nothing written is older than `fsync` when it
// is synced.
TEST_P(WithinFsync, EveryCommitIsDurable) {
  model::Fleet fleet;
  fleet.limits = model::default_limits();
  model::NodeSpec& node = fleet.nodes.emplace_back();
  node.name = "edge-1";
  node.layer = model::Layer::kEdge;
  node.fsync_delay = GetParam();
  const model::Plan plan = model::make_plan(fleet);

  base::SeededRandom random(7);
  base::FaultyDisk disk(random);
  store::ClockForTests clock;
  // Since when a file has bytes that were not synced. The journal's second copy is for damage, not for a loss of power;
  // the reserve holds nothing.
  std::map<std::string, base::SteadyTime> dirty;
  nanoseconds oldest{0};
  int synced = 0;
  disk.hook = [&](const base::FaultyDisk::Step& step) {
    if (step.moment != base::FaultyDisk::Step::Moment::kAfter) return absl::OkStatus();
    if (step.name.ends_with(".b") || step.name == "reserve") return absl::OkStatus();
    if (step.kind == base::FaultyDisk::Step::Kind::kAppend) dirty.try_emplace(step.name, clock.now);
    if (step.kind == base::FaultyDisk::Step::Kind::kRemove) dirty.erase(step.name);
    if (step.kind == base::FaultyDisk::Step::Kind::kSync) {
      if (const auto found = dirty.find(step.name); found != dirty.end()) {
        oldest = std::max(oldest, clock.now - found->second);
        ++synced;
        dirty.erase(found);
      }
    }
    return absl::OkStatus();
  };
  store::SegmentEdgeStore edge(disk, clock, store::format_for_tests(), edge_options(plan, fleet.nodes[0]));
  ASSERT_TRUE(edge.recover({}).ok());
  model::Sequence next = 1;
  const nanoseconds period = maintain_period(fleet.nodes[0]);
  base::SteadyTime look = clock.now + period;
  const base::SteadyTime end = clock.now + std::max<nanoseconds>(seconds(2), 20 * GetParam());
  for (int n = 0; clock.now < end; ++n) {
    const base::SteadyTime at = clock.now + microseconds(random.below(30'000));
    for (; look <= at; look += period) {
      clock.now = look;
      ASSERT_TRUE(edge.maintain().ok());
    }
    clock.now = at;
    for (const auto& [name, since] : dirty) ASSERT_LE(clock.now - since, GetParam()) << name;
    store::EdgeCommit commit;
    commit.entry = {n == 0, std::string(100, 'x')};
    if (n % 3 == 0) {
      commit.chunks.push_back(store::chunk_for_tests(next, 1'000));
      ++next;
    }
    commit.meta = store::meta_for_tests(next);
    ASSERT_TRUE(edge.commit(commit).ok());
  }
  EXPECT_GT(synced, 20);
  EXPECT_LE(oldest, GetParam());
  // Not much more often than wanted either.
  EXPECT_GE(oldest, GetParam() / 2);
}

INSTANTIATE_TEST_SUITE_P(Of, WithinFsync,
                         ::testing::Values(nanoseconds(0), milliseconds(1), milliseconds(10), milliseconds(100),
                                           seconds(1)),
                         [](const auto& info) { return std::to_string(info.param.count() / 1'000'000) + "ms"; });

}  // namespace
}  // namespace orla::node
