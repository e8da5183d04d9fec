// A queue of 50 MB, filled while the cloud is away, of which something is damaged: what is lost is what is damaged, to
// the sample. (A tenth of that unless ORLA_CHAOS is "long".)
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>

#include "tests/chaos/chaos_fleet.h"

namespace orla::behaviour {
namespace {

using nlohmann::json;
using std::chrono::seconds;
namespace fs = std::filesystem;

constexpr const char* kFleet = R"(
[fleet]
name = "queue"
zone = "Europe/Berlin"
[[site]]
name = "here"
[[node]]
name = "cloud"
layer = "cloud"
site = "here"
listen = "127.0.0.1:0"
http = "127.0.0.1:0"
[[node]]
name = "edge-0"
layer = "edge"
site = "here"
http = "127.0.0.1:0"
parents = ["cloud"]
[limits]
reconnect_max_ms = 500
[[metric]]
name = "load"
unit = "W"
decimals = 3
disorder = "5s"
[[metric]]
name = "work"
unit = "kWh"
decimals = 3
[[input]]
node = "edge-0"
speed = {}
generator = {{ houses = 100, seed = 1, for = "{}" }}
[[rollup]]
name = "plug_load"
metric = "load"
by = ["house", "household", "plug"]
slice = "5s"
windows = ["1d"]
[[rollup]]
name = "plug_work"
metric = "work"
by = ["house", "household", "plug"]
slice = "5s"
windows = ["1d"]
)";

enum class Lost { kSome, kNothing };

struct Damage {
  const char* what;
  Lost lost;
  std::function<void(const fs::path& directory)> make;
};

// Sorted; their names begin and end so.
std::vector<fs::path> files(const fs::path& directory, const std::string& begin, const std::string& end = "") {
  std::vector<fs::path> found;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(begin) && name.ends_with(end)) found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

void flip_in_the_middle(const fs::path& path) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  const auto middle = static_cast<std::streamoff>(fs::file_size(path) / 2);
  file.seekg(middle);
  const char flipped = static_cast<char>(file.get() ^ 0x10);
  file.seekp(middle);
  file.put(flipped);
}

void cut_to_half(const fs::path& path) { fs::resize_file(path, fs::file_size(path) / 2); }

