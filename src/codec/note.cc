// Format (in an envelope, kind "N"): publications and ledgers as in account.cc, a ledger after its input key (text),
// preceded by their number; then the number of state entries and for each: 1 for a snapshot else 0, its bytes (text);
// then (not in version 1, which is still read) the number of tombstones and for each: first, last - first, reason
// (text), from and to (8 bytes each), the number of inputs and for each: its key (text), samples; then (version 3,
// which is written when one of them is not 0) the raw samples of each tombstone.
#include "codec/note.h"

#include <algorithm>

#include "codec/account.h"
#include "codec/envelope.h"

namespace orla::codec {

namespace {

constexpr Format kFormat = {'N', 2, "note"};
constexpr Format kWithoutTombstones = {'N', 1, "note"};
constexpr Format kWithRawSamples = {'N', 3, "note"};

bool has_raw_samples(const model::OriginNote& note) {
  return std::any_of(note.tombstones.begin(), note.tombstones.end(),
                     [](const model::Tombstone& t) { return t.raw_samples > 0; });
}

const char* read_tombstones(base::ByteReader& from, std::vector<model::Tombstone>& tombstones) {
  for (std::size_t left = get_count(from, 20); left > 0; --left) {
    model::Tombstone& t = tombstones.emplace_back();
    t.first = from.varint();
    const std::uint64_t more = from.varint();
    if (more > UINT64_MAX - t.first) return "a tombstone that ends before it begins";
    t.last = t.first + more;
    t.reason = from.text();
    t.from = get_time(from);
    t.to = get_time(from);
    for (std::size_t inputs = get_count(from, 2); inputs > 0; --inputs) {
      auto& [key, samples] = t.samples.emplace_back();
      key = from.text();
      samples = from.varint();
    }
    if (from.failed()) break;
  }
  return nullptr;
}

const char* read(base::ByteReader& from, model::OriginNote& note, int version) {
  if (const char* wrong = get_publications(from, note.publications)) return wrong;
  for (std::size_t left = get_count(from, 25); left > 0; --left) {
    auto& [key, ledger] = note.ledgers.emplace_back();
    key = from.text();
    if (const char* wrong = get_ledger(from, ledger)) return wrong;
  }
  for (std::size_t left = get_count(from, 2); left > 0; --left) {
    model::StateEntry& entry = note.states.emplace_back();
    const std::uint8_t snapshot = from.u8();
    if (snapshot > 1) return "bad kind of state entry";
    entry.snapshot = snapshot == 1;
    entry.bytes = from.text();
    if (from.failed()) break;
  }
  if (version > 1) {
    if (const char* wrong = read_tombstones(from, note.tombstones)) return wrong;
  }
  if (version > 2) {
    for (model::Tombstone& t : note.tombstones) t.raw_samples = from.varint();
    if (!has_raw_samples(note)) return "a version that its content does not need";
  }
  return from.finished() ? nullptr : "too short, too long or a number that is not in its shortest form";
}

}  // namespace

std::string encode_note(const model::OriginNote& note) {
  const bool raw = has_raw_samples(note);
  std::string out = begin_envelope(raw ? kWithRawSamples : kFormat);
  base::ByteWriter to(out);
  put_publications(to, note.publications);
  to.varint(note.ledgers.size());
  for (const auto& [key, ledger] : note.ledgers) {
    to.text(key);
    put_ledger(to, ledger);
  }
  to.varint(note.states.size());
  for (const model::StateEntry& entry : note.states) {
    to.u8(entry.snapshot ? 1 : 0);
    to.text(entry.bytes);
  }
  to.varint(note.tombstones.size());
  for (const model::Tombstone& t : note.tombstones) {
    to.varint(t.first);
    to.varint(t.last - t.first);
    to.text(t.reason);
    put_time(to, t.from);
    put_time(to, t.to);
    to.varint(t.samples.size());
    for (const auto& [key, samples] : t.samples) {
      to.text(key);
      to.varint(samples);
    }
  }
  if (raw) {
    for (const model::Tombstone& t : note.tombstones) to.varint(t.raw_samples);
  }
  end_envelope(out);
  return out;
}

absl::StatusOr<model::OriginNote> decode_note(std::string_view bytes) {
  const int version = bytes.size() > 1 ? bytes[1] : 0;
  const Format& format = version == kWithoutTombstones.version ? kWithoutTombstones
                         : version == kWithRawSamples.version  ? kWithRawSamples
                                                               : kFormat;
  const absl::StatusOr<std::string_view> body = open_envelope(format, bytes);
  if (!body.ok()) return body.status();
  base::ByteReader from(*body);
  model::OriginNote note;
  if (const char* wrong = read(from, note, format.version)) return malformed(kFormat, wrong);
  return note;
}

}  // namespace orla::codec
