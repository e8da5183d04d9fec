// FleetWorld: the invariants of docs/protocol.md, after everything has drained.
#include <fmt/format.h>

#include <utility>

#include "sim/fleet_world.h"
#include "verify/compare.h"
#include "verify/oracle.h"

namespace orla::sim {

namespace {

bool is_pushed(const model::Plan& plan, const std::string& key) {
  for (const model::InputSpec& input : plan.fleet.inputs) {
    if (input.key == key) return input.kind == model::InputSpec::Kind::kPush;
  }
  return false;
}

}  // namespace

std::string FleetWorld::check_told(const Machine& machine, const node::InputStatus& input) const {
  const auto origin = cloud_disk_.origins.find(machine.spec->name);
  const model::Ledger* told = nullptr;
  if (origin != cloud_disk_.origins.end()) {
    for (const auto& [key, ledger] : origin->second.ledgers) {
      if (key == input.key) told = &ledger;
    }
  }
  if (told != nullptr && *told == input.ledger) return "";
  if (told == nullptr) return fmt::format("input {}: the cloud has no accounts of it", input.key);
  const auto text = [](const model::Ledger& l) {
    return fmt::format(
        "received {}, aggregated {}, unmatched {}, late {} ({:x}), rejected {} ({:x}), dropped {}, held {}", l.received,
        l.aggregated, l.unmatched, l.late.count, l.late.sum, l.rejected_total(), l.rejected_set.sum, l.dropped_total(),
        l.held);
  };
  return fmt::format("input {}: the cloud has other accounts of it: {}\n  the edge: {}", input.key, text(*told),
                     text(input.ledger));
}

// Invariant 3 at the edges: every row is accounted for, and the cloud was told the same accounts.
std::string FleetWorld::check_inputs(std::map<std::string, model::Ledger>& ledgers,
                                     std::map<std::string, std::pair<model::Position, bool>>& ends) {
  for (const auto& machine : machines_) {
    if (machine->spec->layer != model::Layer::kEdge) continue;
    for (const node::InputStatus& input : status(*machine).inputs) {
      if (is_pushed(plan_, input.key)) {
        if (input.ledger.unaccounted() != 0 || input.ledger.held != 0) {
          return fmt::format("input {}: {} unaccounted for", input.key, input.ledger.unaccounted());
        }
        if (std::string wrong = check_told(*machine, input); !wrong.empty()) return wrong;
        ledgers[input.key] = input.ledger;
        ends[input.key] = {{0, scripts_.at(input.key).rows.size()}, true};
        continue;
      }
      const std::size_t rows = scripts_.at(input.key).rows.size();
      if (!input.ended || input.position.row != rows) {
        return fmt::format("input {} stands at row {} of {}", input.key, input.position.row, rows);
      }
      if (input.ledger.received != rows || input.ledger.unaccounted() != 0 || input.ledger.held != 0) {
        return fmt::format("input {}: received {} of {} rows, {} unaccounted for, {} held", input.key,
                           input.ledger.received, rows, input.ledger.unaccounted(), input.ledger.held);
      }
      if (std::string wrong = check_told(*machine, input); !wrong.empty()) return wrong;
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
    // What is pushed never ends.
    if (!pushers_.empty()) break;
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
    // Its inputs were told to stop once more, and the cloud of it.
    if (pushes(machine->spec->name)) continue;
    const node::NodeStatus now = status(*machine);
    if (now.uplink->frames_sent > 0) {
      return fmt::format("{} has sent {} frames after a start with nothing new", machine->spec->name,
                         now.uplink->frames_sent);
    }
  }
  if (cloud_disk_.samples != samples_before_) return "raw samples changed after one more start";
  std::size_t known = 0;
  for (const auto& [key, row] : cloud_disk_.windows) {
    const auto before = windows_before_.find(key);
    // Edges that are silent for longer publish more windows; what is in them is compared below.
    if (before == windows_before_.end() && model::is_paned(model::parse_window(row.window).value())) continue;
    if (before == windows_before_.end() || !(before->second.state == row.state)) {
      return fmt::format("a window of {} {} has changed after one more start", row.table, row.window);
    }
    ++known;
  }
  if (known != windows_before_.size()) return "windows are gone after one more start";
  std::map<std::string, model::Ledger> ledgers;
  std::map<std::string, std::pair<model::Position, bool>> ends;
  return check_inputs(ledgers, ends);
}

std::string FleetWorld::check() {
  if (!drained()) return describe_undrained();
  if (std::string wrong = check_parents(); !wrong.empty()) return wrong;
  if (std::string wrong = check_cloud(); !wrong.empty()) return wrong;
  if (std::string wrong = journal_lost_ ? "" : check_pushes(); !wrong.empty()) return wrong;
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
  absl::StatusOr<std::unique_ptr<verify::Oracle>> oracle = verify::Oracle::create(check_plan_);
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
  verify::Comparison comparison(check_plan_, **oracle);
  const Losses losses = gather_losses();
  if (!losses.wrong.empty()) return losses.wrong;
  exercised_.tombstones = losses.chunks;
  add_windows(losses, **oracle, comparison);
  exercised_.dropped = 0;
  exercised_.memory_dropped = losses.unseen;
  exercised_.refused = 0;
  if (std::string wrong = check_totals(ledgers); !wrong.empty()) return wrong;
  // What was refused at a bound before it was accepted is counted, and nobody else can tell which samples that were.
  bool refused = false;
  for (const auto& [key, ledger] : ledgers) {
    const auto dropped = ledger.dropped.find("outbox_full");
    if (dropped == ledger.dropped.end()) continue;
    refused = true;
    exercised_.refused += dropped->second;
  }
  if (std::string wrong = journal_lost_ ? "" : check_samples(losses, ledgers); !wrong.empty()) return wrong;
  if (refused || journal_lost_) return "";
  for (auto& [key, ledger] : ledgers) {
    // What was lost was accepted before.
    const auto lost = losses.samples.find(key);
    const std::uint64_t expected = lost == losses.samples.end() ? 0 : lost->second;
    if (ledger.dropped_total() != expected) {
      return fmt::format("input {}: {} samples are counted as dropped; the chunks that were lost held {}", key,
                         ledger.dropped_total(), expected);
    }
    exercised_.dropped += expected;
    ledger.aggregated += expected;
    ledger.dropped.clear();
    comparison.add(key, as_expected(key, ledger));
  }
  if (losses.unseen + losses.unseen_raw > 0) return check_counts(**oracle);
  // Together they are what is expected.
  for (const auto& [identity, kept] : cloud_disk_.samples) comparison.add(kept.series, kept.samples);
  for (const auto& [identity, lost] : losses.raw) comparison.add(lost.series, lost.samples);
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
