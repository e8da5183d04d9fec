#include "model/ledger.h"

#include <bit>

#include "base/bytes.h"
#include "base/hash.h"

namespace orla::model {

std::uint64_t sample_hash(std::string_view series_identity, Time time, double value) {
  // The identity's hash is the seed: two words are hashed per sample, however long the labels are.
  std::string bytes;
  base::ByteWriter to(bytes);
  to.u64(static_cast<std::uint64_t>(to_ns(time)));
  to.u64(std::bit_cast<std::uint64_t>(value));
  return base::hash64(bytes, base::hash64(series_identity));
}

std::uint64_t row_hash(std::string_view input_key, std::uint64_t row) {
  std::string bytes;
  base::ByteWriter(bytes).u64(row);
  return base::hash64(bytes, base::hash64(input_key));
}

namespace {
std::uint64_t total(const ReasonCounts& counts) {
  std::uint64_t sum = 0;
  for (const auto& [reason, count] : counts) sum += count;
  return sum;
}
}  // namespace

std::uint64_t Ledger::rejected_total() const { return total(rejected); }

std::uint64_t Ledger::dropped_total() const { return total(dropped); }

std::int64_t Ledger::unaccounted() const {
  return static_cast<std::int64_t>(received - aggregated - unmatched - late.count - rejected_total() - dropped_total() -
                                   held);
}

}  // namespace orla::model
