// The real edge role with a push input, on a simulated clock and disk, without a parent: when senders are answered,
// what a full disk does, and what a wrong clock does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>

#include "base/version.h"
#include "model/fleet_file.h"
#include "node/edge_role.h"
#include "sim/event_queue.h"
#include "sim/fake_clock.h"
#include "sim/fake_edge_store.h"
#include "sim/fake_loop.h"
#include "sim/fake_network.h"
#include "sim/script.h"

namespace orla::sim {
namespace {

using namespace std::chrono_literals;
using Kind = node::PushOutcome::Kind;

constexpr std::string_view kFleet = R"(
[fleet]
name = "pushed"
[[node]]
name = "edge"
layer = "edge"
parents = "cloud"
[[node]]
name = "cloud"
layer = "cloud"
listen = "127.0.0.1:0"
[[metric]]
name = "m"
[[input]]
node = "edge"
kind = "push"
[[rollup]]
name = "values"
metric = "m"
by = ["host"]
windows = ["1m"]
[limits]
push_timeout_ms = 3000
)";

class PushedEdge : public ::testing::Test {
 protected:
  explicit PushedEdge(const std::string& more = "") {
    const model::ParsedFleet parsed =
        model::parse_fleet(std::string(kFleet) + more, "fleet.toml", [](std::string_view) { return std::nullopt; });
    EXPECT_TRUE(parsed.fleet) << to_string(parsed.errors);
    plan_ = model::make_plan(*parsed.fleet);
    // Ten days after this program was built.
    clock_.skew = base::BuildTime() + 240h - clock_.wall_now();
    start();
  }
  ~PushedEdge() override { stop(); }

  void start() {
    loop_ = std::make_unique<FakeLoop>(queue_, [] { FAIL() << "nothing kills it here"; });
    up_ = std::make_unique<FakeUplink>(network_, *loop_, link_, "edge");
    store_ = std::make_unique<FakeEdgeStore>(kept_, disk_);
    pump_ = std::make_unique<FakeInputPump>(*loop_, random_, scripts_, Bug::kNone);
    role_ = std::make_unique<node::EdgeRole>(plan_, plan_.fleet.nodes[0], node::World{*loop_, clock_, random_, log_},
                                             store_.get(), *up_, *pump_);
    if (raw_encoder_) role_->encode_raw_with(raw_encoder_);
    EXPECT_TRUE(role_->start().ok());
  }
  void stop() {  // as SIGKILL
    loop_.reset();
    role_.reset();
    pump_.reset();
    up_.reset();
  }
  void pass(std::chrono::nanoseconds time) {
    bool over = false;
    queue_.after(time, [&over] { over = true; });
    while (!over) ASSERT_TRUE(queue_.step());
  }
  // One sample of the host, at its own time.
  void push(const std::string& name, const std::string& host, model::Time time, const std::string& producer = "",
            std::uint64_t sequence = 0) {
    node::Push push;
    push.batch.new_series = {};
    push.series = series_;
    const auto number = series_->number({"m", {{"host", host}}});
    push.batch.samples.runs = {{*number, 0, 1}};
    push.batch.samples.times = {time};
    push.batch.samples.values = {1};
    push.batch.received = 1;
    push.batch.position = {10, 1};
    push.batch.producer = producer;
    push.batch.producer_sequence = sequence;
    push.bytes = 10;
    role_->push(std::move(push), [this, name](const node::PushOutcome& outcome) {
      EXPECT_FALSE(told_.contains(name)) << name << " was told twice";
      told_[name] = outcome;
    });
  }
  bool told(const std::string& name) const { return told_.contains(name); }
  Kind kind(const std::string& name) const { return told(name) ? told_.at(name).kind : Kind::kTooMuch; }
  node::NodeStatus status() const {
    node::NodeStatus status;
    role_->fill(status);
    return status;
  }
  model::Ledger ledger() const { return status().inputs.at(0).ledger; }
  model::Time now() const { return clock_.wall_now(); }

