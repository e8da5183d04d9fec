// An edge's files are damaged while its parent is away: what is lost is what is damaged, and it is counted.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "tests/chaos/chaos_fleet.h"

namespace orla::behaviour {
namespace {

using nlohmann::json;
using std::chrono::seconds;
namespace fs = std::filesystem;

enum class Damage { kOutboxCut, kOutboxFlipped, kJournalTruncated, kJournalDeleted };

class DamagedEdge : public ::testing::TestWithParam<Damage> {
 protected:
  // Newest of the files whose names begin and end so.
  fs::path newest(const std::string& begin, const std::string& end) const {
    std::vector<fs::path> found;
    for (const fs::directory_entry& entry : fs::directory_iterator(fleet.state() / "edge-0")) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with(begin) && name.ends_with(end)) found.push_back(entry.path());
    }
    EXPECT_FALSE(found.empty()) << begin;
    return found.empty() ? fs::path() : *std::max_element(found.begin(), found.end());
  }
  void damage() const {
    const fs::path outbox = newest("outbox-", "");
    const fs::path journal = newest("journal-", ".a");
    switch (GetParam()) {
      case Damage::kOutboxCut:
        return fs::resize_file(outbox, fs::file_size(outbox) - 3'000);
      case Damage::kOutboxFlipped: {
        std::fstream file(outbox, std::ios::in | std::ios::out | std::ios::binary);
        const auto middle = static_cast<std::streamoff>(fs::file_size(outbox) / 2);
        file.seekg(middle);
        const char flipped = static_cast<char>(file.get() ^ 0x10);
        file.seekp(middle);
        file.put(flipped);
        return;
      }
      case Damage::kJournalTruncated:
        return fs::resize_file(journal, fs::file_size(journal) / 2);
      case Damage::kJournalDeleted:
        fs::remove(journal);
        return;
    }
  }

  const FleetText text{.edges = 1, .levels = 0, .houses = 10, .length = "30m", .speed = 0};
  FleetUnderTest fleet{text.full()};
};

TEST_P(DamagedEdge, LosesWhatIsDamagedAndCountsIt) {
  ASSERT_TRUE(fleet.start("edge-0"));  // its parent is not there
  ASSERT_TRUE(fleet.wait_until(
      "edge-0", [](const json& s) { return s.at("inputs").at(0).at("ended").get<bool>(); }, seconds(60)));
  const json before = fleet.status("edge-0");
  const std::int64_t read = before.at("samples_in").get<std::int64_t>();
  EXPECT_EQ(read, before.at("inputs").at(0).at("aggregated").get<std::int64_t>());
  ASSERT_GT(before.at("outbox").at("bytes").get<std::int64_t>(), 10'000);
  ASSERT_TRUE(fleet.stop("edge-0", SIGKILL));
  damage();
  ASSERT_TRUE(fleet.start("cloud"));
  ASSERT_TRUE(fleet.start("edge-0"));
  ASSERT_TRUE(fleet.wait_until(
      "edge-0",
      [](const json& s) { return s.at("inputs").at(0).at("ended").get<bool>() && s.at("outbox").at("chunks") == 0; },
      seconds(60)))
      << fleet.status("edge-0");
  const json origin = fleet.status("cloud").at("cloud").at("origins").at(0);
  const json ledger = origin.at("inputs").begin().value();
  const std::int64_t aggregated = ledger.at("aggregated").get<std::int64_t>();
  const std::int64_t dropped = ledger.at("dropped").get<std::int64_t>();
  fmt::print("{} samples acknowledged: {} arrived, {} lost with what was damaged\n", read, aggregated, dropped);
  EXPECT_EQ(aggregated + dropped, read) << ledger;
  EXPECT_EQ(dropped, ledger.at("dropped_by_reason").value("damaged", 0)) << ledger;
  if (GetParam() == Damage::kOutboxCut || GetParam() == Damage::kOutboxFlipped) {
    EXPECT_GT(dropped, 0);
    EXPECT_LT(dropped, read) << "more than the damaged records is lost";
  } else {
    EXPECT_EQ(dropped, 0);  // the other copy has it
  }
  // What the windows hold is what is said to have arrived, once. (The cloud writes windows in the commits that follow.)
  std::int64_t counted = 0;
  const auto count = [&] {
    counted = 0;
    for (const auto& [rollup, window] : {std::pair{"plug_load", "1m"}, std::pair{"house_work", "30s"}}) {
      const base::Finished query =
          run_program({"query", "windows", "--url", "http://" + fleet.http("cloud"), "--rollup", rollup, "--window",
                       window, "--format", "json", "--limit", "1000000"});
      EXPECT_TRUE(query.status.success()) << query.errors;
      const json answer = json::parse(query.output, nullptr, false);
      if (!answer.is_object()) continue;
      for (const json& row : answer.at("windows")) counted += row.at("count").get<std::int64_t>();
    }
    return counted;
  };
  EXPECT_TRUE(FleetUnderTest::until(seconds(20), [&] { return count() == aggregated; }))
      << counted << " of " << aggregated;
}

INSTANTIATE_TEST_SUITE_P(By, DamagedEdge,
                         ::testing::Values(Damage::kOutboxCut, Damage::kOutboxFlipped, Damage::kJournalTruncated,
                                           Damage::kJournalDeleted),
                         [](const ::testing::TestParamInfo<Damage>& info) {
                           switch (info.param) {
                             case Damage::kOutboxCut:
                               return "OutboxCut";
                             case Damage::kOutboxFlipped:
                               return "OutboxFlipped";
                             case Damage::kJournalTruncated:
                               return "JournalTruncated";
                             case Damage::kJournalDeleted:
                               return "JournalDeleted";
                           }
                           return "?";
                         });

}  // namespace
}  // namespace orla::behaviour
