// Writing the journal of an edge: the pair of files of one generation, and the change to the next.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/disk.h"
#include "store/edge_files.h"

namespace orla::store {

// The first copy decides; the second follows it and is not waited for, but at the beginning of a generation: one is in
// force once both copies are durable. After an error of append() or rotate() what was to be written may be on disk or
// not, and after rotate() what is not needed any more may still be there: settle() has to succeed before anything else
// is written.
class EdgeJournal {
 public:
  // `disk` outlives the journal.
  explicit EdgeJournal(base::Disk& disk) : disk_(disk) {}

  // Goes on in files that are there: the first `end` bytes of the first copy are sound, and `copied` of them are in the
  // second. `leftovers`: files of other generations, which go before anything is written. 0: there is none yet.
  void adopt(std::uint64_t generation, std::uint64_t end, std::uint64_t copied, std::vector<std::string> leftovers);

  enum class Durable : std::uint8_t { kNow, kLater };
  // One change in one or more parts.
  absl::Status append(std::uint64_t number, const std::vector<std::string>& parts, Durable durable);
  // A new generation that begins with this change, durable in both copies, and the end of the old one.
  absl::Status rotate(std::uint64_t generation, std::uint64_t number, const std::vector<std::string>& parts);
  // What could not be written is certainly not there, nor is any older generation.
  absl::Status settle();
  bool settled() const { return settled_ && leftovers_.empty(); }
  // What could not be written may be there.
  bool torn() const { return !settled_; }
  // What was appended is durable.
  absl::Status sync();
  // A sync has failed: what was in force and not durable by then may be lost, whatever later syncs say, until rotate().
  bool in_doubt() const { return in_doubt_; }
  // The second copy has what the first one has, if that can be had; durable as well.
  void catch_up() { copy({}); }
  void sync_copy();

  std::uint64_t generation() const { return generation_; }
  std::uint64_t bytes() const { return end_ + copied_; }
  std::uint64_t first_copy_bytes() const { return end_; }
  bool synced() const { return synced_ == end_; }
  // Number of the newest change that is durable; 0: not known.
  std::uint64_t durable() const { return durable_; }

 private:
  absl::Status write(JournalCopy copy, std::string_view bytes);
  absl::Status begin(std::uint64_t generation, JournalCopy copy, std::string_view bytes,
                     std::unique_ptr<base::AppendFile>& file);
  absl::Status remove_leftovers();
  void copy(std::string_view fresh);
  std::string name(JournalCopy copy) const { return journal_name(generation_, copy); }

  base::Disk& disk_;
  std::uint64_t generation_ = 0;  // 0: none
  std::unique_ptr<base::AppendFile> a_, b_;
  std::uint64_t end_ = 0;     // of what is in force, in the first copy
  std::uint64_t synced_ = 0;  // of it
  std::uint64_t copied_ = 0;  // of it, in the second copy
  std::uint64_t number_ = 0;  // of the newest change
  std::uint64_t durable_ = 0;
  bool in_doubt_ = false;
  bool settled_ = true;
  std::uint64_t given_up_ = 0;          // a generation that was not finished
  std::vector<std::string> leftovers_;  // files of others than generation_
};

// The parts of a change as records.
std::string change_records(RecordKind first_kind, std::uint64_t generation, std::uint64_t number,
                           const std::vector<std::string>& parts);

}  // namespace orla::store
