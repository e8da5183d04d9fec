#include "node/outbox_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/file_lock.h"
#include "base/files.h"
#include "base/folder_disk.h"
#include "node/edge_disk.h"
#include "node/number_text.h"
#include "node/time_text.h"

namespace orla::node {

namespace {

struct Sums {
  std::uint64_t chunks = 0;
  std::uint64_t bytes = 0;
  std::uint64_t rows = 0;
  std::uint64_t lost = 0;
  std::uint64_t tombstones = 0;
  std::map<std::string, std::uint64_t> samples;       // by input, of chunks whose rows are there
  std::map<std::string, std::uint64_t> lost_samples;  // of the others
  std::uint64_t raw_samples = 0;                      // of metrics kept raw, likewise
  std::uint64_t lost_raw_samples = 0;
  model::Time from = model::kMaxTime;
  model::Time to = model::kMinTime;
};

Sums sums_of(const OutboxReport& report) {
  Sums out;
  for (const store::OutboxEntry& entry : report.recovery.outbox) {
    ++out.chunks;
    out.lost += entry.lost ? 1 : 0;
    out.tombstones += entry.tombstone ? 1 : 0;
    const bool there = !entry.lost && !entry.tombstone;
    for (const auto& [key, n] : entry.facts.samples) (there ? out.samples : out.lost_samples)[key] += n;
    (there ? out.raw_samples : out.lost_raw_samples) += entry.facts.raw_samples;
    if (!there) continue;
    out.bytes += entry.bytes;
    out.rows += entry.facts.rows;
    out.from = std::min(out.from, entry.facts.from);
    out.to = std::max(out.to, entry.facts.to);
  }
  return out;
}

std::string range_text(const Sums& sums) {
  return sums.from < sums.to ? fmt::format("{} to {}", rfc3339(sums.from), rfc3339(sums.to)) : "none";
}

}  // namespace

bool OutboxReport::sound() const {
  return recovery.damage.empty() && !recovery.without_journal &&
         std::none_of(recovery.outbox.begin(), recovery.outbox.end(), [](const auto& e) { return e.lost; });
}

absl::StatusOr<OutboxReport> report_outbox(const std::string& directory) {
  if (!base::exists(directory)) return absl::NotFoundError(fmt::format("there is no directory \"{}\"", directory));
  base::FolderDisk disk(directory);
  OutboxReport out;
  out.directory = directory;
  {
    // Looking at names alone leaves no lock file in a directory that is of something else.
    const auto entries = disk.list();
    if (!entries.ok()) return entries.status();
    const bool edge = std::any_of(entries->begin(), entries->end(), [](const base::Disk::Entry& entry) {
      return store::parse_edge_file_name(entry.name).has_value();
    });
    if (!edge) {
      return absl::NotFoundError(fmt::format(
          "\"{}\" holds no state of an edge (journal-*, outbox-*); the directory of a node is STATE/NAME", directory));
    }
  }
  const absl::StatusOr<base::FileLock> lock = base::FileLock::acquire(directory + "/lock");
  if (!lock.ok()) return lock.status();
  absl::StatusOr<store::EdgeReading> reading =
      store::read_edge_files(disk, edge_format(), {store::EdgeReadingOptions::Rows::kNow, nullptr});
  if (!reading.ok()) return reading.status();
  absl::StatusOr<store::EdgeRecovery> recovery = store::recovery_of(*reading, edge_format());
  if (!recovery.ok()) return recovery.status();
  out.reading = *std::move(reading);
  out.recovery = *std::move(recovery);
  return out;
}

std::string outbox_table(const OutboxReport& report) {
  const Sums sums = sums_of(report);
  const store::EdgeMeta& meta = report.recovery.meta;
  std::string out = fmt::format("{}\n\n{:<24} {:>16} {:>10}\n", report.directory, "file", "bytes", "records");
  for (const store::EdgeFileReport& file : report.reading.files) {
    out += fmt::format("{:<24} {:>16} {:>10}\n", file.name, grouped(file.bytes), grouped(file.records));
  }
  out += fmt::format("\n{:<14} {}\n", "node", meta.node.empty() ? "not known" : meta.node);
  out += fmt::format("{:<14} {:016x}{}\n", "epoch", static_cast<std::uint64_t>(meta.epoch),
                     report.recovery.reopen ? ", to be replaced at the next start" : "");
  out += fmt::format("{:<14} {} acknowledged, next is {}\n", "numbers", grouped(meta.acknowledged),
                     grouped(meta.next_sequence));
  out += fmt::format("{:<14} {} in {} bytes, {} rows\n", "chunks kept", grouped(sums.chunks), grouped(sums.bytes),
                     grouped(sums.rows));
  for (const auto& [key, n] : sums.samples) out += fmt::format("{:<14} {} of {}\n", "samples", grouped(n), key);
  if (sums.raw_samples > 0) out += fmt::format("{:<14} {}\n", "raw samples", grouped(sums.raw_samples));
  out += fmt::format("{:<14} {}\n", "times", range_text(sums));
  if (sums.tombstones > 0) out += fmt::format("{:<14} {} chunks\n", "tombstones", grouped(sums.tombstones));
  if (sums.lost > 0) out += fmt::format("{:<14} {} chunks\n", "lost", grouped(sums.lost));
  for (const auto& [key, n] : sums.lost_samples) {
    out += fmt::format("{:<14} {} of {}\n", "lost samples", grouped(n), key);
  }
  if (sums.lost_raw_samples > 0) out += fmt::format("{:<14} {}\n", "lost raw", grouped(sums.lost_raw_samples));
  out += fmt::format("{:<14} {}\n", "journal",
                     report.recovery.without_journal
                         ? "lost: inputs go on where the newest chunk left them, open samples are dropped"
                         : fmt::format("{} changes of the state", report.recovery.journal.size()));
  if (report.recovery.damage.empty()) return out + fmt::format("{:<14} none\n", "damage");
  out += fmt::format("\n{:<24} {:>16} {:>12}  {}\n", "damaged file", "at byte", "bytes", "what");
  for (const store::EdgeDamage& d : report.recovery.damage) {
    out += fmt::format("{:<24} {:>16} {:>12}  {}\n", d.file, grouped(d.offset), grouped(d.bytes), d.what);
  }
  return out;
}

std::string outbox_json(const OutboxReport& report) {
  using nlohmann::json;
  const Sums sums = sums_of(report);
  const store::EdgeMeta& meta = report.recovery.meta;
  json files = json::array();
  for (const store::EdgeFileReport& file : report.reading.files) {
    files.push_back({{"name", file.name}, {"bytes", file.bytes}, {"records", file.records}});
  }
  json damage = json::array();
  for (const store::EdgeDamage& d : report.recovery.damage) {
    damage.push_back({{"file", d.file}, {"offset", d.offset}, {"bytes", d.bytes}, {"what", d.what}});
  }
  const auto time = [&](model::Time t) { return sums.from < sums.to ? json(rfc3339(t)) : json(nullptr); };
  const json out = {{"directory", report.directory},
                    {"node", meta.node},
                    {"epoch", fmt::format("{:016x}", static_cast<std::uint64_t>(meta.epoch))},
                    {"reopen", report.recovery.reopen},
                    {"acknowledged", meta.acknowledged},
                    {"next_sequence", meta.next_sequence},
                    {"chunks", sums.chunks},
                    {"bytes", sums.bytes},
                    {"rows", sums.rows},
                    {"samples", sums.samples},
                    {"from", time(sums.from)},
                    {"to", time(sums.to)},
                    {"tombstones", sums.tombstones},
                    {"lost", sums.lost},
                    {"lost_samples", sums.lost_samples},
                    {"raw_samples", sums.raw_samples},
                    {"lost_raw_samples", sums.lost_raw_samples},
                    {"journal_changes", report.recovery.journal.size()},
                    {"journal_lost", report.recovery.without_journal.has_value()},
                    {"files", files},
                    {"damage", damage},
                    {"sound", report.sound()}};
  return out.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace orla::node
