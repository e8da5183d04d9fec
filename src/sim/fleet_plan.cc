#include "sim/fleet_plan.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <vector>

#include "model/fleet_file.h"

namespace orla::sim {

namespace {

template <typename T>
const T& one_of(base::Random& random, const std::vector<T>& choices) {
  return choices[random.below(choices.size())];
}

std::string quoted(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += fmt::format("{}\"{}\"", text.empty() ? "" : ", ", name);
  return fmt::format("[{}]", text);
}

std::string node(const std::string& name, const char* layer, int port, const std::string& parents) {
  std::string text = fmt::format("[[node]]\nname = \"{}\"\nlayer = \"{}\"\n", name, layer);
  if (port > 0) text += fmt::format("listen = \"127.0.0.1:{}\"\n", port);
  if (!parents.empty()) text += fmt::format("parents = {}\n", parents);
  return text;
}

constexpr std::uint64_t kLargeOneIn = 30;  // fleets

constexpr const char* kRollups = R"(
[[rollup]]
name = "plug_load"
metric = "load"
by = ["house", "household", "plug"]
slice = "1m"
windows = ["1m", "15m", "1d"]

[[rollup]]
name = "house_pool"
metric = "load"
by = ["house"]
slice = "5m"
windows = ["1h", "1h/20m", "4h/20m"]
quantiles = true
distinct = ["household", "plug"]

[[rollup]]
name = "house_load"
from = "plug_load"
by = ["house"]
across = "sum"
of = "mean"
windows = ["1m", "15m", "1h/5m"]

[[rollup]]
name = "highest_house"
from = "house_load"
by = []
across = "max"
windows = ["15m"]

[[forecast]]
of = ["plug_load"]
model = "debs2014"
steps = ["5m"]
)";

std::string keeping(base::Random& random) {
  std::string text = random.below(3) == 0 ? "durability = \"memory\"\n" : "";
  const std::uint64_t full = random.below(20);
  if (full < 4) text += "outbox_full = \"drop_oldest\"\n";
  if (full == 4) text += "outbox_full = \"reject\"\n";
  return text;
}

std::string push_input(const std::string& node) {
  return fmt::format("[[input]]\nnode = \"{}\"\nkind = \"push\"\n", node);
}

std::string input(base::Random& random, const std::string& node) {
  return fmt::format("[[input]]\nnode = \"{}\"\npath = \"simulated.csv\"\nmax_jump = \"{}\"\n", node,
                     one_of<std::string>(random, {"0s", "10m", "8h"}));
}

// One to four edges, up to two levels of aggregators of up to two nodes each.
std::string small_fleet(base::Random& random) {
  const std::uint64_t edges = 1 + random.below(4);
  const std::uint64_t low = random.below(3);
  const std::uint64_t high = low == 0 ? 0 : random.below(3);
  int port = 7000;
  std::string text = node("cloud", "cloud", port++, "");
  std::vector<std::string> high_names;
  std::vector<std::string> low_names;
  for (std::uint64_t i = 0; i < high; ++i) {
    high_names.push_back(fmt::format("high-{}", i + 1));
    text += node(high_names.back(), "aggregator", port++, R"(["cloud"])");
  }
  for (std::uint64_t i = 0; i < low; ++i) {
    low_names.push_back(fmt::format("low-{}", i + 1));
    text += node(low_names.back(), "aggregator", port++,
                 high_names.empty() ? R"(["cloud"])" : fmt::format("[{}, \"cloud\"]", quoted(high_names)));
  }
  std::string inputs;
  for (std::uint64_t i = 0; i < edges; ++i) {
    const std::string name = fmt::format("edge-{}", i + 1);
    std::string parents = R"(["cloud"])";
    if (!low_names.empty()) {
      parents = random.below(2) == 0 ? fmt::format("[{}]", quoted(low_names))
                                     : fmt::format("[{}, \"cloud\"]", quoted(low_names));
    }
    text += node(name, "edge", 0, parents);
    text += keeping(random);
    const std::uint64_t count = 1 + random.below(2);
    for (std::uint64_t k = 0; k < count; ++k) inputs += input(random, name);
    if (random.below(3) == 0) {
      text += fmt::format("http = \"127.0.0.1:{}\"\n", port++);
      inputs += push_input(name);
    }
  }
  return text + inputs;
}

// Two to four sites of edges with a group of aggregators each, regional ones above them in most fleets, and central
// ones above those in some: one to three levels.
std::string large_fleet(base::Random& random) {
  const std::uint64_t levels = 1 + random.below(3);
  const std::uint64_t sites = 2 + random.below(3);
  int port = 7000;
  std::string text = node("cloud", "cloud", port++, "");
  std::string inputs;
  std::string above = R"(["cloud"])";
  for (std::uint64_t level = levels; level > 1; --level) {
    std::vector<std::string> names;
    for (std::uint64_t i = 0; i < 2; ++i) {
      names.push_back(fmt::format("{}-{}", level == 3 ? "central" : "region", i + 1));
      text += node(names.back(), "aggregator", port++, above);
    }
    above = fmt::format("[{}, \"cloud\"]", quoted(names));
  }
  for (std::uint64_t site = 1; site <= sites; ++site) {
    std::vector<std::string> group;
    const std::uint64_t members = 1 + random.below(3);
    for (std::uint64_t i = 0; i < members; ++i) {
      group.push_back(fmt::format("site-{}-{}", site, i + 1));
      text += node(group.back(), "aggregator", port++, above);
    }
    const std::uint64_t edges = 3 + random.below(10);
    for (std::uint64_t i = 0; i < edges; ++i) {
      const std::string name = fmt::format("edge-{}-{}", site, i + 1);
      text += node(name, "edge", 0, fmt::format("[{}, \"cloud\"]", quoted(group)));
      text += keeping(random);
      inputs += input(random, name);
      if (random.below(6) == 0) {
        text += fmt::format("http = \"127.0.0.1:{}\"\n", port++);
        inputs += push_input(name);
      }
    }
  }
  return text + inputs;
}

}  // namespace

