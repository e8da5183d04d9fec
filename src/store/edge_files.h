// The format of an edge's files, version 1. Everything is little-endian; varints and texts are those of base/bytes.h.
//
//   journal-<generation>.a, .b   changes of the edge's state, byte for byte the same in both copies
//   outbox-<number>              rows of chunks, oldest first
//   reserve                      bytes to give back when the disk is full, so that the outbox can still be trimmed
//
// Every file is a sequence of records, every record a head of 56 bytes and a payload:
//
//   offset  bytes
//        0      8  magic 9d 4f 72 6c 61 52 65 63 ("\x9dOrlaRec")
//        8      1  version of the format: 1
//        9      1  kind (RecordKind)
//       10      1  1: the last part of its change; else 0
//       11      1  0
//       12      4  part, from 0: a change is cut into records of bounded size
//       16      8  number of the file: its generation or its number as a segment
//       24      8  number: of the change (journal), of the chunk (outbox)
//       32      8  bytes of the payload
//       40      8  checksum of the payload: hash64(payload, seed = number)
//       48      8  checksum of the 48 bytes before
//
// The head has this form in every version. A reader that finds no sound record looks for the next magic with a sound
// head: damage costs the records it lies in. Changes are numbered 1, 2, ... without gaps over all generations. A
// generation begins with one change that contains everything known (its first record is of kind kGeneration).
// A change is in force when all its parts are sound. Payloads of the journal are edge_change.h's.
//
// Payloads of the outbox:
//   kSegment  an encoded change: who writes here, what the newest chunk said of the inputs, and all groups (meta,
//             latest, groups)
//   kChunk    varint number of the change that brings the chunk, varint number of the newest change that was durable
//             before, text ChunkHeader, varint n: its rows name groups below n, then pieces of groups as in the section
//             of edge_change.h, to the end; its kRows follows, unless it is a tombstone
//   kRows     the rows as they are sent
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/disk.h"
#include "store/edge_store.h"

namespace orla::store {

inline constexpr std::uint8_t kEdgeFormatVersion = 1;
inline constexpr std::size_t kHeadBytes = 56;

enum class RecordKind : std::uint8_t { kGeneration = 1, kChange = 2, kSegment = 3, kChunk = 4, kRows = 5 };

struct RecordHead {
  RecordKind kind{};
  bool last_part = true;
  std::uint32_t part = 0;
  std::uint64_t file = 0;
  std::uint64_t number = 0;
  std::uint64_t bytes = 0;     // of the payload
  std::uint64_t checksum = 0;  // of the payload
};

std::uint64_t payload_checksum(std::string_view payload, std::uint64_t number);
// `head` without bytes and checksum.
void append_record(std::string& out, RecordHead head, std::string_view payload);
// Of the first kHeadBytes; nothing when they are no sound head. FailedPrecondition: a sound one of another version.
absl::StatusOr<std::optional<RecordHead>> read_head(std::string_view bytes);

// Names of files.
enum class JournalCopy : std::uint8_t { kA, kB };
std::string journal_name(std::uint64_t generation, JournalCopy copy);
std::string segment_name(std::uint64_t number);
inline constexpr char kReserveName[] = "reserve";
struct EdgeFileName {
  enum class Kind : std::uint8_t { kJournal, kSegment, kReserve } kind{};
  std::uint64_t number = 0;
  JournalCopy copy = JournalCopy::kA;
};
// Nothing for a name of something else.
std::optional<EdgeFileName> parse_edge_file_name(std::string_view name);

// Like Disk::read, but bytes that the medium does not give (DataLoss) are zero: their record is damaged then.
absl::StatusOr<std::string> read_what_there_is(const base::Disk& disk, const std::string& name, std::uint64_t offset,
                                               std::size_t bytes);

// Reads the records of one file in order, past what is damaged, in bounded memory.
class RecordScanner {
 public:
  struct Found {
    RecordHead head;
    std::uint64_t offset = 0;  // of the head
    std::string payload;       // empty when it was skipped
    std::uint64_t end() const { return offset + kHeadBytes + head.bytes; }
  };
  enum class Rows : std::uint8_t { kSkip, kVerify };

  // `bytes`: size of the file; `file`: the number its records must have. `disk` outlives the scanner.
  RecordScanner(const base::Disk& disk, std::string name, std::uint64_t bytes, std::uint64_t file, Rows rows);
  // Starts there instead of at 0.
  void seek(std::uint64_t offset) { at_ = offset; }
  // Nothing at the end. Errors: of the disk; another version.
  absl::StatusOr<std::optional<Found>> next();
  std::uint64_t position() const { return at_; }
  // What was passed over so far, ascending.
  const std::vector<EdgeDamage>& damage() const { return damage_; }

 private:
  absl::StatusOr<std::string_view> peek(std::uint64_t offset, std::size_t bytes);
  absl::StatusOr<std::optional<std::uint64_t>> find_magic(std::uint64_t from);
  void bad(std::uint64_t from, std::string what);
  void flush(std::uint64_t until);

  const base::Disk& disk_;
  const std::string name_;
  std::uint64_t size_;
  const std::uint64_t file_;
  const Rows rows_;
  std::uint64_t at_ = 0;
  std::string window_;
  std::uint64_t window_at_ = 0;
  std::optional<std::uint64_t> skipped_;  // where the payload begins that was skipped last: it may be shorter than said
  std::optional<EdgeDamage> bad_;
  std::vector<EdgeDamage> damage_;
};

}  // namespace orla::store
