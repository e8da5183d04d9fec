#include "tests/fleet_under_test.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdio>
#include <stdexcept>
#include <utility>

#include "base/environment.h"
#include "node/http_client.h"
#include "node/state_directory.h"

namespace orla::behaviour {

namespace {

using nlohmann::json;

constexpr std::chrono::seconds kStartPatience{20};
constexpr std::chrono::seconds kStopPatience{8};
constexpr std::chrono::milliseconds kAnswerPatience{2000};
constexpr std::chrono::milliseconds kLook{20};

std::string variable(const std::string& name) {
  const std::optional<std::string> value = base::SystemEnvironment().get(name);
  EXPECT_TRUE(value.has_value()) << "these tests are run by ctest, which sets " << name;
  return value.value_or("");
}

base::TemporaryDirectory temporary() {
  absl::StatusOr<base::TemporaryDirectory> directory = base::TemporaryDirectory::create("orla-behaviour-");
  if (!directory.ok()) throw std::runtime_error(directory.status().ToString());
  return *std::move(directory);
}

}  // namespace

std::string program() { return variable("ORLA_BINARY"); }
std::filesystem::path source_dir() { return variable("ORLA_SOURCE_DIR"); }

base::Finished run_program(std::vector<std::string> arguments, std::chrono::seconds timeout) {
  base::ProcessSpec spec;
  spec.argv = std::move(arguments);
  spec.argv.insert(spec.argv.begin(), program());
  absl::StatusOr<base::Finished> finished = base::run_to_end(spec, timeout);
  if (finished.ok()) return *std::move(finished);
  ADD_FAILURE() << finished.status();
  return {{-1, 0}, "", ""};
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

std::string FleetText::nodes() const {
  std::string out =
      "[fleet]\nname = \"tested\"\nzone = \"Europe/Berlin\"\n[[site]]\nname = \"here\"\n"
      "[[node]]\nname = \"cloud\"\nlayer = \"cloud\"\nsite = \"here\"\nlisten = \"127.0.0.1:0\"\nhttp = "
      "\"127.0.0.1:0\"\n";
  for (int level = 1; level <= levels; ++level) {
    const std::string parent = level == levels ? "cloud" : fmt::format("agg-{}", level + 1);
    out += fmt::format(
        "[[node]]\nname = \"agg-{}\"\nlayer = \"aggregator\"\nsite = \"here\"\nlisten = \"127.0.0.1:0\"\nhttp = "
        "\"127.0.0.1:0\"\nparents = [\"{}\"]\n",
        level, parent);
  }
  for (int edge = 0; edge < edges; ++edge) {
    out += fmt::format(
        "[[node]]\nname = \"edge-{}\"\nlayer = \"edge\"\nsite = \"here\"\nhttp = \"127.0.0.1:0\"\nparents = "
        "[\"{}\"]\ndurability = \"{}\"\n",
        edge, levels > 0 ? "agg-1" : "cloud", durability);
    if (shards != 1) out += fmt::format("shards = {}\n", shards);
  }
  // Tests restart nodes: who lost a parent looks for it often.
  return out + "[limits]\nreconnect_max_ms = 500\nheartbeat_ms = 200\nparent_timeout_ms = 1500\n";
}

std::string FleetText::full() const {
  std::string out = nodes() +
                    "[[metric]]\nname = \"load\"\nunit = \"W\"\ndecimals = 3\ndisorder = \"5s\"\n"
                    "[[metric]]\nname = \"work\"\nunit = \"kWh\"\ndecimals = 3\n";
  for (int edge = 0; edge < edges; ++edge) {
    std::string mine;
    for (int house = edge; house < houses; house += edges) mine += fmt::format("{}{}", mine.empty() ? "" : ", ", house);
    out += fmt::format(
        "[[input]]\nnode = \"edge-{}\"\nspeed = {}\nselect = {{ house = [{}] }}\ngenerator = {{ houses = {}, seed = 1, "
        "for = \"{}\" }}\n",
        edge, speed, mine, houses, length);
  }
  return out +
         "[[rollup]]\nname = \"plug_load\"\nmetric = \"load\"\nby = [\"house\", \"household\", \"plug\"]\n"
         "slice = \"1m\"\nwindows = [\"1m\", \"1d\", \"5m/1m\"]\n"
         "[[rollup]]\nname = \"house_work\"\nmetric = \"work\"\nby = [\"house\"]\nslice = \"30s\"\n"
         "[[rollup]]\nname = \"house_load\"\nfrom = \"plug_load\"\nby = [\"house\"]\nacross = \"sum\"\nof = \"mean\"\n"
         "[[forecast]]\nof = [\"plug_load\", \"house_load\"]\nsteps = [\"1m\", \"5m\"]\n";
}

FleetUnderTest::FleetUnderTest(const std::string& fleet_file)
    : directory_(temporary()), state_(directory_.path() / "state") {
  write("fleet.toml", fleet_file);
}

FleetUnderTest::~FleetUnderTest() {
  for (auto& [name, process] : started_) process->kill();
  if (up_ != nullptr) up_->kill();
  // The nodes of `orla up` get SIGTERM with its end, and are given no time: a test that failed is over.
  for (const int pid : pids_) {
    if (runs(pid)) ::kill(pid, SIGKILL);
  }
  if (::testing::Test::HasFailure() && up_ != nullptr) std::fputs(errors().c_str(), stderr);
}

void FleetUnderTest::write(const std::string& name, const std::string& bytes) const {
  const absl::Status status = base::write_file_atomically(directory() / name, bytes);
  ASSERT_TRUE(status.ok()) << status;
}

bool FleetUnderTest::up(const std::vector<std::string>& arguments, FindState state) {
  base::ProcessSpec spec;
  spec.argv = {program(), "up", fleet_path(), "--json"};
  if (state == FindState::kGiven) {
    spec.argv.insert(spec.argv.end(), {"--state", (directory() / "state").string()});
  }
  spec.argv.insert(spec.argv.end(), arguments.begin(), arguments.end());
  spec.output = base::Output::pipe();
  spec.errors = base::Output::file((directory() / "up.err").string());
  spec.group = base::ProcessGroup::kOwn;
  absl::StatusOr<std::unique_ptr<base::ChildProcess>> process = spawner_.start(spec);
  if (!process.ok()) {
    ADD_FAILURE() << process.status();
    return false;
  }
  up_ = *std::move(process);
  const absl::StatusOr<std::string> line = up_->read_line(base::ChildProcess::Stream::kOutput, kStartPatience);
  if (!line.ok()) {
    ADD_FAILURE() << "orla up did not start: " << line.status() << "\n" << errors();
    return false;
  }
  const json started = json::parse(*line, nullptr, false);
  if (!started.is_object() || started.value("event", "") != "started") {
    ADD_FAILURE() << "not the first line of orla up --json: " << *line;
    return false;
  }
  state_ = started.at("state").get<std::string>();
  for (const json& node : started.at("nodes")) {
    pids_.push_back(node.at("pid").get<int>());
    EXPECT_EQ(pids_.back(), pid(node.at("node")));
    EXPECT_EQ(node.at("http"), http(node.at("node")));
  }
  return true;
}

json FleetUnderTest::summary(std::chrono::seconds timeout) {
  const absl::StatusOr<std::string> line = up_->read_line(base::ChildProcess::Stream::kOutput, timeout);
  if (!line.ok()) {
    ADD_FAILURE() << "no summary: " << line.status() << "\n" << errors();
    return nullptr;
  }
  json summary = json::parse(*line, nullptr, false);
  EXPECT_EQ(summary.value("event", ""), "summary") << *line;
  return summary;
}

int FleetUnderTest::end(std::chrono::seconds timeout) {
  const std::optional<base::ExitStatus> status = up_->wait(timeout);
  if (!status) {
    ADD_FAILURE() << "orla up does not end\n" << errors();
    return -1;
  }
  return status->signal != 0 ? 128 + status->signal : status->code;
}

json FleetUnderTest::run(const std::vector<std::string>& arguments) {
  if (!up(arguments)) return nullptr;
  json result = summary();
  if (result.is_null()) return result;
  EXPECT_EQ(end(), result.at("exit_code").get<int>()) << result;
  return result;
}

void FleetUnderTest::interrupt() { up_->send_signal(SIGINT); }
int FleetUnderTest::up_pid() const { return up_->pid(); }

std::string FleetUnderTest::errors() const {
  return base::read_file(directory() / "up.err", 16 << 20).value_or("(nothing on standard error)");
}

int FleetUnderTest::pid(const std::string& node) const {
  const std::optional<node::NodeAddresses> addresses = node::read_addresses(state_, node);
  return addresses ? static_cast<int>(addresses->pid) : 0;
}

std::string FleetUnderTest::http(const std::string& node) const {
  const std::optional<node::NodeAddresses> addresses = node::read_addresses(state_, node);
  return addresses ? addresses->http : "";
}

json FleetUnderTest::status(const std::string& node) const {
  const std::string address = http(node);
  if (address.empty()) return nullptr;
  const absl::StatusOr<node::HttpReply> reply =
      node::http_request("GET", address + "/api/v1/status", "", kAnswerPatience);
  if (!reply.ok() || reply->status != 200) return nullptr;
  json status = json::parse(reply->body, nullptr, false);
  const bool up = status.is_object() && status.value("node", "") == node && status.at("recovering").is_null();
  return up ? status : json(nullptr);
}

bool FleetUnderTest::stop(const std::string& node, int signal) {
  const int old = pid(node);
  if (old <= 0 || !runs(old)) {
    ADD_FAILURE() << node << " does not run, so it cannot be stopped";
    return false;
  }
  ::kill(old, signal);
  const bool gone = until(kStopPatience, [old] { return !runs(old); });
  EXPECT_TRUE(gone) << node << " still runs " << kStopPatience.count() << " s after signal " << signal;
  return gone;
}

bool FleetUnderTest::start(const std::string& node, FindState state) {
  base::ProcessSpec spec;
  spec.argv = {program(), "node", fleet_path(), node};
  if (state == FindState::kGiven) spec.argv.insert(spec.argv.end(), {"--state", state_.string()});
  spec.output = base::Output::discarded();
  spec.errors = base::Output::file((directory() / (node + ".log")).string());
  spec.directory = directory().string();
  absl::StatusOr<std::unique_ptr<base::ChildProcess>> process = spawner_.start(spec);
  if (!process.ok()) {
    ADD_FAILURE() << process.status();
    return false;
  }
  base::ChildProcess& child = *(started_[node] = *std::move(process));
  const bool answers = until(kStartPatience, [&] {
    const json s = status(node);
    return child.poll().has_value() || (s.is_object() && s.at("pid") == child.pid());
  });
  const bool runs_now = answers && !child.poll();
  EXPECT_TRUE(runs_now) << node << " does not answer after its start; it says:\n" << log_of(node);
  return runs_now;
}

std::optional<base::ExitStatus> FleetUnderTest::ended(const std::string& node, std::chrono::seconds timeout) {
  const auto found = started_.find(node);
  return found == started_.end() ? std::nullopt : found->second->wait(timeout);
}

std::string FleetUnderTest::log_of(const std::string& node) const {
  return base::read_file(directory() / (node + ".log"), 16 << 20).value_or("(no log)");
}

std::vector<std::string> FleetUnderTest::windows(const std::string& rollup) const {
  const base::Finished query =
      run_program({"query", "windows", "--store", cloud_file().string(), "--rollup", rollup, "--format", "csv"});
  EXPECT_TRUE(query.status.success()) << query.errors;
  return lines_of(query.output);
}

void FleetUnderTest::pause() { base::SystemClock().sleep(kLook); }

bool runs(int pid) {
  if (::kill(pid, 0) != 0) return false;
  const absl::StatusOr<std::string> stat = base::read_file(fmt::format("/proc/{}/stat", pid), 64 << 10);
  if (!stat.ok()) return false;
  const std::size_t name_end = stat->rfind(')');  // "PID (name) S ..."
  if (name_end == std::string::npos || name_end + 2 >= stat->size() || (*stat)[name_end + 2] != 'Z') return true;
  // Of a process that ends, the first thread is a zombie before the others have let go of files and locks.
  std::error_code none;
  const std::filesystem::directory_iterator threads(fmt::format("/proc/{}/task", pid), none);
  return std::distance(begin(threads), end(threads)) > 1;
}

}  // namespace orla::behaviour
