// For tests: a fleet file with everything in it, and ways to break it.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <string_view>

#include "model/fleet_file.h"

namespace orla::model::sample {

// Errors name it dir/fleet.toml.
inline constexpr std::string_view kGood = R"(
[fleet]
name = "test"
zone = "Europe/Berlin"

[[site]]
name = "here"
location = [49.87, 8]

[[node]]
name = "edge-1"
layer = "edge"
site = "here"
http = "127.0.0.1:8411"
parents = [["agg-1", "agg-2"], "cloud"]
durability = "memory"

[[node]]
name = "agg-1"
layer = "aggregator"
listen = "127.0.0.1:7421"
parents = ["cloud"]

[[node]]
name = "agg-2"
layer = "aggregator"
listen = "127.0.0.1:0"
parents = "cloud"

[[node]]
name = "cloud"
layer = "cloud"
listen = "[::1]:7431"

[[metric]]
name = "load"
unit = "W"
decimals = 2
disorder = "30s"
allowed_lateness = "2h"

[[metric]]
name = "work"

[[input]]
node = "edge-1"
kind = "csv"
path = "data/plugs.csv.gz"
speed = 1.5
select = { house = "0..2", household = [1, "7"], plug = 4 }
max_jump = "7d"

[[input]]
node = "edge-1"
path = "/other/values.csv"
schema = "mapping"
time = { column = "stamp", format = "%d/%m/%Y %H:%M:%S", zone = "UTC" }
labels = { house = "house_id", room = 3 }
constants = { country = "DE" }
values = { load = "w1" }
delimiter = ";"
decimal_mark = ","
missing = ["", "NA"]
idle_after = "1m"

[[rollup]]
name = "plug_load"
metric = "load"
by = ["house", "household", "plug"]
windows = ["1m", "15m", "24h", { size = "1h", hop = "5m" }]
emit = "5s"

[[rollup]]
name = "house_load"
from = "plug_load"
by = ["house"]
across = "sum"
of = "mean"

[[rollup]]
name = "city_load"
from = "house_load"
across = "max"
windows = ["1h"]

[[rollup]]
name = "house_pool"
from = "plug_load"
by = "house"
slice = "2m"
windows = ["1h"]

[[forecast]]
of = ["plug_load", "house_load"]
steps = ["1m", "60m", "120m"]

[limits]
series = 12
)";

inline ParsedFleet parse(std::string_view text, std::map<std::string, std::string> environment = {}) {
  return parse_fleet(text, "dir/fleet.toml", [&](std::string_view name) -> std::optional<std::string> {
    const auto found = environment.find(std::string(name));
    if (found == environment.end()) return std::nullopt;
    return found->second;
  });
}

// The good file with the only occurrence of `from` replaced.
inline std::string replaced(std::string_view from, std::string_view to) {
  std::string text(kGood);
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  EXPECT_EQ(text.find(from, at + 1), std::string::npos) << "not unique: " << from;
  return text.replace(at, from.size(), to);
}

}  // namespace orla::model::sample
