// Whatever is in an edge's files, recover() does not fail, and what it says of chunks is what load() gives.
// Input: files, each as a kind (0 journal a, 1 journal b, else outbox), a number, and a length of two bytes.
#include <cstdlib>

#include "base/bytes.h"
#include "base/faulty_disk.h"
#include "store/edge_files.h"
#include "store/edge_for_tests.h"
#include "store/segment_edge_store.h"

namespace {

using namespace orla;

// Heads and payloads get the checksums they claim to have, so that what is behind them is reached.
std::string with_checksums(std::string bytes, std::uint64_t file) {
  for (std::size_t at = 0; at + store::kHeadBytes <= bytes.size();) {
    base::ByteReader from(std::string_view(bytes).substr(at + 8, store::kHeadBytes - 8));
    from.u8();
    const auto kind = static_cast<store::RecordKind>(1 + from.u8() % 5);
    const bool last = from.u8() % 4 != 0;
    from.u8();
    const std::uint32_t part = from.u8() % 4;
    from.raw(3 + 8);
    const std::uint64_t number = from.u64() % 16;
    const std::uint64_t length = std::min<std::uint64_t>(from.u64() % 256, bytes.size() - at - store::kHeadBytes);
    std::string record;
    store::append_record(record, {kind, last, part, file, number, 0, 0},
                         std::string_view(bytes).substr(at + store::kHeadBytes, length));
    bytes.replace(at, record.size(), record);
    at += record.size();
  }
  return bytes;
}

void check(std::string_view input, bool repair) {
  base::SeededRandom random(1);
  base::FaultyDisk disk(random);
  base::ByteReader from(input);
  while (from.left() > 4) {
    const std::uint8_t kind = from.u8();
    const std::uint64_t number = 1 + from.u8() % 4;
    const std::size_t length = from.u8() + 256U * from.u8();
    std::string bytes(from.raw(std::min<std::size_t>(length, from.left())));
    if (repair) bytes = with_checksums(std::move(bytes), number);
    disk.put(kind < 2 ? store::journal_name(number, kind == 0 ? store::JournalCopy::kA : store::JournalCopy::kB)
                      : store::segment_name(number),
             std::move(bytes));
  }
  const store::ClockForTests clock;
  for (int life = 0; life < 2; ++life) {
    store::SegmentEdgeStore edge(disk, clock, store::format_for_tests(), {.reserve_bytes = 0});
    const absl::StatusOr<store::EdgeRecovery> recovery = edge.recover({});
    if (!recovery.ok()) {
      if (recovery.status().code() != absl::StatusCode::kFailedPrecondition) std::abort();
      return;  // another version
    }
    for (const store::OutboxEntry& entry : recovery->outbox) {
      if (!edge.load(entry.sequence).ok()) std::abort();
    }
    disk.crash();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  check(bytes, false);
  check(bytes, true);
  return 0;
}