std::vector<Damage> damages() {
  const auto journals = [](const std::string& end, const std::function<void(const fs::path&)>& harm) {
    return [end, harm](const fs::path& directory) {
      for (const fs::path& path : files(directory, "journal-", end)) harm(path);
    };
  };
  const auto remove = [](const fs::path& path) { fs::remove(path); };
  return {
      {"newest part cut by 3 KB", Lost::kSome,
       [](const fs::path& directory) {
         const fs::path newest = files(directory, "outbox-").back();
         fs::resize_file(newest, fs::file_size(newest) - 3'072);
       }},
      {"one byte flipped in the middle", Lost::kSome,
       [](const fs::path& directory) {
         const std::vector<fs::path> outbox = files(directory, "outbox-");
         flip_in_the_middle(outbox[outbox.size() / 2]);
       }},
      {"journal, one copy cut to its half", Lost::kNothing, journals(".a", cut_to_half)},
      {"journal, other copy cut to its half", Lost::kNothing, journals(".b", cut_to_half)},
      {"journal, both copies cut to their halves", Lost::kNothing, journals("", cut_to_half)},
      {"journal, one copy deleted", Lost::kNothing, journals(".a", remove)},
      {"journal, other copy deleted", Lost::kNothing, journals(".b", remove)},
      {"journal, both copies deleted", Lost::kNothing, journals("", remove)},
  };
}

class QueueTest : public ::testing::Test {
 protected:
  explicit QueueTest(const std::string& length, int speed = 0)
      : length_(length), fleet(fmt::format(kFleet, speed, length)) {}
  void set_speed(int speed) const { fleet.write("fleet.toml", fmt::format(kFleet, speed, length_)); }
  fs::path directory() const { return fleet.state() / "edge-0"; }
  json inspect() const {
    const base::Finished finished = run_program({"outbox", "inspect", directory().string(), "--json"}, seconds(60));
    EXPECT_TRUE(finished.status.success()) << finished.errors;
    return json::parse(finished.output, nullptr, false);
  }
  // Samples in the windows, of which there is one per plug and metric.
  std::int64_t counted() const {
    std::int64_t out = 0;
    for (const char* rollup : {"plug_load", "plug_work"}) {
      const base::Finished query =
          run_program({"query", "windows", "--url", "http://" + fleet.http("cloud"), "--rollup", rollup, "--window",
                       "1d", "--format", "json", "--limit", "1000000"});
      const json answer = json::parse(query.output, nullptr, false);
      if (!answer.is_object()) return -1;
      for (const json& row : answer.at("windows")) out += row.at("count").get<std::int64_t>();
    }
    return out;
  }

  // The edge as it was kept, damaged, and a cloud that knows nothing.
  void damage_anew(const fs::path& kept, const Damage& damage) const {
    fs::remove_all(directory());
    fs::remove_all(fleet.state() / "cloud");
    fs::copy(kept, directory());
    damage.make(directory());
  }
  // Until the edge has read its input to the end and the cloud has all of it.
  void start_and_drain() {
    ASSERT_TRUE(fleet.start("cloud"));
    ASSERT_TRUE(fleet.start("edge-0"));
    ASSERT_TRUE(fleet.wait_until(
        "edge-0",
        [](const json& s) { return s.at("inputs").at(0).at("ended").get<bool>() && s.at("outbox").at("chunks") == 0; },
        seconds(300)))
        << fleet.status("edge-0");
  }

  const std::string length_;
  FleetUnderTest fleet;
};

class Queue : public QueueTest {
 protected:
  Queue() : QueueTest(chaos() == Chaos::kLong ? "130m" : "10m") {}
};

TEST_F(Queue, LosesToTheSampleWhatIsDamaged) {
  ASSERT_TRUE(fleet.start("edge-0"));  // its parent is not there
  ASSERT_TRUE(fleet.wait_until(
      "edge-0", [](const json& s) { return s.at("inputs").at(0).at("ended").get<bool>(); }, seconds(300)));
  const json full = fleet.status("edge-0");
  const std::int64_t read = full.at("samples_in").get<std::int64_t>();
  ASSERT_EQ(full.at("inputs").at(0).at("aggregated"), read);
  ASSERT_TRUE(fleet.stop("edge-0", SIGKILL));
  const fs::path kept = fleet.directory() / "kept";
  fs::copy(directory(), kept);
  const json before = inspect();
  EXPECT_EQ(before.at("sound"), true) << before;
  EXPECT_EQ(before.at("samples").at("edge-0/0"), read);
  std::uintmax_t bytes = 0;
  for (const fs::path& path : files(kept, "outbox-")) bytes += fs::file_size(path);
  EXPECT_GE(bytes, chaos() == Chaos::kLong ? 50'000'000U : 5'000'000U);
  fmt::print("{} samples in {} chunks, {} bytes of outbox\n", read, before.at("chunks").get<int>(), bytes);

  for (const Damage& damage : damages()) {
    SCOPED_TRACE(damage.what);
    damage_anew(kept, damage);
    // What the files say is lost, before anybody repairs anything.
    const json found = inspect();
    const std::int64_t lost_chunks = found.at("lost").get<std::int64_t>();
    const std::int64_t lost = found.at("lost_samples").value("edge-0/0", std::int64_t{0});
    EXPECT_EQ(found.at("samples").at("edge-0/0").get<std::int64_t>() + lost, read) << found;
    EXPECT_EQ(found.at("chunks"), before.at("chunks"));
    if (damage.lost == Lost::kNothing) {
      EXPECT_EQ(lost_chunks, 0);
    } else {
      EXPECT_EQ(found.at("sound"), false);
      EXPECT_GE(lost_chunks, 1);
      EXPECT_LE(lost_chunks, 2);  // records are larger than what was cut
    }

    ASSERT_NO_FATAL_FAILURE(start_and_drain());
    const json edge = fleet.status("edge-0").at("inputs").at(0);
    const json origin = fleet.status("cloud").at("cloud").at("origins").at(0);
    const json at_cloud = origin.at("inputs").at("edge-0/0");
    for (const json& account : {edge, at_cloud}) {
      EXPECT_EQ(account.at("received"), read) << account;
      EXPECT_EQ(account.at("aggregated"), read - lost) << account;
      EXPECT_EQ(account.at("dropped"), lost) << account;
      EXPECT_EQ(account.at("dropped_by_reason").value("damaged", std::int64_t{0}), lost) << account;
      for (const char* term : {"late", "rejected", "unmatched", "pending"}) EXPECT_EQ(account.at(term), 0) << account;
    }
    const json damaged = origin.at("losses").value("damaged", json::object());
    EXPECT_EQ(damaged.value("chunks", std::int64_t{0}), lost_chunks) << origin;
    EXPECT_EQ(damaged.value("samples", json::object()).value("edge-0/0", std::int64_t{0}), lost) << origin;
    // The cloud writes windows in the commits that follow.
    std::int64_t held = 0;
    EXPECT_TRUE(FleetUnderTest::until(seconds(60), [&] { return (held = counted()) == read - lost; })) << held;
    fmt::print("{}: {} of {} samples lost, in {} chunks; the windows hold {}\n", damage.what, lost, read, lost_chunks,
               held);
    ASSERT_TRUE(fleet.stop("edge-0", SIGKILL));
    ASSERT_TRUE(fleet.stop("cloud", SIGKILL));
  }
}

// The same in the middle of reading, which takes 8 s here, so that there is a middle. What no chunk had yet and the
// journal lost is dropped and counted; the rest of the input is read as ever.
class QueueInTheMiddle : public QueueTest {
 protected:
  QueueInTheMiddle() : QueueTest("4m", 30) {}
};

TEST_F(QueueInTheMiddle, IsAccountedForToTheEnd) {
  if (chaos() == Chaos::kShort) GTEST_SKIP() << "not in the short length";
  const base::Finished made = run_program({"generate", "--houses", "100", "--for", "4m"});
  const std::int64_t rows = std::count(made.output.begin(), made.output.end(), '\n');
  ASSERT_TRUE(fleet.start("edge-0"));
  ASSERT_TRUE(fleet.wait_until(
      "edge-0", [&](const json& s) { return s.at("samples_in").get<std::int64_t>() > rows / 4; }, seconds(300)));
  ASSERT_TRUE(fleet.stop("edge-0", SIGKILL));
  const fs::path kept = fleet.directory() / "kept";
  fs::copy(directory(), kept);
  ASSERT_LT(inspect().at("samples").at("edge-0/0").get<std::int64_t>(), rows) << "it had read everything";
  set_speed(0);
  for (const Damage& damage : damages()) {
    SCOPED_TRACE(damage.what);
    damage_anew(kept, damage);
    const json found = inspect();
    const std::int64_t in_chunks = found.at("lost_samples").value("edge-0/0", std::int64_t{0});
    ASSERT_NO_FATAL_FAILURE(start_and_drain());
    const json edge = fleet.status("edge-0").at("inputs").at(0);
    const json at_cloud = fleet.status("cloud").at("cloud").at("origins").at(0).at("inputs").at("edge-0/0");
    EXPECT_EQ(edge.at("received"), rows) << edge;
    const std::int64_t dropped = edge.at("dropped").get<std::int64_t>();
    const std::int64_t aggregated = edge.at("aggregated").get<std::int64_t>();
    EXPECT_EQ(aggregated + dropped, rows) << edge;
    EXPECT_EQ(edge.at("dropped_by_reason").value("damaged", std::int64_t{0}), dropped) << edge;
    for (const char* term : {"received", "aggregated", "dropped"}) EXPECT_EQ(at_cloud.at(term), edge.at(term)) << term;
    if (found.at("journal_lost").get<bool>()) {
      // Samples of two slices of 5 s and what the disorder holds open.
      EXPECT_GE(dropped, in_chunks);
      EXPECT_LT(dropped, rows / 4);
    } else {
      EXPECT_EQ(dropped, in_chunks);
    }
    std::int64_t held = 0;
    EXPECT_TRUE(FleetUnderTest::until(seconds(60), [&] { return (held = counted()) == aggregated; })) << held;
    fmt::print("in the middle, {}: {} of {} samples lost, {} of them in chunks\n", damage.what, dropped, rows,
               in_chunks);
    ASSERT_TRUE(fleet.stop("edge-0", SIGKILL));
    ASSERT_TRUE(fleet.stop("cloud", SIGKILL));
  }
}

}  // namespace
}  // namespace orla::behaviour
