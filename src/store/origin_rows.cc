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

}  // namespace

absl::StatusOr<std::vector<OriginRow>> read_origins(Database& database) {
  std::vector<OriginRow> out;
  absl::StatusOr<Statement> get = database.prepare("SELECT node,epoch,last,chain FROM cursors ORDER BY node");
  if (!get.ok()) return get.status();
  absl::StatusOr<bool> row = get->step();
  for (; row.ok() && *row; row = get->step()) {
    OriginRow& origin = out.emplace_back();
    origin.cursor = {std::string(get->text(0)), model::Epoch(from_hex(get->text(1))), from_column(get->integer(2)),
                     digest_from_hex(get->text(3))};
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

  const absl::Status status = read_ledgers(database, out);
  if (!status.ok()) return status;
  return out;
}

}  // namespace orla::store
