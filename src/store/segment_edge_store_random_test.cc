// Random use, crashes and damage of an edge's store, compared with a plain model in memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/faulty_disk.h"
#include "store/edge_for_tests.h"
#include "store/segment_edge_store.h"

namespace orla::store {
namespace {

// What a perfect store would hold.
struct Model {
  EdgeMeta meta;
  std::vector<std::string> states;
  std::map<model::Sequence, StoredChunk> chunks;  // of the epoch, acknowledged ones included
  bool begun = false;

  void apply(const EdgeCommit& commit) {
    begun = true;
    const model::Sequence acknowledged = meta.acknowledged;
    meta = commit.meta;
    meta.acknowledged = std::max(acknowledged, commit.meta.acknowledged);
    if (commit.entry.snapshot) states.clear();
    states.push_back(commit.entry.state);
    for (const StoredChunk& chunk : commit.chunks) chunks[chunk.range.first] = chunk;
    for (const model::Tombstone& t : commit.tombstones) {
      for (model::Sequence s = t.first; s <= t.last; ++s) chunks[s] = tombstone_for_tests(chunks[s], t.reason);
    }
  }
  void renumber(const EdgeMeta& to, const std::vector<StoredChunk>& outbox) {
    meta = to;
    chunks.clear();
    for (const StoredChunk& chunk : outbox) chunks[chunk.range.first] = chunk;
  }
};

bool same_meta(const EdgeMeta& a, const EdgeMeta& b) {
  return a.node == b.node && a.epoch == b.epoch && a.next_sequence == b.next_sequence && a.chain == b.chain;
}

bool is_tombstone(const StoredChunk& chunk) { return !chunk.range.note.tombstones.empty(); }

class World {
 public:
  World(std::uint64_t seed, FsyncMode fsync) : random_(seed), disk_(random_) {
    options_.fsync = fsync;
    options_.fsync_delay = std::chrono::milliseconds(50);
    options_.segment_bytes = 500 + random_.below(4000);
    options_.reserve_bytes = 1000;
    start();
  }

  void start() {
    store_ = std::make_unique<SegmentEdgeStore>(disk_, clock_, format_for_tests(), options_);
    absl::StatusOr<EdgeRecovery> recovery = store_->recover({});
    ASSERT_TRUE(recovery.ok()) << recovery.status();
    recovery_ = *std::move(recovery);
  }

  // The recovered state is this model's; trims may be forgotten.
  std::string differs(const Model& model) {
    const EdgeMeta& meta = recovery_.meta;
    if (!model.begun) return meta.epoch == model::Epoch{} ? "" : "something is there";
    if (!same_meta(meta, model.meta)) {
      return "another meta: next " + std::to_string(meta.next_sequence) + " instead of " +
             std::to_string(model.meta.next_sequence) + ", epoch " +
             std::to_string(static_cast<std::uint64_t>(meta.epoch)) + " instead of " +
             std::to_string(static_cast<std::uint64_t>(model.meta.epoch)) + ", chain " +
             std::to_string(meta.chain.low) + " instead of " + std::to_string(model.meta.chain.low);
    }
    if (meta.acknowledged > model.meta.acknowledged) return "acknowledged what was not";
    if (recovery_.journal != model.states) {
      std::string text = "another journal:";
      for (const std::string& state : recovery_.journal) text += " " + state.substr(0, state.find('x'));
      text += " instead of";
      for (const std::string& state : model.states) text += " " + state.substr(0, state.find('x'));
      return text;
    }
    if (recovery_.outbox.size() != meta.next_sequence - 1 - meta.acknowledged) return "another size of the outbox";
    model::Sequence expected = meta.acknowledged;
    for (const OutboxEntry& entry : recovery_.outbox) {
      if (entry.sequence != ++expected) return "another number";
      const StoredChunk& chunk = model.chunks.at(entry.sequence);
      if (entry.lost) return "a lost chunk";
      if (entry.tombstone != is_tombstone(chunk)) return "a chunk and a tombstone";
      absl::StatusOr<StoredChunk> loaded = store_->load(entry.sequence);
      if (!loaded.ok()) return loaded.status().ToString();
      if (!(*loaded == chunk)) return "another chunk";
    }
    return "";
  }

