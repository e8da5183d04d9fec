// What a simulated run went through: an empty one proves nothing.
#pragma once

#include <cstdint>
#include <string>

namespace orla::sim {

struct Exercised {
  std::uint64_t nodes = 0;
  std::uint64_t samples = 0;  // received by inputs
  std::uint64_t windows = 0;  // compared
  std::uint64_t late = 0;
  std::uint64_t rejected = 0;
  std::uint64_t raw_samples = 0;  // kept raw at the cloud
  std::uint64_t raw_lost = 0;     // ... lost with chunks
  std::uint64_t dropped = 0;      // lost with damaged chunks
  std::uint64_t chunks = 0;       // folded in at the cloud
  std::uint64_t duplicates = 0;
  std::uint64_t refusals = 0;
  std::uint64_t faults = 0;
  std::uint64_t crashes = 0;
  std::uint64_t power_losses = 0;
  std::uint64_t stops = 0;
  std::uint64_t freezes = 0;
  std::uint64_t cuts = 0;
  std::uint64_t lost_messages = 0;
  std::uint64_t slowed_messages = 0;
  std::uint64_t sessions = 0;
  std::uint64_t failovers = 0;
  std::uint64_t failed_writes = 0;
  std::uint64_t failed_syncs = 0;     // of edges' files
  std::uint64_t failed_removals = 0;  // likewise
  std::uint64_t cached_starts = 0;    // processes that read what a failed sync had given up
  std::uint64_t cached_losses = 0;    // ... before the power failed
  std::uint64_t snapshots = 0;        // generations of journals
  std::uint64_t journal_checks = 0;   // of journals beyond their bound
  std::uint64_t refused = 0;          // samples dropped at the bound of an outbox
  std::uint64_t memory_dropped = 0;   // samples of chunks that memory edges dropped
  std::uint64_t lagging = 0;          // publications looked at while a series was further behind than may hold them
  std::uint64_t returns = 0;          // to the preferred parent, of sessions with another one
  std::uint64_t flips = 0;            // and cuts of kept chunks
  std::uint64_t tombstones = 0;
  std::uint64_t pushes = 0;     // acknowledged
  std::uint64_t takeovers = 0;  // epochs closed behind an edge's back
  std::uint64_t upgrades = 0;
  double simulated_s = 0;
  // Peaks, of the things that have a bound.
  std::uint64_t outbox_bytes = 0;
  std::uint64_t unresolved_bytes = 0;
  std::uint64_t parked_rows = 0;
  double connects_per_s = 0;

  void add(const Exercised& other);
};
std::string to_string(const Exercised& e);

}  // namespace orla::sim
