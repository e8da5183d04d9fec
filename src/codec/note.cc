// Format (in an envelope, kind "N"): publications and ledgers as in account.cc, a ledger after its input key (text),
// preceded by their number; then the number of state entries and for each: 1 for a snapshot else 0, its bytes (text).
#include "codec/note.h"

#include "codec/account.h"
#include "codec/envelope.h"

namespace orla::codec {

namespace {

constexpr Format kFormat = {'N', 1, "note"};

const char* read(base::ByteReader& from, model::OriginNote& note) {
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
  return from.finished() ? nullptr : "too short, too long or a number that is not in its shortest form";
}

}  // namespace

std::string encode_note(const model::OriginNote& note) {
  std::string out = begin_envelope(kFormat);
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
  end_envelope(out);
  return out;
}

absl::StatusOr<model::OriginNote> decode_note(std::string_view bytes) {
  const absl::StatusOr<std::string_view> body = open_envelope(kFormat, bytes);
  if (!body.ok()) return body.status();
  base::ByteReader from(*body);
  model::OriginNote note;
  if (const char* wrong = read(from, note)) return malformed(kFormat, wrong);
  return note;
}

}  // namespace orla::codec
