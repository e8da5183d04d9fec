#include "store/edge_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/bytes.h"
#include "base/hash.h"

namespace orla::store {

namespace {

constexpr char kMagicBytes[] = "\x9dOrlaRec";
constexpr std::string_view kMagic(kMagicBytes, 8);
constexpr std::size_t kBlock = 1 << 20;
constexpr std::size_t kSmallBlock = 4096;

}  // namespace

std::uint64_t payload_checksum(std::string_view payload, std::uint64_t number) { return base::hash64(payload, number); }

void append_record(std::string& out, RecordHead head, std::string_view payload) {
  const std::size_t begin = out.size();
  base::ByteWriter to(out);
  to.raw(kMagic);
  to.u8(kEdgeFormatVersion);
  to.u8(static_cast<std::uint8_t>(head.kind));
  to.u8(head.last_part ? 1 : 0);
  to.u8(0);
  for (int shift = 0; shift < 32; shift += 8) to.u8(static_cast<std::uint8_t>(head.part >> shift));
  to.u64(head.file);
  to.u64(head.number);
  to.u64(payload.size());
  to.u64(payload_checksum(payload, head.number));
  to.u64(base::hash64(std::string_view(out).substr(begin)));
  to.raw(payload);
}

absl::StatusOr<std::optional<RecordHead>> read_head(std::string_view bytes) {
  if (bytes.size() < kHeadBytes || bytes.substr(0, kMagic.size()) != kMagic) return std::nullopt;
  base::ByteReader from(bytes.substr(kMagic.size(), kHeadBytes - kMagic.size()));
  RecordHead head;
  const std::uint8_t version = from.u8();
  const std::uint8_t kind = from.u8();
  head.last_part = from.u8() != 0;
  from.u8();
  for (int shift = 0; shift < 32; shift += 8) head.part |= static_cast<std::uint32_t>(from.u8()) << shift;
  head.file = from.u64();
  head.number = from.u64();
  head.bytes = from.u64();
  head.checksum = from.u64();
  if (from.u64() != base::hash64(bytes.substr(0, kHeadBytes - 8))) return std::nullopt;
  if (version != kEdgeFormatVersion) {
    return absl::FailedPreconditionError(fmt::format(
        "the files are of format version {}; this orla reads version {}: use the orla that wrote them, or drain the "
        "outbox with it first",
        version, kEdgeFormatVersion));
  }
  if (kind < 1 || kind > static_cast<std::uint8_t>(RecordKind::kRows)) return std::nullopt;
  head.kind = static_cast<RecordKind>(kind);
  return head;
}

std::string journal_name(std::uint64_t generation, JournalCopy copy) {
  return fmt::format("journal-{:08}.{}", generation, copy == JournalCopy::kA ? 'a' : 'b');
}

std::string segment_name(std::uint64_t number) { return fmt::format("outbox-{:08}", number); }

std::optional<EdgeFileName> parse_edge_file_name(std::string_view name) {
  using Kind = EdgeFileName::Kind;
  EdgeFileName out;
  if (name == kReserveName) {
    out.kind = Kind::kReserve;
    return out;
  }
  const auto digits = [&](std::string_view text) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out.number);
    return error == std::errc() && end == text.data() + text.size() && text.size() >= 8 && out.number > 0;
  };
  if (name.starts_with("outbox-")) {
    out.kind = Kind::kSegment;
    return digits(name.substr(7)) && name == segment_name(out.number) ? std::optional(out) : std::nullopt;
  }
  if (!name.starts_with("journal-") || name.size() < 10) return std::nullopt;
  out.kind = Kind::kJournal;
  const std::string_view end = name.substr(name.size() - 2);
  if (end != ".a" && end != ".b") return std::nullopt;
  out.copy = end == ".a" ? JournalCopy::kA : JournalCopy::kB;
  if (!digits(name.substr(8, name.size() - 10)) || name != journal_name(out.number, out.copy)) return std::nullopt;
  return out;
}

absl::StatusOr<std::string> read_what_there_is(const base::Disk& disk, const std::string& name, std::uint64_t offset,
                                               std::size_t bytes) {
  absl::StatusOr<std::string> all = disk.read(name, offset, bytes);
  if (all.ok() || all.status().code() != absl::StatusCode::kDataLoss) return all;
  std::string out;
  while (out.size() < bytes) {
    const std::size_t want = std::min(kSmallBlock, bytes - out.size());
    absl::StatusOr<std::string> piece = disk.read(name, offset + out.size(), want);
    if (!piece.ok() && piece.status().code() != absl::StatusCode::kDataLoss) return piece.status();
    if (!piece.ok()) {
      out.append(want, '\0');
      continue;
    }
    out += *piece;
    if (piece->size() < want) break;
  }
  return out;
}

