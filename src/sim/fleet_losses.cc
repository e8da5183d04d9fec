// FleetWorld: what disks have lost for good is missing at the cloud, to the bit, and nothing else is.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "absl/time/time.h"
#include "codec/content.h"
#include "sim/fleet_world.h"
#include "verify/calendar.h"

namespace orla::sim {

bool FleetWorld::Losses::overlap(model::Time start, model::Time end) const {
  return std::any_of(slices.begin(), slices.end(),
                     [&](const auto& slice) { return slice.first < end && start < slice.second; });
}

// What the windows would hold more, had the chunk not been lost.
std::string FleetWorld::lose(const model::NodeName& node, const Witness::Chunk& chunk, Losses& losses) {
  ++losses.chunks;
  for (const auto& [key, count] : chunk.facts.samples) losses.samples[key] += count;
  const absl::StatusOr<model::Content> content = codec::decode_content(chunk.rows);
  if (!content.ok()) return fmt::format("the witness cannot read a chunk of {}", node);
  absl::TimeZone zone;
  if (!absl::LoadTimeZone(plan_.fleet.zone, &zone)) return "no such zone";
  const std::vector<model::GroupDef>& groups = witness_.groups(node);
  if (std::string wrong = lose_samples(node, *content, losses); !wrong.empty()) return wrong;
  for (const model::PartialRow& row : content->rows) {
    if (model::index(row.group) >= groups.size()) return fmt::format("the witness does not know a group of {}", node);
    const model::GroupDef& group = groups[model::index(row.group)];
    losses.slices.emplace_back(row.slice, row.slice + model::Duration(group.slice_ns));
    for (const model::TableDef& table : plan_.tables) {
      if (!table.stream || plan_.streams[*table.stream].name != group.stream) continue;
      for (const model::TableWindow& window : table.windows) {
        for (const verify::Interval& span : verify::windows_at(window.spec, row.slice, zone)) {
          losses.windows[{table.name, model::to_string(window.spec), span.start, group.labels}].merge(row.partial);
        }
      }
    }
  }
  return "";
}

FleetWorld::Losses FleetWorld::gather_losses() {
  Losses losses;
  for (const auto& [name, lost] : watch_->tombstones()) {
    const auto& [node, epoch, sequence] = name;
    const auto stands = [&, &s = sequence](const std::vector<model::SequenceRange>& ranges) {
      return std::any_of(ranges.begin(), ranges.end(),
                         [&](const model::SequenceRange& range) { return range.first <= s && s <= range.last; });
    };
    bool folded = false;
    const auto origin = cloud_disk_.origins.find(node);
    if (origin != cloud_disk_.origins.end() && origin->second.cursor.epoch == epoch) {
      folded = stands(origin->second.cursor.tombstones);
    }
    for (const store::ClosedEpoch& closed : cloud_disk_.closed) {
      if (closed.node == node && closed.epoch == epoch) folded = folded || stands(closed.tombstones);
    }
    if (!folded) continue;
    if (plan_.fleet.node(node)->durability == model::Durability::kMemory) {
      // It never reached a disk, where it could be seen: there is only its own word.
      ++losses.chunks;
      for (const auto& [key, count] : lost.samples) {
        losses.samples[key] += count;
        losses.unseen += count;
      }
      losses.raw_samples += lost.raw_samples;
      losses.unseen_raw += lost.raw_samples;
      continue;
    }
    const Witness::Chunk* chunk = witness_.find(node, epoch, sequence);
    losses.wrong = chunk == nullptr
                       ? fmt::format("{} sent a tombstone of chunk {}, which it never sealed", node, sequence)
                       : lose(node, *chunk, losses);
    if (!losses.wrong.empty()) break;
  }
  return losses;
}

// Its row need not be there yet: a hopping window made of panes that is not published.
bool FleetWorld::may_be_open(const std::string& table, const std::string& window, model::Time end) const {
  const auto published = cloud_disk_.publication.find(table);
  return model::is_paned(model::parse_window(window).value()) &&
         (published == cloud_disk_.publication.end() || published->second < end);
}

// The cloud's windows, and with them what was lost: together they are what is expected. Windows across series that
// overlap something lost are not compared.
void FleetWorld::add_windows(const Losses& losses, const verify::Oracle& oracle, verify::Comparison& comparison) const {
  const auto across = [&](const std::string& name) {
    const model::TableDef* table = plan_.table(name);
    return table != nullptr && table->across.has_value();
  };
  const auto decimals = [&](const std::string& name) {
    const model::TableDef* table = plan_.table(name);
    return table != nullptr ? plan_.fleet.metrics[table->metric].decimals : 0;
  };
  for (const model::TableDef& table : plan_.tables) comparison.published(table.name, model::kMinTime);
  for (const auto& [table, time] : cloud_disk_.publication) comparison.published(table, time);
  for (const auto& [key, row] : cloud_disk_.windows) {
    if (across(row.table) && losses.overlap(row.start, row.end)) continue;
    model::Statistics shown = row.shown;
    if (const auto lost = losses.windows.find(key); lost != losses.windows.end()) {
      model::Partial whole = row.state;
      whole.merge(lost->second);
      shown = model::statistics(whole, decimals(row.table));
    }
    comparison.add(verify::StoredWindow{row.table, row.window, row.labels, row.start, row.end, shown, row.has_order});
  }
  for (const verify::Oracle::Table& table : oracle.tables()) {
    for (const verify::Cell& cell : table.sheet->cells()) {
      const std::vector<model::Label>& labels = table.groups->labels(cell.group);
      const CloudDisk::WindowKey key{table.name, table.window, cell.window.start, labels};
      verify::ExpectedWindow expected = oracle.expected(table, cell);
      if (table.across) {
        if (!losses.overlap(cell.window.start, cell.window.end)) continue;
      } else {
        // Lost entirely.
        const auto lost = losses.windows.find(key);
        if (lost == losses.windows.end() || cloud_disk_.windows.contains(key)) continue;
        if (may_be_open(table.name, table.window, expected.end)) continue;
        expected.shown = model::statistics(lost->second, table.decimals);
      }
      comparison.add(verify::StoredWindow{table.name, table.window, labels, cell.window.start, expected.end,
                                          expected.shown, expected.has_order});
    }
  }
}

// Whatever was lost: the windows hold as many samples as the edges say they have aggregated. Of the rollup that wants
// every sample once.
std::string FleetWorld::check_totals(const std::map<std::string, model::Ledger>& ledgers) const {
  std::uint64_t aggregated = 0;
  for (const auto& [key, ledger] : ledgers) aggregated += ledger.aggregated;
  std::map<std::string, std::uint64_t> held;  // by window
  for (const auto& [key, row] : cloud_disk_.windows) {
    const bool hops = model::parse_window(row.window).value().kind == model::WindowSpec::Kind::kHopping;
    if (row.table == "plug_load" && !hops) held[row.window] += row.state.count;
  }
  for (const auto& [window, count] : held) {
    if (count == aggregated) continue;
    return fmt::format("the edges have aggregated {} samples; the windows {} of plug_load hold {}", aggregated, window,
                       count);
  }
  return held.empty() && aggregated > 0 ? "no window of plug_load is there" : "";
}

// When nobody can tell which samples are lost: no window holds more than it should.
std::string FleetWorld::check_counts(const verify::Oracle& oracle) const {
  std::map<CloudDisk::WindowKey, std::uint64_t> expected;
  std::set<std::pair<std::string, std::string>> declared;  // forecasts have windows of their own
  for (const verify::Oracle::Table& table : oracle.tables()) {
    if (table.across) continue;
    declared.emplace(table.name, table.window);
    for (const verify::Cell& cell : table.sheet->cells()) {
      expected[{table.name, table.window, cell.window.start, table.groups->labels(cell.group)}] = cell.count;
    }
  }
  for (const auto& [key, row] : cloud_disk_.windows) {
    if (!declared.contains({row.table, row.window})) continue;
    const auto most = expected.find(key);
    if (most != expected.end() && row.state.count <= most->second) continue;
    return fmt::format("a window of {} {} holds {} samples; there were {}", row.table, row.window, row.state.count,
                       most == expected.end() ? 0 : most->second);
  }
  return "";
}

}  // namespace orla::sim
