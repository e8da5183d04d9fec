// Ledger: received, aggregated, unmatched, held as varints; late and rejected sets, each its count as a varint and its
// sum as 8 bytes; rejected and dropped counts, each a number of reasons, then reason (text) and count for each, sorted
// by reason.
//
// Publications: their number, then metric (text) and time (8 bytes) for each, sorted by metric.
#include "codec/account.h"

namespace orla::codec {

using base::ByteReader;
using base::ByteWriter;

namespace {

void put_set(ByteWriter& to, const model::SetDigest& set) {
  to.varint(set.count);
  to.u64(set.sum);
}

void get_set(ByteReader& from, model::SetDigest& set) {
  set.count = from.varint();
  set.sum = from.u64();
}

void put_reasons(ByteWriter& to, const model::ReasonCounts& counts) {
  to.varint(counts.size());
  for (const auto& [reason, count] : counts) {
    to.text(reason);
    to.varint(count);
  }
}

bool get_reasons(ByteReader& from, model::ReasonCounts& counts) {
  for (std::size_t left = get_count(from, 2); left > 0; --left) {
    std::string reason(from.text());
    const std::uint64_t count = from.varint();
    if (from.failed() || (!counts.empty() && reason <= counts.rbegin()->first)) return false;
    counts.emplace_hint(counts.end(), std::move(reason), count);
  }
  return true;
}

}  // namespace

std::size_t get_count(ByteReader& from, std::size_t least_bytes) {
  const std::uint64_t count = from.varint();
  if (count > from.left() / least_bytes) return from.fail();
  return count;
}

void put_time(ByteWriter& to, model::Time t) { to.u64(static_cast<std::uint64_t>(model::to_ns(t))); }

model::Time get_time(ByteReader& from) { return model::from_ns(static_cast<std::int64_t>(from.u64())); }

void put_ledger(ByteWriter& to, const model::Ledger& ledger) {
  for (const std::uint64_t v : {ledger.received, ledger.aggregated, ledger.unmatched, ledger.held}) to.varint(v);
  put_set(to, ledger.late);
  put_set(to, ledger.rejected_set);
  put_reasons(to, ledger.rejected);
  put_reasons(to, ledger.dropped);
}

const char* get_ledger(ByteReader& from, model::Ledger& ledger) {
  for (std::uint64_t* v : {&ledger.received, &ledger.aggregated, &ledger.unmatched, &ledger.held}) *v = from.varint();
  get_set(from, ledger.late);
  get_set(from, ledger.rejected_set);
  if (!get_reasons(from, ledger.rejected) || !get_reasons(from, ledger.dropped)) return "reasons that are not sorted";
  return from.failed() ? "a ledger that ends early" : nullptr;
}

void put_publications(ByteWriter& to, const std::vector<model::Publication>& publications) {
  to.varint(publications.size());
  for (const model::Publication& p : publications) {
    to.text(p.metric);
    put_time(to, p.time);
  }
}

const char* get_publications(ByteReader& from, std::vector<model::Publication>& publications) {
  for (std::size_t left = get_count(from, 9); left > 0; --left) {
    model::Publication p;
    p.metric = from.text();
    p.time = get_time(from);
    if (from.failed() || (!publications.empty() && p.metric <= publications.back().metric))
      return "publications that are not sorted by metric";
    publications.push_back(std::move(p));
  }
  return from.failed() ? "publications that end early" : nullptr;
}

}  // namespace orla::codec
