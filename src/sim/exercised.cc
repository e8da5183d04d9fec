#include "sim/exercised.h"

#include <fmt/format.h>

#include <algorithm>

namespace orla::sim {

void Exercised::add(const Exercised& other) {
  nodes += other.nodes;
  samples += other.samples;
  windows += other.windows;
  late += other.late;
  rejected += other.rejected;
  raw_samples += other.raw_samples;
  raw_lost += other.raw_lost;
  dropped += other.dropped;
  chunks += other.chunks;
  duplicates += other.duplicates;
  refusals += other.refusals;
  faults += other.faults;
  crashes += other.crashes;
  power_losses += other.power_losses;
  stops += other.stops;
  freezes += other.freezes;
  cuts += other.cuts;
  lost_messages += other.lost_messages;
  slowed_messages += other.slowed_messages;
  sessions += other.sessions;
  failovers += other.failovers;
  failed_writes += other.failed_writes;
  failed_syncs += other.failed_syncs;
  failed_removals += other.failed_removals;
  cached_starts += other.cached_starts;
  cached_losses += other.cached_losses;
  snapshots += other.snapshots;
  journal_checks += other.journal_checks;
  refused += other.refused;
  memory_dropped += other.memory_dropped;
  lagging += other.lagging;
  returns += other.returns;
  flips += other.flips;
  tombstones += other.tombstones;
  pushes += other.pushes;
  takeovers += other.takeovers;
  upgrades += other.upgrades;
  simulated_s += other.simulated_s;
  outbox_bytes = std::max(outbox_bytes, other.outbox_bytes);
  unresolved_bytes = std::max(unresolved_bytes, other.unresolved_bytes);
  parked_rows = std::max(parked_rows, other.parked_rows);
  connects_per_s = std::max(connects_per_s, other.connects_per_s);
}

std::string to_string(const Exercised& e) {
  return fmt::format(
      "{:.0f} s, nodes {}, samples {}, windows {}, late {}, rejected {}, raw samples {}, raw lost {}, dropped {}, "
      "chunks {}, duplicates {}, "
      "refusals {}, faults {}, crashes {}, power losses {}, stops {}, freezes {}, cuts {}, messages lost {}, slowed "
      "{}, "
      "sessions {}, failovers {}, failed writes {}, syncs {}, removals {}, starts from cache {}, lost power after {}, "
      "snapshots {}, "
      "journals at bound {}, refused {}, dropped in memory {}, lagging {}, returns {}, "
      "flips {}, tombstones {}, pushes {}, epochs closed {}, upgrades {}, "
      "peaks: outbox {} bytes, unresolved {} bytes, parked {} rows, {:.1f} connects/s",
      e.simulated_s, e.nodes, e.samples, e.windows, e.late, e.rejected, e.raw_samples, e.raw_lost, e.dropped, e.chunks,
      e.duplicates, e.refusals, e.faults, e.crashes, e.power_losses, e.stops, e.freezes, e.cuts, e.lost_messages,
      e.slowed_messages, e.sessions, e.failovers, e.failed_writes, e.failed_syncs, e.failed_removals, e.cached_starts,
      e.cached_losses, e.snapshots, e.journal_checks, e.refused, e.memory_dropped, e.lagging, e.returns, e.flips,
      e.tombstones, e.pushes, e.takeovers, e.upgrades, e.outbox_bytes, e.unresolved_bytes, e.parked_rows,
      e.connects_per_s);
}

}  // namespace orla::sim
