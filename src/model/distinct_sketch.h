// How many different things there were among many, whatever their order: HyperLogLog (Flajolet, Fusy, Gandouet, Meunier
// 2007) with 2^12 registers, read with Ertl's estimator ("New cardinality estimation algorithms for HyperLogLog
// sketches", 2017, algorithm 6). Standard error 1.04/sqrt(4096) = 1.6 %. Up to kMostExact different hashes are kept
// themselves, and counted exactly (after the sparse form of Heule, Nunkesser, Hall 2013).
#pragma once

#include <cstdint>
#include <vector>

#include "base/bytes.h"

namespace orla::model {

// A value; a commutative, idempotent monoid under merge().
class DistinctSketch {
 public:
  static constexpr std::size_t kMostExact = 512;

  // base::hash64 of the thing.
  void add(std::uint64_t hash);
  void merge(const DistinctSketch& other);

  bool exact() const { return registers_.empty(); }
  std::uint64_t estimate() const;
  std::size_t memory_bytes() const;

  // Canonical bytes: equal sketches give equal bytes. `read` takes only what `write` writes.
  void write(base::ByteWriter& to) const;
  static bool read(base::ByteReader& from, DistinctSketch& into);
  friend bool operator==(const DistinctSketch&, const DistinctSketch&) = default;

 private:
  void put(std::uint64_t hash);
  void make_registers();

  std::vector<std::uint64_t> hashes_;  // rising; empty with registers
  std::vector<std::uint8_t> registers_;
};

}  // namespace orla::model