  void adopt_recovered() {
    model_.meta = recovery_.meta;
    model_.states = recovery_.journal;
    model_.begun = recovery_.meta.epoch != model::Epoch{};
    std::map<model::Sequence, StoredChunk> chunks;
    for (const OutboxEntry& entry : recovery_.outbox) chunks[entry.sequence] = store_->load(entry.sequence).value();
    model_.chunks = std::move(chunks);
    maybe_.clear();
  }

  EdgeCommit random_commit() {
    EdgeCommit commit;
    const model::Epoch epoch = model_.begun ? model_.meta.epoch : kEpochForTests;
    commit.entry.snapshot = !model_.begun || random_.below(10) == 0;
    commit.entry.state = "s" + std::to_string(++states_) + std::string(random_.below(200), 'x');
    model::Sequence next = model_.begun ? model_.meta.next_sequence : 1;
    for (std::uint64_t n = random_.below(3); n > 0; --n) {
      commit.chunks.push_back(chunk_for_tests(next++, random_.below(600), epoch));
      commit.chunks.back().rows += "#" + std::to_string(states_);  // another try is another chunk
    }
    if (model_.begun && random_.below(8) == 0 && model_.meta.next_sequence > model_.meta.acknowledged + 1) {
      const model::Sequence first =
          model_.meta.acknowledged + 1 + random_.below(model_.meta.next_sequence - 1 - model_.meta.acknowledged);
      const model::Sequence last = std::min(model_.meta.next_sequence - 1, first + random_.below(3));
      commit.tombstones.push_back({first, last, "outbox_full", {}, {}, {}});
      if (first == last) commit.tombstones[0] = tombstone_of(first, "outbox_full", model_.chunks[first].facts);
    }
    commit.meta = meta_for_tests(next, model_.meta.acknowledged, epoch);
    commit.meta.chain.low = states_;
    return commit;
  }

  void step() {
    const std::uint64_t what = random_.below(20);
    if (what < 11) {
      const EdgeCommit commit = random_commit();
      Model after = model_;
      after.apply(commit);
      settle(store_->commit(commit), std::move(after));
    } else if (what < 14 && model_.begun) {
      const model::Sequence through = model_.meta.acknowledged + random_.below(4);
      if (through >= model_.meta.next_sequence) return;
      store_->trim(through).IgnoreError();
      model_.meta.acknowledged = std::max(model_.meta.acknowledged, through);
    } else if (what == 14 && model_.begun) {
      EdgeMeta meta = model_.meta;
      meta.epoch = model::Epoch(++epochs_ + 100);
      meta.acknowledged = 0;
      meta.next_sequence = 1;
      std::vector<StoredChunk> outbox;
      for (auto at = model_.chunks.upper_bound(model_.meta.acknowledged); at != model_.chunks.end(); ++at) {
        StoredChunk chunk = at->second;
        chunk.range.epoch = meta.epoch;
        chunk.range.first = chunk.range.last = meta.next_sequence++;
        chunk.range.chain_before = {chunk.range.first, 1};
        chunk.range.chain_after = {chunk.range.first + 1, 1};
        if (is_tombstone(chunk))
          chunk.range.note.tombstones[0].first = chunk.range.note.tombstones[0].last = chunk.range.first;
        outbox.push_back(std::move(chunk));
      }
      meta.chain.high = meta.next_sequence;
      Model after = model_;
      after.renumber(meta, outbox);
      settle(store_->renumber(meta, outbox), std::move(after));
    } else if (what == 15) {
      clock_.now += std::chrono::milliseconds(random_.below(60));
      store_->maintain().IgnoreError();
    } else if (model_.begun && model_.meta.next_sequence > model_.meta.acknowledged + 1) {
      const model::Sequence s =
          model_.meta.acknowledged + 1 + random_.below(model_.meta.next_sequence - 1 - model_.meta.acknowledged);
      const absl::StatusOr<StoredChunk> loaded = store_->load(s);
      if (loaded.ok()) {
        EXPECT_EQ(*loaded, model_.chunks.at(s));
      } else {
        EXPECT_EQ(loaded.status().code(), absl::StatusCode::kUnavailable) << loaded.status();
      }
    }
  }

  // A failed change did not happen, unless the process dies before another one: then nobody can tell.
  void settle(const absl::Status& status, Model after) {
    if (status.ok()) {
      model_ = std::move(after);
      maybe_.clear();
      ++done_;
    } else {
      maybe_.push_back(std::move(after));
      ++failed_;
    }
  }

