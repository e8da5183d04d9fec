#include "store/sqlite_cloud_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.h"
#include "store/cloud_for_tests.h"
#include "store/cloud_reader.h"

namespace orla::store {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

class CloudStoreTest : public testing::Test {
 protected:
  std::unique_ptr<SqliteCloudStore> open(const model::Fleet& fleet = small_fleet(),
                                         CloudStoreOptions options = {Fsync::kOff, 0}) {
    absl::StatusOr<std::unique_ptr<SqliteCloudStore>> store =
        SqliteCloudStore::open(path(), model::make_plan(fleet), options);
    EXPECT_TRUE(store.ok()) << store.status();
    return store.ok() ? *std::move(store) : nullptr;
  }
  std::string path() const { return directory_.path().string(); }
  std::string file() const { return path() + "/" + kCloudFileName; }

  base::TemporaryDirectory directory_ = base::TemporaryDirectory::create("cloud-store").value();
};

OriginRow origin(std::string node, model::Sequence last) {
  OriginRow out;
  out.cursor = {std::move(node), model::Epoch(UINT64_MAX - 1), last, {UINT64_MAX, 5}};
  out.publications = {{"load", kNoon}, {"work", model::kMaxTime}};
  model::Ledger ledger;
  ledger.received = 100;
  ledger.aggregated = 90;
  ledger.unmatched = 1;
  ledger.late = {2, UINT64_MAX};
  ledger.rejected = {{"malformed", 3}, {"not_finite", 1}};
  ledger.rejected_set = {4, 77};
  ledger.dropped = {{"outbox_full", 2}};
  ledger.held = 1;
  out.ledgers = {{"edge-1/0", ledger}, {"edge-1/1", {}}};
  return out;
}

TEST_F(CloudStoreTest, AFreshStoreIsEmpty) {
  const CloudRecovery recovery = open()->recover().value();
  EXPECT_THAT(recovery.origins, IsEmpty());
  EXPECT_THAT(recovery.publication, IsEmpty());
  EXPECT_THAT(recovery.groups, IsEmpty());
  EXPECT_THAT(recovery.steps, IsEmpty());
  EXPECT_THAT(recovery.parked, IsEmpty());
}

TEST_F(CloudStoreTest, OriginsProgressAndStatesAreRecovered) {
  {
    const auto store = open(small_fleet(), {Fsync::kOn, 0});
    CloudCommit commit;
    commit.origins = {origin("edge-1", 5), origin("edge-2", 9)};
    commit.closed = {{"edge-1", model::Epoch(3), 17}};
    commit.states = {{"edge-1", {true, "a"}}, {"edge-1", {false, std::string("b\0", 2)}}, {"edge-2", {true, "x"}}};
    commit.publication = {{"plug", kNoon}, {"house", model::kMaxTime}};
    commit.anchors = {{"plug", kNoon - hours(12)}};
    commit.steps = {{"plug", 60'000'000'000, kNoon, kNoon + minutes(1)}};
    ASSERT_TRUE(store->commit(commit).ok());
    commit = {};
    commit.origins = {origin("edge-1", 6)};
    commit.origins[0].ledgers[0].second.rejected = {{"malformed", 4}};
    commit.states = {{"edge-2", {true, "y"}}};
    ASSERT_TRUE(store->commit(commit).ok());
  }
  const auto store = open();
  const CloudRecovery recovery = store->recover().value();
  ASSERT_EQ(recovery.origins.size(), 2u);
  const OriginRow& first = recovery.origins[0];
  EXPECT_EQ(first.cursor, (model::Cursor{"edge-1", model::Epoch(UINT64_MAX - 1), 6, {UINT64_MAX, 5}}));
  EXPECT_EQ(first.publications, origin("edge-1", 6).publications);
  EXPECT_THAT(first.ledgers[0].second.rejected, ElementsAre(Pair("malformed", 4)));
  EXPECT_EQ(recovery.origins[1].ledgers, origin("edge-2", 9).ledgers);
  ASSERT_EQ(recovery.closed.size(), 1u);
  EXPECT_EQ(recovery.closed[0].epoch, model::Epoch(3));
  EXPECT_EQ(recovery.closed[0].last, 17u);
  EXPECT_THAT(recovery.publication, testing::UnorderedElementsAre(Pair("plug", kNoon), Pair("house", model::kMaxTime)));
  EXPECT_THAT(recovery.anchors, ElementsAre(Pair("plug", kNoon - hours(12))));
  EXPECT_THAT(recovery.steps, ElementsAre(StepProgress{"plug", 60'000'000'000, kNoon, kNoon + minutes(1)}));
  EXPECT_THAT(store->load_states("edge-1").value(),
              ElementsAre(model::StateEntry{true, "a"}, model::StateEntry{false, std::string("b\0", 2)}));
  EXPECT_THAT(store->load_states("edge-2").value(), ElementsAre(model::StateEntry{true, "y"}));
  EXPECT_THAT(store->load_states("edge-3").value(), IsEmpty());
}

TEST_F(CloudStoreTest, TombstonesAndLossesAreRecovered) {
  const std::vector<model::Loss> losses = {{"damaged", 1, {{"edge-1/0", 7}}},
                                           {"drop_oldest", 300, {{"edge-1/0", UINT64_MAX}, {"edge-1/1", 2}}}};
  {
    const auto store = open();
    CloudCommit commit;
    commit.origins = {origin("edge-1", 5), origin("edge-2", 9)};
    commit.origins[0].cursor.tombstones = {{1, 1}, {3, 4}};
    commit.origins[0].losses = {{"damaged", 1, {{"edge-1/0", 7}}}};
    commit.closed = {{"edge-1", model::Epoch(3), 17, {{2, 9}}}};
    ASSERT_TRUE(store->commit(commit).ok());
    commit = {};
    commit.origins = {origin("edge-1", 8)};
    commit.origins[0].cursor.tombstones = {{1, 4}, {6, 8}};  // the oldest two became one
    commit.origins[0].losses = losses;
    ASSERT_TRUE(store->commit(commit).ok());
  }
  const CloudRecovery recovery = open()->recover().value();
  ASSERT_EQ(recovery.origins.size(), 2u);
  EXPECT_EQ(recovery.origins[0].cursor.tombstones, (std::vector<model::SequenceRange>{{1, 4}, {6, 8}}));
  EXPECT_EQ(recovery.origins[0].losses, losses);
  EXPECT_THAT(recovery.origins[1].cursor.tombstones, IsEmpty());
  EXPECT_THAT(recovery.origins[1].losses, IsEmpty());
  ASSERT_EQ(recovery.closed.size(), 1u);
  EXPECT_EQ(recovery.closed[0].tombstones, (std::vector<model::SequenceRange>{{2, 9}}));
  // A new epoch starts without any.
  {
    const auto store = open();
    CloudCommit commit;
    commit.origins = {origin("edge-1", 0)};
    commit.origins[0].cursor.epoch = model::Epoch(77);
    ASSERT_TRUE(store->commit(commit).ok());
  }
  EXPECT_THAT(open()->recover().value().origins[0].cursor.tombstones, IsEmpty());
}

// Takes away what version 3 added.
constexpr char kWithoutSketches[] =
    "DROP VIEW windows; CREATE VIEW windows AS SELECT 1;"
    "ALTER TABLE window_rows DROP COLUMN p50; ALTER TABLE window_rows DROP COLUMN p90;"
    "ALTER TABLE window_rows DROP COLUMN p99; ALTER TABLE window_rows DROP COLUMN p999;"
    "ALTER TABLE window_rows DROP COLUMN distinct_count; ALTER TABLE rollups DROP COLUMN quantiles;"
    "ALTER TABLE rollups DROP COLUMN distinct_labels;";

// ... and version 4.
constexpr char kWithoutSamples[] =
    "DROP TABLE sample_metrics; DROP TABLE sample_tail; DROP TABLE sample_blocks; DROP TABLE sample_series;";

TEST_F(CloudStoreTest, AFileOfVersion1IsBroughtUpToDate) {
  {
    const auto store = open();
    CloudCommit commit;
    commit.origins = {origin("edge-1", 5)};
    ASSERT_TRUE(store->commit(commit).ok());
  }
  {
    const std::unique_ptr<Database> database = Database::open(file(), OpenMode::kReadWrite).value();
    ASSERT_TRUE(database
                    ->execute("DROP TABLE tombstones; DROP TABLE lost_chunks; DROP TABLE lost_samples;" +
                              std::string(kWithoutSketches) + kWithoutSamples + "PRAGMA user_version=1")
                    .ok());
  }
  ASSERT_NE(open(), nullptr);
  {
    const std::unique_ptr<Database> database = Database::open(file(), OpenMode::kReadWrite).value();
    ASSERT_TRUE(database
                    ->execute(std::string(kWithoutSamples) +
                              "ALTER TABLE lost_chunks DROP COLUMN raw_samples; PRAGMA user_version=3")
                    .ok());
  }
  const auto store = open();
  ASSERT_NE(store, nullptr);
  EXPECT_EQ(store->recover().value().origins.at(0).cursor.last, 5u);
  CloudCommit commit;
  commit.origins = {origin("edge-1", 6)};
  commit.origins[0].cursor.tombstones = {{6, 6}};
  EXPECT_TRUE(store->commit(commit).ok());
}

// A file as version 2 left it: without the columns of sketches, and with its own views.
TEST_F(CloudStoreTest, AFileOfVersion2IsBroughtUpToDate) {
  CloudCommit commit;
  commit.windows = {merge_row(plug(0, 1), kNoon, {1, 2})};
  ASSERT_TRUE(open()->commit(commit).ok());
  {
    const std::unique_ptr<Database> database = Database::open(file(), OpenMode::kReadWrite).value();
    const absl::Status status =
        database->execute(std::string(kWithoutSketches) + kWithoutSamples +
                          "ALTER TABLE lost_chunks DROP COLUMN raw_samples; PRAGMA user_version=2");
    ASSERT_TRUE(status.ok()) << status;
  }
  const auto store = open();
  ASSERT_NE(store, nullptr);
  EXPECT_EQ(store->load_windows("plug", "1m", kNoon).value().at(0).state, commit.windows[0].state);
  WindowRow& row = commit.windows[0];
  row.state.sketches = model::Sketches({true, true});
  row.state.sketches.quantiles()->add(2);
  row.state.sketches.distinct()->add(77);
  row.shown = model::statistics(row.state, 3);
  ASSERT_TRUE(store->commit(commit).ok());
  EXPECT_EQ(store->load_windows("plug", "1m", kNoon).value().at(0).state, row.state);
  const std::unique_ptr<Database> database = Database::open(file(), OpenMode::kReadOnly).value();
  EXPECT_EQ(database->number("SELECT distinct_count FROM windows WHERE p50 = 2 AND p999 = 2").value(), 1);
}

TEST_F(CloudStoreTest, WindowsComeBackExactly) {
  CloudCommit commit;
  commit.windows = {merge_row(plug(0, 1), kNoon, {0.1, 0.2, 1e300, -1e300, 5e-324}),  // beyond decimals
                    merge_row(plug(0, 2), kNoon, {1, 2, 3}, 7), merge_row(plug(1, 1), kNoon, {-4.5}),
                    merge_row(plug(1, 1), kNoon + minutes(1), {8}), across_row(0, kNoon, {0.1, 1.0 / 3})};
  {
    const auto store = open();
    ASSERT_TRUE(store->commit(commit).ok());
  }
  const auto store = open();
  const std::vector<WindowRow> rows = store->load_windows("plug", "1m", kNoon).value();
  ASSERT_EQ(rows.size(), 3u);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i].labels, commit.windows[i].labels);
    EXPECT_EQ(rows[i].state, commit.windows[i].state);
    EXPECT_EQ(rows[i].revision, commit.windows[i].revision);
  }
  const std::vector<WindowRow> houses = store->load_windows("house", "1m", kNoon).value();
  ASSERT_EQ(houses.size(), 1u);
  EXPECT_EQ(houses[0].state, commit.windows[4].state);
  EXPECT_FALSE(houses[0].has_order);
  EXPECT_THAT(store->load_windows("plug", "1m", kNoon - minutes(1)).value(), IsEmpty());
  EXPECT_THAT(store->load_windows("plug", "1d", kNoon).value(), IsEmpty());
  EXPECT_FALSE(store->load_windows("nothing", "1m", kNoon).ok());
  EXPECT_EQ(store->next_start("plug", "1m", model::kMinTime).value(), kNoon);
  EXPECT_EQ(store->next_start("plug", "1m", kNoon + std::chrono::nanoseconds(1)).value(), kNoon + minutes(1));
  EXPECT_EQ(store->next_start("plug", "1m", kNoon + minutes(2)).value(), std::nullopt);
  EXPECT_EQ(store->next_start("plug", "1d", model::kMinTime).value(), std::nullopt);
  EXPECT_THAT(store->recover()->groups,
              ElementsAre(Pair("plug", plug(0, 1)), Pair("plug", plug(0, 2)), Pair("plug", plug(1, 1)),
                          Pair("house", ElementsAre(Pair("house", "0")))));
}

TEST_F(CloudStoreTest, AWindowReplacesItself) {
  const auto store = open();
  CloudCommit commit;
  commit.windows = {merge_row(plug(0, 1), kNoon, {1})};
  ASSERT_TRUE(store->commit(commit).ok());
  commit.windows = {merge_row(plug(0, 1), kNoon, {1, 2}, 1)};
  ASSERT_TRUE(store->commit(commit).ok());
  const std::vector<WindowRow> rows = store->load_windows("plug", "1m", kNoon).value();
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].state.count, 2u);
  EXPECT_EQ(rows[0].revision, 1u);
}

TEST_F(CloudStoreTest, ActualsChangeOnlyTheirForecasts) {
  const auto store = open();
  const std::int64_t step = 60'000'000'000;
  CloudCommit commit;
  commit.forecasts = {{"plug", step, plug(0, 1), kNoon, kNoon + minutes(2), 3.5, "", std::nullopt},
                      {"plug", step, plug(0, 2), kNoon, kNoon + minutes(2), std::nullopt, "no data", std::nullopt}};
  commit.actuals = {{"plug", step, plug(0, 1), kNoon + minutes(2), 4.0},
                    {"plug", step, plug(9, 9), kNoon + minutes(2), 4.0}};
  ASSERT_TRUE(store->commit(commit).ok());
  commit = {};
  commit.actuals = {{"plug", step, plug(0, 2), kNoon + minutes(2), -0.5}};
  ASSERT_TRUE(store->commit(commit).ok());

  const auto reader = CloudReader::open(file()).value();
  std::vector<std::string> seen;
  ASSERT_TRUE(reader
                  ->forecasts({},
                              [&](const ForecastAnswer& f) {
                                seen.push_back(f.labels[1].second + " " + std::to_string(f.predicted.value_or(-1)) +
                                               " " + std::to_string(f.actual.value_or(-1)) + " " +
                                               std::string(f.reason));
                                EXPECT_EQ(f.made_at, kNoon);
                                EXPECT_EQ(f.end - f.start, minutes(1));
                                return Continue::kYes;
                              })
                  .ok());
  EXPECT_THAT(seen, ElementsAre("1 3.500000 4.000000 ", "2 -1.000000 -0.500000 no data"));
}

TEST_F(CloudStoreTest, ParkedRowsMergeUntilTheirDefinitionIsKnown) {
  const model::GroupDef group{"later", UINT64_MAX - 7, 60'000'000'000, 3, plug(1, 2)};
  {
    const auto store = open();
    CloudCommit commit;
    commit.parked = {{group, kNoon, partial_of_values(kNoon, {1, 2})},
                     {group, kNoon + minutes(1), partial_of_values(kNoon, {9})}};
    ASSERT_TRUE(store->commit(commit).ok());
    commit.parked = {{group, kNoon, partial_of_values(kNoon + minutes(1), {5, 1e-9})}};
    ASSERT_TRUE(store->commit(commit).ok());
  }
  const auto store = open();
  const std::vector<ParkedRow> parked = store->recover()->parked;
  ASSERT_EQ(parked.size(), 2u);
  EXPECT_EQ(parked[0].group, group);
  model::Partial both = partial_of_values(kNoon, {1, 2});
  both.merge(partial_of_values(kNoon + minutes(1), {5, 1e-9}));
  EXPECT_EQ(parked[0].partial, both);
  EXPECT_EQ(parked[1].slice, kNoon + minutes(1));
  CloudCommit commit;
  commit.unparked = {{"later", 12}};
  ASSERT_TRUE(store->commit(commit).ok());
  EXPECT_EQ(store->recover()->parked.size(), 2u);
  commit.unparked = {{"later", group.definition}};
  ASSERT_TRUE(store->commit(commit).ok());
  EXPECT_THAT(store->recover()->parked, IsEmpty());
}

TEST_F(CloudStoreTest, ACommitThatDoesNotFitChangesNothingAndIsTriedAgain) {
  const auto store = open(small_fleet(), {Fsync::kOff, 400 << 10});
  CloudCommit small;
  small.origins = {origin("edge-1", 1)};
  small.windows = {merge_row(plug(0, 1), kNoon, {1})};
  ASSERT_TRUE(store->commit(small).ok());
  CloudCommit large;
  large.origins = {origin("edge-1", 2)};
  for (int i = 0; i < 20'000; ++i) large.windows.push_back(merge_row(plug(1, i), kNoon, {1, 2, 3}));
  const absl::Status full = store->commit(large);
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted) << full;
  EXPECT_EQ(store->recover()->origins[0].cursor.last, 1u);
  EXPECT_EQ(store->load_windows("plug", "1m", kNoon)->size(), 1u);
  EXPECT_EQ(store->recover()->groups.size(), 1u);
  // The numbers of the groups that were rolled back are used again.
  large.windows.resize(50);
  ASSERT_TRUE(store->commit(large).ok());
  EXPECT_EQ(store->load_windows("plug", "1m", kNoon)->size(), 51u);
  EXPECT_EQ(store->recover()->origins[0].cursor.last, 2u);
}

TEST_F(CloudStoreTest, AnUnknownTableOrWindowChangesNothing) {
  const auto store = open();
  CloudCommit commit;
  commit.origins = {origin("edge-1", 1)};
  commit.windows = {merge_row(plug(0, 1), kNoon, {1})};
  commit.windows[0].window = "7m";
  const absl::Status status = store->commit(commit);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("has no window \"7m\""));
  EXPECT_THAT(store->recover()->origins, IsEmpty());
}

TEST_F(CloudStoreTest, OneWriterPerDirectoryAndOneFleetPerFile) {
  auto store = open();
  EXPECT_EQ(SqliteCloudStore::open(path(), model::make_plan(small_fleet()), {}).status().code(),
            absl::StatusCode::kFailedPrecondition);
  store.reset();
  model::Fleet other = small_fleet();
  other.name = "other";
  const absl::Status status = SqliteCloudStore::open(path(), model::make_plan(other), {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("found the windows of fleet \"smart-grid\", expected \"other\""));
}

TEST_F(CloudStoreTest, ATableDefinedAnewStartsAnewAndTheOldOneComesBackWithItsDefinition) {
  CloudCommit commit;
  commit.windows = {merge_row(plug(0, 1), kNoon, {1})};
  commit.publication = {{"plug", kNoon}};
  ASSERT_TRUE(open()->commit(commit).ok());
  model::Fleet changed = small_fleet();
  changed.zone = "UTC";
  {
    const auto store = open(changed);
    EXPECT_THAT(store->load_windows("plug", "1m", kNoon).value(), IsEmpty());
    EXPECT_THAT(store->recover()->publication, IsEmpty());
    EXPECT_THAT(store->recover()->groups, IsEmpty());
    const auto reader = CloudReader::open(file()).value();
    EXPECT_EQ(reader->rollups()->size(), 2u);
  }
  const auto store = open();
  EXPECT_EQ(store->load_windows("plug", "1m", kNoon)->size(), 1u);
  EXPECT_THAT(store->recover()->publication, ElementsAre(Pair("plug", kNoon)));
}

}  // namespace
}  // namespace orla::store