  EventQueue queue_;
  base::SeededRandom random_{7};
  base::SilentLogger log_;
  FakeNetwork network_{queue_, random_};
  Link link_;
  FakeClock clock_{queue_};
  FakeDisk disk_{random_};
  EdgeDisk kept_;
  std::map<std::string, Script> scripts_;
  model::Plan plan_;
  std::shared_ptr<ingest::SeriesTable> series_ = std::make_shared<ingest::SeriesTable>();
  std::map<std::string, node::PushOutcome> told_;
  std::unique_ptr<FakeLoop> loop_;
  std::unique_ptr<FakeUplink> up_;
  std::unique_ptr<FakeEdgeStore> store_;
  std::unique_ptr<FakeInputPump> pump_;
  std::unique_ptr<node::EdgeRole> role_;
  node::EdgeRole::RawEncoder raw_encoder_;  // of the next start; none: the role's own
};

class RawPushedEdge : public PushedEdge {
 protected:
  RawPushedEdge()
      : PushedEdge(
            "[[rollup]]\nname = \"raw\"\nmetric = \"m\"\nby = [\"host\"]\nkeep = \"raw\"\nwindows = [\"1m\"]\n") {}
};

TEST_F(RawPushedEdge, NothingIsCommittedOfWhatCannotBeEncoded) {
  push("first", "x", now(), "p", 1);
  pass(25ms);
  ASSERT_EQ(kind("first"), Kind::kKept);
  stop();
  raw_encoder_ = [](const model::Batch&, std::string&) { return absl::InvalidArgumentError("simulated"); };
  start();
  const std::uint64_t writes = disk_.counters.writes;
  push("second", "x", now(), "p", 2);
  pass(25ms);
  EXPECT_NE(kind("second"), Kind::kKept);
  push("third", "x", now(), "p", 3);
  EXPECT_EQ(kind("third"), Kind::kBusy);
  pass(10s);
  EXPECT_EQ(disk_.counters.writes, writes) << "nothing was committed";
  EXPECT_FALSE(status().drained);
  EXPECT_NE(status().ready, "");
  ASSERT_EQ(status().alarms.size(), 1u);
  EXPECT_THAT(status().alarms[0], testing::HasSubstr("simulated"));
  // The next start has what was committed, and takes the rest when it comes again.
  stop();
  raw_encoder_ = nullptr;
  start();
  EXPECT_EQ(ledger().aggregated, 1u);
  push("second again", "x", now(), "p", 2);
  pass(25ms);
  EXPECT_EQ(kind("second again"), Kind::kKept);
  EXPECT_EQ(ledger().aggregated, 2u);
}

TEST_F(PushedEdge, ASenderIsAnsweredWhenTheCommitIsOnDisk) {
  pass(1s);
  const std::uint64_t writes = disk_.counters.writes;
  push("a", "x", now());
  push("b", "y", now());
  EXPECT_FALSE(told("a"));
  pass(25ms);  // push_commit_ms is 20
  EXPECT_EQ(kind("a"), Kind::kKept);
  EXPECT_EQ(kind("b"), Kind::kKept);
  EXPECT_EQ(disk_.counters.writes, writes + 1) << "they share a commit";
  stop();
  start();
  EXPECT_EQ(ledger().aggregated, 2u);
  EXPECT_EQ(status().inputs[0].position, (model::Position{20, 2}));
}

TEST_F(PushedEdge, AFullDiskPushesBackAndNothingCountsTwice) {
  push("first", "x", now(), "p", 1);
  pass(25ms);
  ASSERT_EQ(kind("first"), Kind::kKept);
  disk_.full = true;
  push("second", "x", now(), "p", 2);
  pass(25ms);
  EXPECT_FALSE(told("second"));
  // Once the disk is known to fail nothing more is taken.
  push("third", "x", now(), "p", 3);
  EXPECT_EQ(kind("third"), Kind::kBusy);
  pass(3s);
  EXPECT_EQ(kind("second"), Kind::kUnknown);
  disk_.full = false;
  pass(500ms);  // commits are tried again
  push("second again", "x", now(), "p", 2);
  EXPECT_EQ(kind("second again"), Kind::kDuplicate);
  push("third again", "x", now(), "p", 3);
  pass(25ms);
  EXPECT_EQ(kind("third again"), Kind::kKept);
  EXPECT_EQ(ledger().received, 3u);
  EXPECT_EQ(ledger().aggregated, 3u);
  // And after a crash in between: it was never durable, so it counts now.
  disk_.full = true;
  push("fourth", "x", now(), "p", 4);
  pass(25ms);
  stop();
  EXPECT_EQ(kind("fourth"), Kind::kUnknown);
  disk_.full = false;
  start();
  push("fourth again", "x", now(), "p", 4);
  pass(25ms);
  EXPECT_EQ(kind("fourth again"), Kind::kKept);
  EXPECT_EQ(ledger().aggregated, 4u);
  push("third once more", "x", now(), "p", 3);
  EXPECT_EQ(kind("third once more"), Kind::kDuplicate);
}

TEST_F(PushedEdge, ARunThatEndsAnswersEverybody) {
  push("a", "x", now());
  role_->stop_inputs();  // commits
  EXPECT_EQ(kind("a"), Kind::kKept);
  push("b", "x", now());
  EXPECT_EQ(kind("b"), Kind::kBusy);
  EXPECT_FALSE(status().inputs[0].ended);
  EXPECT_TRUE(status().inputs[0].stopped);
}

// Senders of right times, one sample of each of two hosts a second, while the edge's clock is wrong for a minute. What
// is published meanwhile must not get ahead of the samples, and afterwards all is as it was.
TEST_F(PushedEdge, AWrongClockHarmsNobodyWhoseTimesAreRight) {
  for (const std::chrono::nanoseconds wrong :
       {std::chrono::nanoseconds(24h), std::chrono::nanoseconds(-1h), -(now() - model::from_ns(0))}) {
    const std::chrono::nanoseconds right = clock_.skew;
    const model::Ledger before = ledger();
    std::uint64_t sent = 0;
    for (int second = 0; second < 180; ++second) {
      if (second == 60) clock_.skew = right + wrong;
      if (second == 120) clock_.skew = right;
      pass(1s);
      const model::Time true_time = now() + right - clock_.skew;
      for (const char* host : {"x", "y"})
        push(std::to_string(wrong.count()) + host + std::to_string(second), host, true_time);
      sent += 2;
    }
    const model::Ledger after = ledger();
    EXPECT_EQ(after.received - before.received, sent);
    EXPECT_EQ(after.late.count, 0u);
    EXPECT_EQ(after.unaccounted(), 0);
    if (wrong == -1h) {
      EXPECT_EQ(after.rejected, (model::ReasonCounts{{"future", 120}}));
      EXPECT_EQ(after.aggregated - before.aggregated, sent - 120);
    } else {
      EXPECT_EQ(after.rejected, before.rejected);
      EXPECT_EQ(after.aggregated - before.aggregated, sent);
    }
    EXPECT_TRUE(status().push->clock_set);
  }
  // Whoever pushed was told, and so was how many were of the future.
  EXPECT_EQ(told_.at(std::to_string(std::chrono::nanoseconds(-1h).count()) + "x90").rejected, 1u);
}

TEST_F(PushedEdge, SaysThatItsClockWasNeverSet) {
  clock_.skew -= now() - model::from_ns(0);
  pass(1s);
  EXPECT_FALSE(status().push->clock_set);
  EXPECT_TRUE(status().ready.empty());
  push("a", "x", base::BuildTime() + 24h * 365);  // nothing is `future`
  pass(25ms);
  EXPECT_EQ(kind("a"), Kind::kKept);
  EXPECT_EQ(ledger().aggregated, 1u);
}

// An idle series does not hold the others' publication, by the edge's clock; and by that only as far as samples have
// come.
TEST_F(PushedEdge, IdleSeriesDoNotHoldPublication) {
  push("idle", "idle", now());
  for (int k = 0; k < 900; ++k) {
    pass(1s);
    push("x" + std::to_string(k), "x", now());
  }
  // idle_after is 5 min; slices of the last minutes are still open, those before are chunks.
  EXPECT_GT(status().outbox->last, 5u);
  EXPECT_EQ(ledger().late.count, 0u);
}

}  // namespace
}  // namespace orla::sim
