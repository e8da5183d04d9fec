#include "store/edge_journal.h"

#include <algorithm>

namespace orla::store {

namespace {
constexpr std::size_t kCopyBlock = 1 << 20;
}

std::string change_records(RecordKind first_kind, std::uint64_t generation, std::uint64_t number,
                           const std::vector<std::string>& parts) {
  std::string out;
  std::size_t bytes = 0;
  for (const std::string& part : parts) bytes += part.size() + kHeadBytes;
  out.reserve(bytes);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    append_record(out,
                  {i == 0 ? first_kind : RecordKind::kChange, i + 1 == parts.size(), static_cast<std::uint32_t>(i),
                   generation, number, 0, 0},
                  parts[i]);
  }
  return out;
}

void EdgeJournal::adopt(std::uint64_t generation, std::uint64_t end, std::uint64_t copied,
                        std::vector<std::string> leftovers) {
  generation_ = generation;
  end_ = end;
  synced_ = 0;
  copied_ = std::min(copied, end);
  in_doubt_ = false;
  settled_ = true;
  given_up_ = 0;
  leftovers_ = std::move(leftovers);
  a_.reset();
  b_.reset();
}

absl::Status EdgeJournal::settle() {
  if (!settled_ && given_up_ != 0) {
    // The second copy goes first, for good: where it is, the first one was whole.
    for (const JournalCopy copy : {JournalCopy::kB, JournalCopy::kA}) {
      absl::Status status = disk_.remove(journal_name(given_up_, copy));
      if (status.ok()) status = disk_.sync_names();
      if (!status.ok()) return status;
    }
    given_up_ = 0;
  } else if (!settled_) {
    a_.reset();
    if (absl::Status status = write(JournalCopy::kA, {}); !status.ok()) return status;
    if (absl::Status status = a_->sync(); !status.ok()) {
      in_doubt_ = in_doubt_ || !synced();
      return status;
    }
    if (!in_doubt_) {
      synced_ = end_;
      durable_ = number_;
    }
  }
  settled_ = true;
  return remove_leftovers();
}

// Nobody may go back to an older generation once this one goes on.
absl::Status EdgeJournal::remove_leftovers() {
  if (leftovers_.empty()) return absl::OkStatus();
  for (const std::string& leftover : leftovers_) {
    if (absl::Status status = disk_.remove(leftover); !status.ok()) return status;
  }
  if (absl::Status status = disk_.sync_names(); !status.ok()) return status;
  leftovers_.clear();
  return absl::OkStatus();
}

absl::Status EdgeJournal::write(JournalCopy copy, std::string_view bytes) {
  std::unique_ptr<base::AppendFile>& file = copy == JournalCopy::kA ? a_ : b_;
  if (file == nullptr) {
    absl::StatusOr<std::unique_ptr<base::AppendFile>> opened =
        disk_.append(name(copy), copy == JournalCopy::kA ? end_ : copied_);
    if (!opened.ok()) return opened.status();
    file = *std::move(opened);
  }
  return file->append(bytes);
}

absl::Status EdgeJournal::append(std::uint64_t number, const std::vector<std::string>& parts, Durable durable) {
  const std::string bytes = change_records(RecordKind::kChange, generation_, number, parts);
  absl::Status status = write(JournalCopy::kA, bytes);
  if (status.ok() && durable == Durable::kNow) {
    status = a_->sync();
    if (!status.ok() && !synced()) in_doubt_ = true;
  }
  if (!status.ok()) {
    settled_ = false;
    return status;
  }
  end_ += bytes.size();
  number_ = number;
  if (durable == Durable::kNow) {
    synced_ = end_;
    durable_ = number;
  }
  copy(bytes);
  return absl::OkStatus();
}

// `fresh`: the newest bytes of the first copy, which usually are all that the second lacks.
void EdgeJournal::copy(std::string_view fresh) {
  const std::uint64_t fresh_at = end_ - fresh.size();
  while (copied_ < end_) {
    std::string old;
    std::string_view piece = copied_ >= fresh_at ? fresh.substr(static_cast<std::size_t>(copied_ - fresh_at)) : "";
    if (copied_ < fresh_at) {
      absl::StatusOr<std::string> read =
          disk_.read(name(JournalCopy::kA), copied_,
                     static_cast<std::size_t>(std::min<std::uint64_t>(kCopyBlock, fresh_at - copied_)));
      if (!read.ok() || read->empty()) return;
      old = *std::move(read);
      piece = old;
    }
    if (!write(JournalCopy::kB, piece).ok()) {
      b_.reset();
      return;
    }
    copied_ += piece.size();
  }
}

// One copy of a new generation, with its name.
absl::Status EdgeJournal::begin(std::uint64_t generation, JournalCopy copy, std::string_view bytes,
                                std::unique_ptr<base::AppendFile>& file) {
  absl::StatusOr<std::unique_ptr<base::AppendFile>> opened = disk_.append(journal_name(generation, copy), 0);
  absl::Status status = opened.status();
  if (status.ok()) status = (*opened)->append(bytes);
  if (status.ok()) status = (*opened)->sync();
  if (status.ok()) status = disk_.sync_names();
  if (status.ok()) file = *std::move(opened);
  return status;
}

absl::Status EdgeJournal::rotate(std::uint64_t generation, std::uint64_t number,
                                 const std::vector<std::string>& parts) {
  const std::string bytes = change_records(RecordKind::kGeneration, generation, number, parts);
  std::unique_ptr<base::AppendFile> a, b;
  // One after the other: as long as there is no second copy, what is cut off in the first never was in force.
  absl::Status status = begin(generation, JournalCopy::kA, bytes, a);
  if (status.ok()) status = begin(generation, JournalCopy::kB, bytes, b);
  if (!status.ok()) {
    given_up_ = generation;
    settled_ = false;
    return status;
  }
  if (generation_ != 0) {
    for (const JournalCopy copy : {JournalCopy::kA, JournalCopy::kB}) leftovers_.push_back(name(copy));
  }
  generation_ = generation;
  a_ = std::move(a);
  b_ = std::move(b);
  end_ = synced_ = copied_ = bytes.size();
  number_ = durable_ = number;
  in_doubt_ = false;
  // In force with both copies, whatever is left of others. That is seen to before anything is written here.
  remove_leftovers().IgnoreError();
  return absl::OkStatus();
}

absl::Status EdgeJournal::sync() {
  if (synced()) return absl::OkStatus();
  if (absl::Status status = write(JournalCopy::kA, {}); !status.ok()) return status;
  if (absl::Status status = a_->sync(); !status.ok()) {
    in_doubt_ = true;
    return status;
  }
  synced_ = end_;
  durable_ = number_;
  return absl::OkStatus();
}

void EdgeJournal::sync_copy() {
  copy({});
  if (b_ != nullptr) b_->sync().IgnoreError();
}

}  // namespace orla::store
