// The alarm rings: a result that was altered behind the program's back does not pass `orla up --verify`.
#include <gtest/gtest.h>
#include <sqlite3.h>

#include "tests/fleet_under_test.h"

namespace orla::behaviour {
namespace {

using nlohmann::json;

// A row that people see: of a rollup and a kind of window that are not hidden.
constexpr char kSeen[] =
    "FROM window_rows w JOIN rollup_windows k ON k.id = w.kind JOIN rollups r ON r.id = k.rollup "
    "WHERE r.hidden = 0 AND k.hidden = 0 AND r.name = 'plug_load' AND k.window = '1m' LIMIT 1";

class VerifyCanFail : public ::testing::Test {
 protected:
  void SetUp() override {
    const json first = fleet_.run({"--for", "30s", "--verify"});
    ASSERT_FALSE(first.is_null());
    ASSERT_EQ(first.at("exit_code"), 0) << first;
    compared_ = first.at("windows_compared");
  }

  // Runs SQL on the cloud's file and returns how many rows it changed.
  int alter(const std::string& sql) {
    sqlite3* database = nullptr;
    EXPECT_EQ(sqlite3_open_v2(fleet_.cloud_file().c_str(), &database, SQLITE_OPEN_READWRITE, nullptr), SQLITE_OK);
    char* error = nullptr;
    EXPECT_EQ(sqlite3_exec(database, sql.c_str(), nullptr, nullptr, &error), SQLITE_OK) << (error ? error : "");
    sqlite3_free(error);
    const int changed = sqlite3_changes(database);
    EXPECT_EQ(sqlite3_close(database), SQLITE_OK);
    return changed;
  }

  json again() { return fleet_.run({"--for", "1s", "--verify"}); }

  FleetUnderTest fleet_{FleetText{.edges = 1, .levels = 0, .houses = 1, .length = "2m"}.full()};
  int compared_ = 0;
};

const std::string kThatRow =
    std::string("WHERE (kind, start_ns, grp) IN (SELECT w.kind, w.start_ns, w.grp ") + kSeen + ")";

TEST_F(VerifyCanFail, PassesUntouched) {
  const json untouched = again();
  EXPECT_EQ(untouched.at("exit_code"), 0) << untouched;
  EXPECT_EQ(untouched.at("windows_compared"), compared_);
  EXPECT_EQ(untouched.at("windows_different"), 0);
}

TEST_F(VerifyCanFail, OnOneAlteredCell) {
  ASSERT_EQ(alter("UPDATE window_rows SET sum = sum + 0.001 " + kThatRow), 1);
  const json altered = again();
  EXPECT_EQ(altered.at("exit_code"), 1) << altered;
  EXPECT_EQ(altered.at("windows_different"), 1);
  EXPECT_EQ(altered.at("windows_missing"), 0);
  EXPECT_EQ(altered.at("windows_extra"), 0);
}

TEST_F(VerifyCanFail, OnOneDroppedWindow) {
  ASSERT_EQ(alter("DELETE FROM window_rows " + kThatRow), 1);
  const json dropped = again();
  EXPECT_EQ(dropped.at("exit_code"), 1) << dropped;
  EXPECT_EQ(dropped.at("windows_different"), 1);
  EXPECT_EQ(dropped.at("windows_missing"), 1);
}

TEST_F(VerifyCanFail, OnOneAddedWindow) {
  ASSERT_EQ(alter("INSERT INTO window_rows SELECT w.kind, w.start_ns - 3600000000000, w.grp, w.end_ns - 3600000000000, "
                  "w.count, w.sum, w.min, w.max, w.mean, w.stddev, w.first, w.last, w.revision, w.state, NULL, NULL, "
                  "NULL, NULL, NULL " +
                  std::string(kSeen)),
            1);
  const json added = again();
  EXPECT_EQ(added.at("exit_code"), 1) << added;
  EXPECT_EQ(added.at("windows_different"), 1);
  EXPECT_EQ(added.at("windows_extra"), 1);
}

}  // namespace
}  // namespace orla::behaviour
