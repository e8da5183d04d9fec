// FleetWorld: the invariants of docs/protocol.md, after everything has drained.
#include <fmt/format.h>

#include <utility>

#include "sim/fleet_world.h"
#include "verify/compare.h"
#include "verify/oracle.h"

namespace orla::sim {

// Invariant 3 at the edges: every row is accounted for, and the cloud was told the same accounts.
std::string FleetWorld::check_inputs(std::map<std::string, model::Ledger>& ledgers,
                                     std::map<std::string, std::pair<model::Position, bool>>& ends) {
  for (const auto& machine : machines_) {
    if (machine->spec->layer != model::Layer::kEdge) continue;
    for (const node::InputStatus& input : status(*machine).inputs) {
      const std::size_t rows = scripts_.at(input.key).rows.size();
      if (!input.ended || input.position.row != rows) {
        return fmt::format("input {} stands at row {} of {}", input.key, input.position.row, rows);
      }
      if (input.ledger.received != rows || input.ledger.unaccounted() != 0 || input.ledger.held != 0) {
        return fmt::format("input {}: received {} of {} rows, {} unaccounted for, {} held", input.key,
                           input.ledger.received, rows, input.ledger.unaccounted(), input.ledger.held);
      }
      const auto origin = cloud_disk_.origins.find(machine->spec->name);
      const model::Ledger* told = nullptr;
      if (origin != cloud_disk_.origins.end()) {
        for (const auto& [key, ledger] : origin->second.ledgers) {
          if (key == input.key) told = &ledger;
        }
      }
      if (told == nullptr || !(*told == input.ledger)) {
        return fmt::format("input {}: the cloud has {} accounts of it", input.key, told == nullptr ? "no" : "other");
      }
      ledgers[input.key] = input.ledger;
      ends[input.key] = {input.position, input.ended};
    }
  }
  return "";
}

// Invariant 3 at the parents.
std::string FleetWorld::check_parents() {
  for (const auto& machine : machines_) {
    const node::NodeStatus now = status(*machine);
    if (!now.chunks) continue;
    if (now.chunks->received != now.chunks->applied + now.chunks->duplicate + now.chunks->pending) {
      return fmt::format("{}: of {} chunks received {} are applied, {} duplicate, {} pending", machine->spec->name,
                         now.chunks->received, now.chunks->applied, now.chunks->duplicate, now.chunks->pending);
    }
  }
  return "";
}

std::string FleetWorld::describe_undrained() {
  std::string text = "not drained:";
  for (const auto& machine : machines_) {
    if (!machine->life || !machine->life->role) {
      text += fmt::format(" {} does not run;", machine->spec->name);
      continue;
    }
    const node::NodeStatus now = status(*machine);
    if (now.drained && (!now.uplink || now.uplink->connected)) continue;
    text += fmt::format(" {} (", machine->spec->name);
    if (now.uplink) {
      text += fmt::format("{} parent {}, {} ", now.uplink->connected ? "with" : "without", now.uplink->parent,
                          now.uplink->error);
    }
    if (now.outbox) text += fmt::format("outbox {} of {} ", now.outbox->acknowledged, now.outbox->last);
    for (const node::InputStatus& input : now.inputs) text += fmt::format("row {} ", input.position.row);
    if (now.chunks) text += fmt::format("pending {} ", now.chunks->pending);
    text += now.ready + ");";
  }
  return text;
}

// The cloud has nothing left over, and knows that nothing follows.
std::string FleetWorld::check_cloud() {
  if (!cloud_disk_.parked.empty()) {
    return fmt::format("{} rows are still parked at the cloud, though every definition is known",
                       cloud_disk_.parked.size());
  }
  for (const auto& [table, time] : cloud_disk_.publication) {
    if (time != model::kMaxTime) {
      return fmt::format("all inputs have ended, and {} is published only up to {} ns", table, model::to_ns(time));
    }
  }
  return "";
}

// After the last start: nothing was sent again, and nothing has changed.
std::string FleetWorld::check_again() {
  if (!drained()) return "after one more start: " + describe_undrained();
  for (const auto& machine : machines_) {
    if (machine->spec->layer != model::Layer::kEdge || machine->spec->durability != model::Durability::kDisk) continue;
    const node::NodeStatus now = status(*machine);
    if (now.uplink->frames_sent > 0) {
      return fmt::format("{} has sent {} frames after a start with nothing new", machine->spec->name,
                         now.uplink->frames_sent);
    }
  }
  if (cloud_disk_.windows.size() != windows_before_.size()) return "windows changed after one more start";
  for (const auto& [key, row] : cloud_disk_.windows) {
    const auto before = windows_before_.find(key);
    if (before == windows_before_.end() || !(before->second.state == row.state)) {
      return fmt::format("a window of {} {} has changed after one more start", row.table, row.window);
    }
  }
  std::map<std::string, model::Ledger> ledgers;
  std::map<std::string, std::pair<model::Position, bool>> ends;
  return check_inputs(ledgers, ends);
}

std::string FleetWorld::check() {
  if (!drained()) return describe_undrained();
  if (std::string wrong = check_parents(); !wrong.empty()) return wrong;
  if (std::string wrong = check_cloud(); !wrong.empty()) return wrong;
  return check_windows();
}

std::string FleetWorld::check_windows() {
  std::map<std::string, model::Ledger> ledgers;
  std::map<std::string, std::pair<model::Position, bool>> ends;
  if (std::string wrong = check_inputs(ledgers, ends); !wrong.empty()) return wrong;
  exercised_.samples = exercised_.late = exercised_.rejected = 0;
  for (const auto& [key, ledger] : ledgers) {
    exercised_.samples += ledger.received;
    exercised_.late += ledger.late.count;
    exercised_.rejected += ledger.rejected_total();
  }
  // Invariants 1, 2 and 4: exactly the accepted samples, to the bit.
  absl::StatusOr<std::unique_ptr<verify::Oracle>> oracle = verify::Oracle::create(plan_);
  if (!oracle.ok()) return std::string(oracle.status().message());
  for (std::size_t i = 0; i < plan_.fleet.inputs.size(); ++i) {
    const std::string& key = plan_.fleet.inputs[i].key;
    const auto& [position, ended] = ends.at(key);
    const std::unique_ptr<verify::RowSource> rows = oracle_rows(scripts_.at(key));
    if (const absl::Status read = (*oracle)->read(i, {position, ended}, *rows); !read.ok()) {
      return std::string(read.message());
    }
  }
  (*oracle)->finish();
  verify::Comparison comparison(plan_, **oracle);
  for (const auto& [key, row] : cloud_disk_.windows) {
    comparison.add(
        verify::StoredWindow{row.table, row.window, row.labels, row.start, row.end, row.shown, row.has_order});
  }
  for (const auto& [key, ledger] : ledgers) comparison.add(key, ledger);
  const verify::Report report = comparison.finish();
  exercised_.windows = report.windows_compared;
  if (!report.passed()) {
    std::string text = fmt::format("{} windows compared: {} different, {} missing, {} extra; {} inputs different",
                                   report.windows_compared, report.windows_different, report.windows_missing,
                                   report.windows_extra, report.inputs_different);
    for (const std::string& example : report.examples) text += "\n  " + example;
    return text;
  }
  return "";
}

}  // namespace orla::sim
