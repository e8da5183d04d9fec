#include "tests/chaos/chaos_fleet.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "absl/strings/numbers.h"
#include "base/environment.h"

namespace orla::behaviour {

using nlohmann::json;

namespace {

std::uint64_t number_or(const std::string& name, std::uint64_t otherwise) {
  const std::string text = base::SystemEnvironment().get(name).value_or("");
  std::uint64_t value = otherwise;
  if (!text.empty()) {
    EXPECT_TRUE(absl::SimpleAtoi(text, &value)) << name << " is no number: " << text;
  }
  return value;
}

}  // namespace

Chaos chaos() {
  const std::string length = base::SystemEnvironment().get("ORLA_CHAOS").value_or("");
  if (length == "short") return Chaos::kShort;
  if (length == "long") return Chaos::kLong;
  EXPECT_EQ(length, "") << "ORLA_CHAOS is \"short\" or \"long\"";
  return Chaos::kUsual;
}

std::uint64_t chaos_seed() { return number_or("ORLA_CHAOS_SEED", 20130901); }

int chaos_kills() {
  const Chaos length = chaos();
  return static_cast<int>(
      number_or("ORLA_CHAOS_KILLS", length == Chaos::kShort ? 8 : (length == Chaos::kLong ? 200 : 30)));
}

std::vector<std::string> ChaosText::edges() const {
  std::vector<std::string> names;
  for (int i = 0; i < disk_edges + memory_edges; ++i) names.push_back(fmt::format("edge-{}", i));
  return names;
}

std::string ChaosText::full() const {
  const auto node = [](const std::string& name, const std::string& layer, const std::string& more) {
    return fmt::format("[[node]]\nname = \"{}\"\nlayer = \"{}\"\nsite = \"here\"\nhttp = \"127.0.0.1:0\"\n{}", name,
                       layer, more);
  };
  const std::string listens = "listen = \"127.0.0.1:0\"\n";
  std::string out = "[fleet]\nname = \"chaos\"\nzone = \"Europe/Berlin\"\n[[site]]\nname = \"here\"\n" +
                    node("cloud", "cloud", listens) + node("top", "aggregator", listens + "parents = [\"cloud\"]\n");
  for (const std::string name : {"agg-1", "agg-2"}) {
    out += node(name, "aggregator", listens + "parents = [\"top\", \"cloud\"]\n");
  }
  const std::vector<std::string> all = edges();
  for (std::size_t i = 0; i < all.size(); ++i) {
    out += node(all[i], "edge",
                fmt::format("parents = {}\ndurability = \"{}\"\n", edge_parents,
                            static_cast<int>(i) < disk_edges ? "disk" : "memory"));
  }
  if (!limits.empty()) out += "[limits]\n" + limits;
  out +=
      "[[metric]]\nname = \"load\"\nunit = \"W\"\ndecimals = 3\ndisorder = \"5s\"\n"
      "[[metric]]\nname = \"work\"\nunit = \"kWh\"\ndecimals = 3\n";
  for (std::size_t i = 0; i < all.size(); ++i) {
    std::string mine;
    for (std::size_t house = i; house < static_cast<std::size_t>(houses); house += all.size()) {
      mine += fmt::format("{}{}", mine.empty() ? "" : ", ", house);
    }
    out += fmt::format(
        "[[input]]\nnode = \"{}\"\nspeed = {}\nselect = {{ house = [{}] }}\ngenerator = {{ houses = {}, seed = 1, for "
        "= \"{}\" }}\n",
        all[i], speed, mine, houses, length);
  }
  return out +
         "[[rollup]]\nname = \"plug_load\"\nmetric = \"load\"\nby = [\"house\", \"household\", \"plug\"]\n"
         "slice = \"1m\"\nwindows = [\"1m\", \"1d\"]\n"
         "[[rollup]]\nname = \"house_work\"\nmetric = \"work\"\nby = [\"house\"]\nslice = \"30s\"\n"
         "[[rollup]]\nname = \"house_load\"\nfrom = \"plug_load\"\nby = [\"house\"]\nacross = \"sum\"\nof = \"mean\"\n";
}

std::int64_t ChaosText::rows() const {
  const base::Finished made = run_program({"generate", "--houses", std::to_string(houses), "--for", length});
  return static_cast<std::int64_t>(lines_of(made.output).size());
}

void expect_everything_once(const json& summary, std::int64_t rows) {
  ASSERT_TRUE(summary.is_object());
  EXPECT_EQ(summary.at("exit_code"), 0) << summary;
  EXPECT_EQ(summary.at("verified"), true);
  EXPECT_EQ(summary.at("windows_different"), 0);
  EXPECT_EQ(summary.at("windows_missing"), 0);
  EXPECT_EQ(summary.at("windows_extra"), 0);
  EXPECT_EQ(summary.at("inputs_different"), 0);
  EXPECT_EQ(summary.at("measurements"), rows);
  EXPECT_EQ(summary.at("aggregated"), rows);
}

std::int64_t number_of(const FleetUnderTest& fleet, const std::string& node, const std::string& path) {
  const json status = fleet.status(node);
  const json::json_pointer at(path);
  if (!status.is_object() || !status.contains(at) || !status.at(at).is_number()) return -1;
  return status.at(at).get<std::int64_t>();
}

std::string parent_of(const FleetUnderTest& fleet, const std::string& node) {
  const json status = fleet.status(node);
  return status.is_object() && status.contains("uplink") ? status.at("uplink").at("parent").get<std::string>() : "";
}

bool reads_on(const FleetUnderTest& fleet, const std::string& edge) {
  const std::int64_t before = number_of(fleet, edge, "/samples_in");
  return fleet.wait_until(edge, [&](const json& s) { return s.at("samples_in").get<std::int64_t>() > before; });
}

}  // namespace orla::behaviour
