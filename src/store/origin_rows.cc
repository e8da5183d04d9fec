#include "store/origin_rows.h"

#include <algorithm>

#include "store/columns.h"

namespace orla::store {
namespace {

// Null for a node or input that has no row above it.
OriginRow* find_origin(std::vector<OriginRow>& origins, std::string_view node) {
  const auto found =
      std::find_if(origins.begin(), origins.end(), [&](const OriginRow& o) { return o.cursor.node == node; });
  return found == origins.end() ? nullptr : &*found;
}

model::Ledger* find_ledger(OriginRow* origin, std::string_view input) {
  if (origin == nullptr) return nullptr;
  const auto found = std::find_if(origin->ledgers.begin(), origin->ledgers.end(),
                                  [&](const auto& entry) { return entry.first == input; });
  return found == origin->ledgers.end() ? nullptr : &found->second;
}

absl::Status read_ledgers(Database& database, std::vector<OriginRow>& into) {
  absl::StatusOr<Statement> get = database.prepare(
      "SELECT node,input,received,aggregated,unmatched,late,rejected,held,late_set,rejected_set FROM ledgers"
      " ORDER BY node,input");
  if (!get.ok()) return get.status();
  absl::StatusOr<bool> row = get->step();
  for (; row.ok() && *row; row = get->step()) {
    OriginRow* origin = find_origin(into, get->text(0));
    if (origin == nullptr) continue;
    model::Ledger ledger;
    ledger.received = from_column(get->integer(2));
    ledger.aggregated = from_column(get->integer(3));
    ledger.unmatched = from_column(get->integer(4));
    ledger.late = {from_column(get->integer(5)), from_hex(get->text(8))};
    ledger.rejected_set = {from_column(get->integer(6)), from_hex(get->text(9))};
    ledger.held = from_column(get->integer(7));
    origin->ledgers.emplace_back(std::string(get->text(1)), std::move(ledger));
  }
  if (!row.ok()) return row.status();

  get = database.prepare("SELECT node,input,kind,reason,count FROM ledger_reasons");
  if (!get.ok()) return get.status();
  for (row = get->step(); row.ok() && *row; row = get->step()) {
    model::Ledger* ledger = find_ledger(find_origin(into, get->text(0)), get->text(1));
    if (ledger == nullptr) continue;
    model::ReasonCounts& counts = get->text(2) == "dropped" ? ledger->dropped : ledger->rejected;
    counts[std::string(get->text(3))] = from_column(get->integer(4));
  }
  return row.status();
}

absl::Status read_losses(Database& database, std::vector<OriginRow>& into) {
  absl::StatusOr<Statement> get =
      database.prepare("SELECT node,reason,chunks,raw_samples FROM lost_chunks ORDER BY node,reason");
  if (!get.ok()) return get.status();
  absl::StatusOr<bool> row = get->step();
  for (; row.ok() && *row; row = get->step()) {
    OriginRow* origin = find_origin(into, get->text(0));
    if (origin == nullptr) continue;
    origin->losses.push_back(
        {std::string(get->text(1)), from_column(get->integer(2)), {}, from_column(get->integer(3))});
  }
  if (!row.ok()) return row.status();
  get = database.prepare("SELECT node,reason,input,samples FROM lost_samples ORDER BY node,reason,input");
  if (!get.ok()) return get.status();
  for (row = get->step(); row.ok() && *row; row = get->step()) {
    OriginRow* origin = find_origin(into, get->text(0));
    if (origin == nullptr) continue;
    for (model::Loss& loss : origin->losses) {
      if (loss.reason == get->text(1)) {
        loss.samples.emplace_back(std::string(get->text(2)), from_column(get->integer(3)));
      }
    }
  }
  return row.status();
}

}  // namespace

absl::StatusOr<std::vector<model::SequenceRange>> read_tombstones(Database& database, const model::NodeName& node,
                                                                  model::Epoch epoch) {
  std::vector<model::SequenceRange> out;
  absl::StatusOr<Statement> get =
      database.prepare("SELECT first,last FROM tombstones WHERE node=?1 AND epoch=?2 ORDER BY first");
  if (!get.ok()) return get.status();
  const std::string text = hex(epoch);
  get->bind_text(1, node).bind_text(2, text);
  absl::StatusOr<bool> row = get->step();
  for (; row.ok() && *row; row = get->step()) {
    out.push_back({from_column(get->integer(0)), from_column(get->integer(1))});
  }
  if (!row.ok()) return row.status();
  return out;
}

absl::StatusOr<std::vector<OriginRow>> read_origins(Database& database) {
  std::vector<OriginRow> out;
  absl::StatusOr<Statement> get = database.prepare("SELECT node,epoch,last,chain FROM cursors ORDER BY node");
  if (!get.ok()) return get.status();
  absl::StatusOr<bool> row = get->step();
  for (; row.ok() && *row; row = get->step()) {
    OriginRow& origin = out.emplace_back();
    origin.cursor = {std::string(get->text(0)),
                     model::Epoch(from_hex(get->text(1))),
                     from_column(get->integer(2)),
                     digest_from_hex(get->text(3)),
                     {}};
  }
  if (!row.ok()) return row.status();

  get = database.prepare("SELECT node,metric,published_ns FROM edge_publications ORDER BY node,metric");
  if (!get.ok()) return get.status();
  for (row = get->step(); row.ok() && *row; row = get->step()) {
    OriginRow* origin = find_origin(out, get->text(0));
    if (origin == nullptr) continue;
    origin->publications.push_back({std::string(get->text(1)), model::from_ns(get->integer(2))});
  }
  if (!row.ok()) return row.status();

  absl::Status status = read_ledgers(database, out);
  if (status.ok()) status = read_losses(database, out);
  if (!status.ok()) return status;
  for (OriginRow& origin : out) {
    absl::StatusOr<std::vector<model::SequenceRange>> tombstones =
        read_tombstones(database, origin.cursor.node, origin.cursor.epoch);
    if (!tombstones.ok()) return tombstones.status();
    origin.cursor.tombstones = *std::move(tombstones);
  }
  return out;
}

}  // namespace orla::store
