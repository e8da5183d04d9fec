// A fleet of any size in simulated time, for capacity planning: the real roles on links with bandwidth and delay, and
// on nodes where samples, rows, messages and windows cost processor time. Nothing fails; what is asked is how much of
// the processors and links is used, how late windows are, and what is full first. The same options give the same
// answer.
//
// A node is one core. An edge's samples are charged in full, but only one of each series and second is really made and
// folded, so that a thousand edges can be simulated; rows, frames and bytes are what they would be, since they depend
// on series and slices and not on how many samples are in each.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace orla::sim {

// Processor time, measured: bench/results/2026-11-30-simulator-costs.md.
struct Costs {
  double sample_ns = 60;     // an edge: accept and fold one sample
  double row_ns = 180;       // any node: decode or encode, and merge or fold one partial
  double message_ns = 5000;  // sending or receiving one message
  double window_ns = 2200;   // the cloud: fold into one window, and write it
};

struct CapacityOptions {
  int sites = 15;
  int edges = 90;        // per site
  int aggregators = 1;   // per site
  int series = 20;       // per edge
  double rate = 10'000;  // samples/s per edge
  std::chrono::seconds time{60};
  std::chrono::seconds slice{10};
  double lan_mbit_s = 1000;  // edge to aggregator
  double wan_mbit_s = 100;   // aggregator to cloud
  std::chrono::microseconds lan_delay{300};
  std::chrono::milliseconds wan_delay{25};
  std::uint64_t seed = 1;
  Costs costs;
};

struct Quantiles {
  double p50 = 0;
  double p99 = 0;
  double max = 0;
};

struct LayerReport {
  std::string layer;
  int nodes = 0;
  double in_per_s = 0;        // edges: samples charged; others: frames received
  double rows_per_s = 0;      // partials sent (cloud: folded)
  double messages_per_s = 0;  // sent and received
  double bytes_up_per_s = 0;  // sent to the layer above, all nodes together
  double cpu_mean = 0;        // 0..1 of a core
  double cpu_max = 0;         // of the busiest node
  double link_mean = 0;       // 0..1 of the way up
  double link_max = 0;
  Quantiles lag_s;                 // from the end of a slice until the layer has published it (cloud: committed)
  std::uint64_t outbox_bytes = 0;  // the most a node held unacknowledged
};

struct CapacityReport {
  std::vector<LayerReport> layers;  // edges, aggregators, cloud
  int nodes = 0;
  double simulated_s = 0;
  std::uint64_t samples_asked = 0;
  std::uint64_t samples = 0;  // charged
  std::uint64_t made = 0;     // really folded
  std::uint64_t windows = 0;  // at the cloud
  std::uint64_t events = 0;
  std::string first_full;      // "processor of the cloud"
  double first_full_use = 0;   // how much of it is used, 0..1
  double drained_after_s = 0;  // the last sample's acknowledgement, after the last sample
};

// An error when totals at the cloud are not those of the samples made, or nothing drains.
absl::StatusOr<CapacityReport> run_capacity(const CapacityOptions& options);

}  // namespace orla::sim