  void break_something() {
    disk_.odds = {};
    disk_.capacity = base::FaultyDisk::kNoLimit;
    switch (random_.below(6)) {
      case 0:
        disk_.odds.sync = 4;
        break;
      case 1:
        disk_.odds.append = 4;
        disk_.odds.open = 8;
        break;
      case 2:
        disk_.capacity = disk_.used() + random_.below(1500);
        break;
      case 3:
        disk_.odds = {.append = 8, .sync = 8, .open = 8, .remove = 4, .sync_names = 4, .read = 8};
        break;
      default:
        break;
    }
  }

  enum class Death { kProcess, kPower };
  void die(Death death) {
    // In the middle of something, mostly.
    if (random_.below(3) > 0) {
      std::uint64_t steps = random_.below(12);
      disk_.hook = [&steps](const base::FaultyDisk::Step&) {
        return steps > 0 ? --steps, absl::OkStatus() : absl::UnavailableError("dead");
      };
      step();
      disk_.hook = nullptr;
    }
    store_.reset();
    disk_.odds = {};
    disk_.capacity = base::FaultyDisk::kNoLimit;
    death == Death::kPower ? disk_.power_loss() : disk_.crash();
    start();
  }

  base::SeededRandom random_;
  base::FaultyDisk disk_;
  ClockForTests clock_;
  EdgeStoreOptions options_;
  std::unique_ptr<SegmentEdgeStore> store_;
  EdgeRecovery recovery_;
  Model model_;
  std::vector<Model> maybe_;  // changes that failed since the last one that did not
  std::uint64_t states_ = 0;
  std::uint64_t epochs_ = 0;
  std::uint64_t done_ = 0;
  std::uint64_t failed_ = 0;
};

constexpr std::uint64_t kSeeds = 60;

TEST(SegmentEdgeStoreRandom, WhatReturnedIsThereAndWhatFailedIsNot) {
  std::uint64_t done = 0;
  std::uint64_t failed = 0;
  std::uint64_t happened_after_all = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    World world(seed, seed % 3 == 0 ? FsyncMode::kDelayed : FsyncMode::kOn);
    for (int life = 0; life < 6 && !testing::Test::HasFailure(); ++life) {
      for (std::uint64_t n = world.random_.below(25); n > 0; --n) {
        if (world.random_.below(5) == 0) world.break_something();
        world.step();
      }
      // Power loss is survived when commits are synced.
      const bool power = world.options_.fsync == FsyncMode::kOn && world.random_.below(2) == 0;
      world.die(power ? World::Death::kPower : World::Death::kProcess);
      std::string differs = world.differs(world.model_);
      for (const Model& maybe : world.maybe_) {
        if (differs.empty()) break;
        differs = world.differs(maybe);
        ++happened_after_all;
      }
      ASSERT_EQ(differs, "") << "seed " << seed << " life " << life;
      ASSERT_TRUE(world.recovery_.damage.empty())
          << "seed " << seed << ": " << world.recovery_.damage[0].file << " " << world.recovery_.damage[0].what;
      ASSERT_FALSE(world.recovery_.reopen || world.recovery_.without_journal);
      world.adopt_recovered();
    }
    done += world.done_;
    failed += world.failed_;
  }
  EXPECT_GT(done, kSeeds * 20);
  EXPECT_GT(failed, kSeeds);
  EXPECT_GT(happened_after_all, 0U);
}

TEST(SegmentEdgeStoreRandom, WithoutFsyncPowerLossTakesTheEndAndSaysSo) {
  for (std::uint64_t seed = 1; seed <= kSeeds && !testing::Test::HasFailure(); ++seed) {
    World world(seed, seed % 2 == 0 ? FsyncMode::kDelayed : FsyncMode::kOff);
    std::vector<Model> past = {world.model_};
    for (int i = 0; i < 30; ++i) {
      world.step();
      past.push_back(world.model_);
    }
    world.die(World::Death::kPower);
    if (!world.model_.begun) continue;
    past.insert(past.end(), world.maybe_.begin(), world.maybe_.end());
    past.push_back(world.model_);
    EXPECT_TRUE(world.recovery_.reopen || world.recovery_.meta.epoch == model::Epoch{}) << "seed " << seed;
    if (world.recovery_.without_journal || world.recovery_.journal.empty()) continue;
    // The state is one that was, whatever became of rows.
    const bool was =
        std::any_of(past.begin(), past.end(), [&](const Model& m) { return m.states == world.recovery_.journal; });
    EXPECT_TRUE(was) << "seed " << seed;
  }
}

// A store without faults, ended by a crash, then damaged.
class DamagedWorld : public World {
 public:
  explicit DamagedWorld(std::uint64_t seed) : World(seed, FsyncMode::kOn) {
    while (!model_.begun || states_ < 25) step();
    store_.reset();
    disk_.crash();
  }
  std::vector<std::string> files(const std::string& prefix, const std::string& end) {
    std::vector<std::string> out;
    for (const auto& [name, bytes] : disk_.contents()) {
      if (name.starts_with(prefix) && name.ends_with(end) && !bytes.empty()) out.push_back(name);
    }
    return out;
  }
  std::string one_of(const std::vector<std::string>& names) { return names[random_.below(names.size())]; }
  enum class Kind { kFlip, kCut, kErase };
  void damage(const std::string& name, Kind kind) {
    const std::uint64_t bytes = disk_.contents().at(name).size();
    if (kind == Kind::kFlip) disk_.flip_bit(name, random_.below(bytes * 8));
    if (kind == Kind::kCut) disk_.cut(name, random_.below(bytes));
    if (kind == Kind::kErase) disk_.erase(name);
  }
  // Kept chunks are all there, as they were or as tombstones of what they were; how many are lost.
  std::uint64_t count_lost(std::uint64_t seed) {
    std::uint64_t lost = 0;
    std::set<model::Sequence> seen;
    for (const OutboxEntry& entry : recovery_.outbox) {
      seen.insert(entry.sequence);
      const absl::StatusOr<StoredChunk> loaded = store_->load(entry.sequence);
      EXPECT_TRUE(loaded.ok()) << loaded.status();
      const auto known = model_.chunks.find(entry.sequence);
      if (!loaded.ok() || known == model_.chunks.end()) {
        ADD_FAILURE() << "seed " << seed << ": chunk " << entry.sequence << " of nowhere";
      } else if (*loaded == known->second) {
        EXPECT_FALSE(entry.lost);
      } else if ((recovery_.reopen || recovery_.without_journal) && is_tombstone(known->second) &&
                 !is_tombstone(*loaded)) {
        // The change that made it a tombstone is lost, and its rows are not.
      } else {
        // What the cloud has may be told as lost, when it is not known that the cloud has it.
        lost += entry.sequence > model_.meta.acknowledged && !is_tombstone(known->second) ? 1 : 0;
        if (entry.sequence > model_.meta.acknowledged && !recovery_.reopen) {
          EXPECT_EQ(*loaded, tombstone_for_tests(known->second, "damaged")) << "seed " << seed;
        }
        EXPECT_TRUE(is_tombstone(*loaded) && loaded->rows.empty());
      }
    }
    for (model::Sequence s = model_.meta.acknowledged + 1; s < model_.meta.next_sequence; ++s) {
      EXPECT_TRUE(seen.contains(s) || recovery_.reopen) << "seed " << seed << ": chunk " << s << " has vanished";
    }
    return lost;
  }
};

TEST(SegmentEdgeStoreRandom, DamageOfOneJournalCopyCostsNothing) {
  for (std::uint64_t seed = 1; seed <= 3 * kSeeds && !testing::Test::HasFailure(); ++seed) {
    DamagedWorld world(seed);
    const std::string name = world.one_of(world.files("journal-", seed % 2 == 0 ? ".a" : ".b"));
    world.damage(name, static_cast<DamagedWorld::Kind>(seed % 3));
    if (seed % 5 == 0 && world.disk_.contents().contains(name) && !world.disk_.contents().at(name).empty()) {
      world.damage(name, DamagedWorld::Kind::kFlip);  // and once more
    }
    world.start();
    ASSERT_EQ(world.differs(world.model_), "") << "seed " << seed;
    ASSERT_FALSE(world.recovery_.reopen || world.recovery_.without_journal) << "seed " << seed;
    ASSERT_EQ(world.count_lost(seed), 0U);
    // What was damaged is whole again: the other copy may go now.
    world.store_.reset();
    world.disk_.crash();
    world.damage(world.one_of(world.files("journal-", seed % 2 == 0 ? ".b" : ".a")), DamagedWorld::Kind::kErase);
    world.start();
    ASSERT_EQ(world.differs(world.model_), "") << "seed " << seed;
  }
}

TEST(SegmentEdgeStoreRandom, DamageOfTheOutboxCostsThoseChunks) {
  std::uint64_t lost = 0;
  for (std::uint64_t seed = 1; seed <= 3 * kSeeds && !testing::Test::HasFailure(); ++seed) {
    DamagedWorld world(seed);
    const std::vector<std::string> files = world.files("outbox-", "");
    if (files.empty()) continue;
    const auto kind = static_cast<DamagedWorld::Kind>(seed % 3);
    world.damage(world.one_of(files), kind);
    world.start();
    ASSERT_EQ(world.recovery_.journal, world.model_.states) << "seed " << seed;
    ASSERT_TRUE(same_meta(world.recovery_.meta, world.model_.meta));
    ASSERT_FALSE(world.recovery_.reopen || world.recovery_.without_journal) << "seed " << seed;
    const std::uint64_t now = world.count_lost(seed);
    EXPECT_TRUE(now <= 1 || kind != DamagedWorld::Kind::kFlip) << "seed " << seed;
    lost += now;
    // Tombstones of them, and it goes on as any other store.
    std::vector<model::Tombstone> tombstones = world.store_->lost();
    for (const OutboxEntry& entry : world.recovery_.outbox) {
      if (entry.lost) tombstones.push_back(tombstone_of(entry.sequence, "damaged", entry.facts));
    }
    ASSERT_EQ(tombstones.size(), now) << "seed " << seed;
    EdgeCommit commit = world.random_commit();
    commit.tombstones = tombstones;
    ASSERT_TRUE(world.store_->commit(commit).ok());
    world.model_.apply(commit);
    world.store_.reset();
    world.disk_.crash();
    world.start();
    ASSERT_EQ(world.differs(world.model_), "") << "seed " << seed;
  }
  EXPECT_GT(lost, kSeeds);
}

TEST(SegmentEdgeStoreRandom, DamageOfBothJournalCopiesLeavesTheOutbox) {
  std::uint64_t without = 0;
  for (std::uint64_t seed = 1; seed <= 3 * kSeeds && !testing::Test::HasFailure(); ++seed) {
    DamagedWorld world(seed);
    for (const char* end : {".a", ".b"}) {
      for (const std::string& name : world.files("journal-", end)) {
        world.damage(name, static_cast<DamagedWorld::Kind>(seed % 3));
      }
    }
    world.start();
    const EdgeRecovery& recovery = world.recovery_;
    if (recovery.without_journal) {
      ++without;
      EXPECT_TRUE(recovery.journal.empty());
    } else if (recovery.meta.epoch != model::Epoch{} && recovery.journal != world.model_.states) {
      // Cut between two changes, or in the middle of the last one: as if they had not been. Only those can be missing
      // of which the outbox does not tell.
      EXPECT_LE(recovery.journal.size(), world.model_.states.size());
      EXPECT_TRUE(std::equal(recovery.journal.begin(), recovery.journal.end(), world.model_.states.begin()));
      EXPECT_LE(world.model_.meta.next_sequence, recovery.meta.next_sequence + 2) << "seed " << seed;
    }
    if (recovery.meta.epoch == world.model_.meta.epoch &&
        world.model_.meta.next_sequence == recovery.meta.next_sequence) {
      EXPECT_EQ(world.count_lost(seed), 0U) << "seed " << seed;
      EXPECT_EQ(recovery.meta.chain.high, world.model_.meta.chain.high);
    }
    // Whatever it says, it says it again.
    const EdgeRecovery before = recovery;
    world.store_.reset();
    world.disk_.crash();
    world.start();
    EXPECT_TRUE(same_meta(before.meta, world.recovery_.meta)) << "seed " << seed;
    EXPECT_EQ(before.journal, world.recovery_.journal);
    EXPECT_EQ(before.without_journal, world.recovery_.without_journal) << "seed " << seed;
    EXPECT_EQ(before.reopen, world.recovery_.reopen) << "seed " << seed;
    EXPECT_EQ(before.outbox.size(), world.recovery_.outbox.size());
  }
  EXPECT_GT(without, kSeeds);
}

}  // namespace
}  // namespace orla::store
