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

void EdgeJournal::adopt(std::uint64_t generation, std::uint64_t end, std::uint64_t copied) {
  generation_ = generation;
  end_ = end;
  synced_ = 0;
  copied_ = std::min(copied, end);
  in_doubt_ = false;
  settled_ = true;
  given_up_ = 0;
  a_.reset();
  b_.reset();
}

absl::Status EdgeJournal::settle() {
  if (settled_) return absl::OkStatus();
  if (given_up_ != 0) {
    absl::Status status = disk_.remove(journal_name(given_up_, JournalCopy::kB));
    if (status.ok()) status = disk_.remove(journal_name(given_up_, JournalCopy::kA));
    if (status.ok()) status = disk_.sync_names();
    if (!status.ok()) return status;
    given_up_ = 0;
  } else {
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

absl::Status EdgeJournal::rotate(std::uint64_t generation, std::uint64_t number,
                                 const std::vector<std::string>& parts) {
  const std::string bytes = change_records(RecordKind::kGeneration, generation, number, parts);
  const std::string name_a = journal_name(generation, JournalCopy::kA);
  const std::string name_b = journal_name(generation, JournalCopy::kB);
  absl::StatusOr<std::unique_ptr<base::AppendFile>> a = disk_.append(name_a, 0);
  absl::Status status = a.status();
  if (status.ok()) status = (*a)->append(bytes);
  if (status.ok()) status = (*a)->sync();
  std::uint64_t copied = 0;
  absl::StatusOr<std::unique_ptr<base::AppendFile>> b = std::unique_ptr<base::AppendFile>();
  if (status.ok()) {
    b = disk_.append(name_b, 0);
    if (b.ok() && (*b)->append(bytes).ok()) {
      copied = bytes.size();
      (*b)->sync().IgnoreError();
    } else {
      b = std::unique_ptr<base::AppendFile>();  // written later
    }
    status = disk_.sync_names();
  }
  if (!status.ok()) {
    a = std::unique_ptr<base::AppendFile>();
    b = std::unique_ptr<base::AppendFile>();
    given_up_ = generation;
    settled_ = false;
    return status;
  }
  const std::uint64_t before = generation_;
  generation_ = generation;
  a_ = *std::move(a);
  b_ = *std::move(b);
  end_ = synced_ = bytes.size();
  number_ = durable_ = number;
  in_doubt_ = false;
  copied_ = copied;
  if (before != 0) {
    // What stays is older than what is in force, and removed at the next start.
    disk_.remove(journal_name(before, JournalCopy::kA)).IgnoreError();
    disk_.remove(journal_name(before, JournalCopy::kB)).IgnoreError();
  }
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