RecordScanner::RecordScanner(const base::Disk& disk, std::string name, std::uint64_t bytes, std::uint64_t file,
                             Rows rows)
    : disk_(disk), name_(std::move(name)), size_(bytes), file_(file), rows_(rows) {}

absl::StatusOr<std::string_view> RecordScanner::peek(std::uint64_t offset, std::size_t bytes) {
  bytes = static_cast<std::size_t>(std::min<std::uint64_t>(bytes, size_ > offset ? size_ - offset : 0));
  if (offset < window_at_ || offset + bytes > window_at_ + window_.size()) {
    const std::uint64_t left = size_ > offset ? size_ - offset : 0;
    const auto want = static_cast<std::size_t>(std::min<std::uint64_t>(std::max(bytes, kBlock), left));
    absl::StatusOr<std::string> read = read_what_there_is(disk_, name_, offset, want);
    if (!read.ok()) return read.status();
    window_ = *std::move(read);
    window_at_ = offset;
    if (window_.size() < want) {
      size_ = offset + window_.size();  // something cut it meanwhile
      bytes = std::min(bytes, window_.size());
    }
  }
  return std::string_view(window_).substr(static_cast<std::size_t>(offset - window_at_), bytes);
}

absl::StatusOr<std::optional<std::uint64_t>> RecordScanner::find_magic(std::uint64_t from) {
  while (from + kHeadBytes <= size_) {
    absl::StatusOr<std::string_view> block = peek(from, kBlock);
    if (!block.ok()) return block.status();
    const std::size_t found = block->find(kMagic);
    if (found != std::string_view::npos) return from + found;
    if (block->size() < kMagic.size()) break;
    from += block->size() - kMagic.size() + 1;
  }
  return std::nullopt;
}

void RecordScanner::bad(std::uint64_t from, std::string what) {
  if (!bad_) bad_ = EdgeDamage{name_, from, 0, std::move(what)};
}

void RecordScanner::flush(std::uint64_t until) {
  if (!bad_) return;
  bad_->bytes = until > bad_->offset ? until - bad_->offset : 0;
  damage_.push_back(*std::move(bad_));
  bad_.reset();
}

absl::StatusOr<std::optional<RecordScanner::Found>> RecordScanner::next() {
  while (at_ < size_) {
    absl::StatusOr<std::string_view> head_bytes = peek(at_, kHeadBytes);
    if (!head_bytes.ok()) return head_bytes.status();
    absl::StatusOr<std::optional<RecordHead>> read = read_head(*head_bytes);
    if (!read.ok()) {
      return absl::Status(read.status().code(), fmt::format("{}/{} at {}: {}", disk_.where(), name_, at_,
                                                            std::string(read.status().message())));
    }
    std::uint64_t search = at_ + 1;
    if (*read && (*read)->file == file_) {
      const RecordHead& head = **read;
      const std::uint64_t begin = at_ + kHeadBytes;
      if (head.bytes > size_ - begin) {
        bad(at_, "a record that the end of the file cuts off");
        search = begin;
      } else if (head.kind == RecordKind::kRows && rows_ == Rows::kSkip) {
        flush(at_);
        Found found{head, at_, {}};
        skipped_ = begin;
        at_ = found.end();
        return found;
      } else {
        absl::StatusOr<std::string_view> payload = peek(begin, static_cast<std::size_t>(head.bytes));
        if (!payload.ok()) return payload.status();
        if (payload->size() == head.bytes && payload_checksum(*payload, head.number) == head.checksum) {
          flush(at_);
          Found found{head, at_, std::string(*payload)};
          skipped_.reset();
          at_ = found.end();
          return found;
        }
        bad(at_, "a record whose checksum differs");
        search = begin;
      }
    } else {
      bad(at_, *read ? "a record of another file" : "no record where one should begin");
      if (skipped_) search = *skipped_;
    }
    skipped_.reset();
    absl::StatusOr<std::optional<std::uint64_t>> found = find_magic(search);
    if (!found.ok()) return found.status();
    at_ = *found ? **found : size_;
  }
  flush(size_);
  return std::nullopt;
}

}  // namespace orla::store
