// What the chaos tests share: how much of it is wanted, fleets with several ways up, and what they must end as.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/fleet_under_test.h"

namespace orla::behaviour {

// ORLA_CHAOS is unset, "short" or "long".
enum class Chaos { kShort, kUsual, kLong };
Chaos chaos();
// ORLA_CHAOS_SEED, else one that is the same each time.
std::uint64_t chaos_seed();
// ORLA_CHAOS_KILLS, else as many as the length has.
int chaos_kills();

struct ChaosText {
  int disk_edges = 2;
  int memory_edges = 1;
  int houses = 3;
  std::string length = "10m";
  int speed = 60;
  std::string limits = "reconnect_max_ms = 500\nheartbeat_ms = 200\nparent_timeout_ms = 1500\n";
  std::string edge_parents = R"([["agg-1", "agg-2"], "cloud"])";
  // Edges under the group of agg-1 and agg-2, these under "top", which is under "cloud". Who finds nobody in between
  // goes to the cloud itself.
  std::string full() const;
  std::vector<std::string> edges() const;
  std::int64_t rows() const;  // that the edges read altogether
};

// Of `orla up --verify`: every sample of `rows` is in, once.
void expect_everything_once(const nlohmann::json& summary, std::int64_t rows);

// The parent of a node's session, or of its last one; empty when the node does not answer.
std::string parent_of(const FleetUnderTest& fleet, const std::string& node);
// A number of a node's status by its path, as "/uplink/connects"; -1 when there is none.
std::int64_t number_of(const FleetUnderTest& fleet, const std::string& node, const std::string& path);
// Waits until an edge has read more than it had.
bool reads_on(const FleetUnderTest& fleet, const std::string& edge);

}  // namespace orla::behaviour
