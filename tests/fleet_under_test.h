// A fleet of real processes for a test: files in a folder of its own, `orla up` with --json, nodes stopped by pid and
// started again. Everything that was started is gone at the end of its life, however the test ends.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/files.h"
#include "base/spawner.h"

namespace orla::behaviour {

// The program under test, and the tree it was built from.
std::string program();
std::filesystem::path source_dir();

// `orla ARGUMENTS`, run to its end. A failure to run it or the timeout fails the test and gives exit code -1.
base::Finished run_program(std::vector<std::string> arguments, std::chrono::seconds timeout = std::chrono::seconds(30));

std::vector<std::string> lines_of(const std::string& text);

// What a fleet file says, for the usual shapes of one. Data of `houses` houses over `edges` edges, through `levels`
// levels of aggregators ("agg-1" next to the edges) to "cloud"; all ports are chosen at the start.
struct FleetText {
  int edges = 1;
  int levels = 1;
  int houses = 2;
  std::string length = "5m";
  int speed = 0;
  std::string durability = "disk";
  int shards = 1;  // of an edge
  // The nodes alone.
  std::string nodes() const;
  // Nodes, generator inputs, the metrics of DEBS 2014, plug_load and house_load, and forecasts of both.
  std::string full() const;
};

enum class FindState { kGiven, kByRunRecord };

class FleetUnderTest {
 public:
  explicit FleetUnderTest(const std::string& fleet_file);
  ~FleetUnderTest();
  FleetUnderTest(const FleetUnderTest&) = delete;
  FleetUnderTest& operator=(const FleetUnderTest&) = delete;

  std::filesystem::path directory() const { return directory_.path(); }
  std::string fleet_path() const { return (directory() / "fleet.toml").string(); }
  // Where the nodes keep their state: what `orla up` said last, else a folder beside the fleet file.
  std::filesystem::path state() const { return state_; }
  void write(const std::string& name, const std::string& bytes) const;

  // Starts `orla up FLEET --json` with the state directory above (kGiven) or its own temporary one (kByRunRecord), and
  // waits for its first line. False, and a failure of the test, when that does not come.
  bool up(const std::vector<std::string>& arguments = {}, FindState state = FindState::kGiven);
  // The object of the last line; null when it does not come in time.
  nlohmann::json summary(std::chrono::seconds timeout = std::chrono::seconds(40));
  // Waits for the end of `orla up`; -1 when it does not end by itself, 128+n after signal n.
  int end(std::chrono::seconds timeout = std::chrono::seconds(20));
  // All in one: up, summary, end.
  nlohmann::json run(const std::vector<std::string>& arguments);
  void interrupt();  // SIGINT, as Ctrl-C
  int up_pid() const;
  // What `orla up` wrote on standard error.
  std::string errors() const;

  // Nodes, by name, as they are now.
  int pid(const std::string& node) const;
  std::string http(const std::string& node) const;
  nlohmann::json status(const std::string& node) const;  // null when it does not answer, or is not up yet
  // Sends a signal and waits until the process is gone; false when it is not within 8 s.
  bool stop(const std::string& node, int signal);
  // `orla node FLEET NAME`, and waits until it answers.
  bool start(const std::string& node, FindState state = FindState::kGiven);
  // Waits until the node says of itself what `true_of` wants.
  template <typename Condition>
  bool wait_until(const std::string& node, Condition true_of,
                  std::chrono::seconds timeout = std::chrono::seconds(20)) const {
    return until(timeout, [&] {
      const nlohmann::json s = status(node);
      return !s.is_null() && true_of(s);
    });
  }
  // How a node that was started with start() ended.
  std::optional<base::ExitStatus> ended(const std::string& node, std::chrono::seconds timeout);
  std::string log_of(const std::string& node) const;

  // `orla query windows` of the stopped or running cloud's file, as CSV lines.
  std::vector<std::string> windows(const std::string& rollup) const;
  std::filesystem::path cloud_file() const { return state_ / "cloud" / "cloud.sqlite"; }

  template <typename Condition>
  static bool until(std::chrono::seconds timeout, Condition condition) {
    const base::SystemClock clock;
    const base::SteadyTime deadline = clock.steady_now() + timeout;
    while (!condition()) {
      if (clock.steady_now() >= deadline) return false;
      pause();
    }
    return true;
  }

 private:
  static void pause();

  base::TemporaryDirectory directory_;
  std::filesystem::path state_;
  base::SystemSpawner spawner_;
  std::unique_ptr<base::ChildProcess> up_;
  std::map<std::string, std::unique_ptr<base::ChildProcess>> started_;
  std::vector<int> pids_;  // of every node of `orla up`
};

// Whether a process with this number runs (one that has ended and waits for its parent does not).
bool runs(int pid);

}  // namespace orla::behaviour