absl::StatusOr<model::Plan> random_plan(base::Random& random) {
  std::string text = fmt::format("[fleet]\nname = \"simulated\"\nzone = \"{}\"\n",
                                 one_of<std::string>(random, {"UTC", "Europe/Berlin", "Asia/Kolkata"}));
  text += random.below(kLargeOneIn) == 0 ? large_fleet(random) : small_fleet(random);
  text += fmt::format(
      "[[metric]]\nname = \"load\"\nunit = \"W\"\ndecimals = {}\ndisorder = \"{}\"\nallowed_lateness = \"{}\"\n",
      random.below(4), one_of<std::string>(random, {"0s", "30s", "5m"}),
      one_of<std::string>(random, {"0s", "1m", "1h"}));
  std::string rollups = kRollups;
  if (random.below(2) == 0) rollups.insert(rollups.find("slice = \"1m\""), "keep = \"raw\"\n");
  text += rollups;

  model::ParsedFleet parsed = model::parse_fleet(text, "simulated.toml", [](std::string_view) { return std::nullopt; });
  if (!parsed.fleet) {
    std::string errors;
    for (const model::FleetError& error : parsed.errors) errors += model::to_string(error) + "\n";
    return absl::InternalError(fmt::format("the simulated fleet file is wrong:\n{}{}", errors, text));
  }
  // Far below what the fleet file allows, so that a short run meets every bound.
  std::map<std::string, std::int64_t>& limits = parsed.fleet->limits;
  const auto pick = [&](std::int64_t least, std::int64_t most) {
    return least + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(most - least + 1)));
  };
  limits["commit_interval_ms"] = pick(20, 300);
  limits["commit_samples"] = pick(5, 200);
  limits["commit_bytes"] = pick(500, 20'000);
  limits["journal_bytes"] = pick(500, 20'000);
  limits["frame_bytes"] = pick(200, 5'000);
  limits["credit_bytes"] = pick(300, 20'000);
  limits["outbox_bytes"] = random.below(2) == 0 ? pick(1'000, 8'000) : pick(2'000, 200'000);
  limits["cached_window_rows"] = pick(1, 500);
  limits["hopping_sums"] = random.below(2) == 0 ? pick(1, 200) : 100'000;
  limits["parked_rows"] = pick(50, 5'000);
  limits["heartbeat_ms"] = 200;
  limits["parent_timeout_ms"] = pick(700, 2'500);
  limits["reconnect_min_ms"] = 50;
  limits["reconnect_max_ms"] = 1'000;
  return model::make_plan(*std::move(parsed.fleet));
}

}  // namespace orla::sim
