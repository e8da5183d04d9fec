// FleetWorld: what has to stay within a bound, and is not a queue: journals on disk, and the way back to a parent.
#include <fmt/format.h>

#include <algorithm>

#include "sim/fleet_world.h"
#include "store/edge_change.h"
#include "store/edge_files.h"

namespace orla::sim {

namespace {

// A commit that had to wait for the disk was made before the journal had reached its bound.
constexpr std::uint64_t kCommitsBeyond = 2;

// Of the first copy of a journal, read from outside.
struct Journal {
  std::uint64_t snapshot = 0;  // bytes of what is known, as far as a snapshot would contain it
  std::uint64_t since = 0;
  std::uint64_t beyond = 0;  // commits that began beyond the bound

  // Of one that is damaged: as far as it can be read.
  Journal(std::string_view bytes, std::uint64_t bound) {
    std::uint64_t first = 0;
    std::size_t states = 0;  // of the first change
    while (bytes.size() >= store::kHeadBytes) {
      const auto head = store::read_head(bytes.substr(0, store::kHeadBytes));
      if (!head.ok() || !head->has_value() || (*head)->bytes > bytes.size() - store::kHeadBytes) return;
      const auto size = static_cast<std::size_t>((*head)->bytes);
      const absl::StatusOr<store::Change> change = store::decode_change(bytes.substr(store::kHeadBytes, size));
      bytes.remove_prefix(store::kHeadBytes + size);
      if (!change.ok()) return;
      if (first == 0) first = (*head)->number;
      const std::uint64_t all = store::kHeadBytes + size;
      if ((*head)->number == first) {
        // States after the first one are what a snapshot would not contain.
        std::uint64_t later = 0;
        for (const store::Change::State& state : change->states) later += states++ > 0 ? state.bytes.size() : 0;
        snapshot += all - later;
        since += later;
        continue;
      }
      if (!change->states.empty() && since > std::max(bound, 2 * snapshot)) ++beyond;
      since += all;
    }
  }
};

}  // namespace

// Invariant 5: the journal is replaced once it has outgrown `journal_bytes`, or twice what it began with.
void FleetWorld::look_at_journal(Machine& machine) {
  const absl::StatusOr<std::vector<base::Disk::Entry>> entries = machine.files->list();
  std::pair<std::string, std::uint64_t> newest;
  for (const base::Disk::Entry& entry : *entries) {
    if (entry.name.starts_with("journal-") && entry.name.ends_with(".a")) newest = {entry.name, entry.bytes};
  }
  if (newest == machine.journal) return;
  exercised_.snapshots += newest.first != machine.journal.first ? 1 : 0;
  machine.journal = newest;
  const auto bound = static_cast<std::uint64_t>(node::limit(plan_.fleet, "journal_bytes"));
  if (newest.second <= bound) return;
  const Journal journal(machine.files->peek(newest.first), bound);
  exercised_.journal_checks += journal.since > bound ? 1 : 0;
  if (journal.beyond < kCommitsBeyond) return;
  problem(
      fmt::format("{} has written {} commits to a journal that had outgrown its bound of {} bytes: {} bytes, {} of "
                  "them since its snapshot",
                  machine.spec->name, journal.beyond, bound, newest.second, journal.since));
}

bool FleetWorld::has_returned(const Machine& machine, const node::NodeStatus& now) const {
  return !now.uplink || now.uplink->parent == machine.preferred_parent;
}

// A child goes back to its preferred parent once that one is well again, and so is the way there.
void FleetWorld::look_at_parent(const Machine& child, const node::NodeStatus& now,
                                const std::map<std::string, Watch::End>& ends) {
  if (phase_ == Phase::kFaults || has_returned(child, now) || !now.uplink->connected) return;
  const Machine* parent = nullptr;
  for (const auto& machine : machines_) {
    if (machine->spec->name == child.preferred_parent) parent = machine.get();
  }
  const auto end = ends.find(child.preferred_parent);
  if (parent == nullptr || end == ends.end()) return;
  const base::SteadyTime well = std::max({healed_at_, child.life->started, ends.at(child.spec->name).free_since,
                                          parent->life->started, end->second.free_since});
  if (queue_.now() - well <= child.returns_within) return;
  problem(fmt::format("{} stays with {}, though {} has been well for {:.1f} s", child.spec->name, now.uplink->parent,
                      child.preferred_parent, std::chrono::duration<double>(queue_.now() - well).count()));
}

}  // namespace orla::sim
