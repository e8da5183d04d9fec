// The accounts of invariant 3: received = aggregated + unmatched + late + rejected + dropped + pending.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "model/time.h"

namespace orla::model {

// Reason -> count. Reasons are a small fixed vocabulary, so the map is bounded.
using ReasonCounts = std::map<std::string, std::uint64_t, std::less<>>;

// Identifies a multiset of things independently of their order: the sum, modulo 2^64, of a hash of each.
struct SetDigest {
  std::uint64_t count = 0;
  std::uint64_t sum = 0;
  void add(std::uint64_t item_hash) {
    ++count;
    sum += item_hash;
  }
  void add(const SetDigest& other) {
    count += other.count;
    sum += other.sum;
  }
  friend bool operator==(const SetDigest&, const SetDigest&) = default;
};

// Hash of a late or rejected sample: hash64 of (series identity, time, bits of the value).
std::uint64_t sample_hash(std::string_view series_identity, Time time, double value);
// Hash of a row an input could not read: hash64 of (input key, line number).
std::uint64_t row_hash(std::string_view input_key, std::uint64_t row);

// Per edge and input.
struct Ledger {
  std::uint64_t received = 0;
  std::uint64_t aggregated = 0;  // accepted and folded into partials
  std::uint64_t unmatched = 0;   // no rollup wants it
  SetDigest late;                // older than allowed_lateness
  ReasonCounts rejected;         // by reason
  SetDigest rejected_set;        // rejected_set.count == sum of rejected
  ReasonCounts dropped;          // by reason (bounds)
  std::uint64_t held = 0;        // pending: held for max_jump, undecided

  std::uint64_t rejected_total() const;
  std::uint64_t dropped_total() const;
  // What is neither decided nor held: must be 0 between batches.
  std::int64_t unaccounted() const;
  friend bool operator==(const Ledger&, const Ledger&) = default;
};

}  // namespace orla::model
