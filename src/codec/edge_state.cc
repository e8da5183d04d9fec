// Format (in an envelope, kind "S"), version 3. Also read: version 2, whose open rows and series are one piece each,
// without a number before it (and without a length, the series), and version 1, which has no producers either:
//
//   flags         1 byte: 1 = snapshot, 2 = sealed everything
//   new series    number; for each: metric (text), labels
//   new groups    number; for each: stream (text), definition (8 bytes), slice in ns (8 bytes), decimals (1 byte),
//                 labels
//   sealed        number; for each: stream (text), time (8 bytes); sorted by stream
//   open          number of pieces; for each: text, encode_rows() of at least one row; rows rise from piece to piece
//   series        number of pieces; for each, as a text: number, at least 1; time unit, 1 byte: 0 = s, 1 = ms, 2 = us,
//   3 = ns (0 when none follow); for each: its id (the
//                 first) or id - id before - 1; 4 * (number of held samples) + 1 when it has a watermark; the watermark
//                 in time units, minus that of the one before that has one (the first: minus 0), zigzag; its input;
//                 for each held sample: time - watermark in ns (zigzag, minus 0 when there is none), value (8 bytes),
//                 input
//   inputs        number; for each: key (text), offset, row, 1 when ended else 0 (1 byte), newest (8 bytes), ledger
//                 (account.cc)
//   producers     number; for each: input, producer (text), sequence; sorted by input and producer
//   publications  (account.cc)
//
// Labels: their number; name and value (text) for each. Differences of times are modulo 2^64.
#include "codec/edge_state.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <iterator>
#include <tuple>
#include <utility>
#include <vector>

#include "codec/account.h"
#include "codec/envelope.h"
#include "codec/rows.h"

namespace orla::codec {

using base::ByteReader;
using base::ByteWriter;

namespace {

constexpr Format kFormat = {'S', 3, "edge state"};
constexpr Format kWithoutPieces = {'S', 2, "edge state"};
constexpr Format kWithoutProducers = {'S', 1, "edge state"};
constexpr std::array<std::int64_t, 4> kTimeUnits = {1'000'000'000, 1'000'000, 1'000, 1};
constexpr std::size_t kMostHeld = 2;

std::uint64_t bits(model::Time t) { return static_cast<std::uint64_t>(model::to_ns(t)); }

void put_labels(ByteWriter& to, const std::vector<model::Label>& labels) {
  to.varint(labels.size());
  for (const auto& [name, value] : labels) {
    to.text(name);
    to.text(value);
  }
}

void get_labels(ByteReader& from, std::vector<model::Label>& labels) {
  for (std::size_t left = get_count(from, 2); left > 0; --left) {
    auto& [name, value] = labels.emplace_back();
    name = from.text();
    value = from.text();
  }
}

bool has_watermark(const model::SeriesState& s) { return s.watermark != model::kMinTime; }

std::uint8_t choose_time_unit(std::span<const model::SeriesState> series) {
  std::uint8_t unit = 0;
  for (const model::SeriesState& s : series)
    while (has_watermark(s) && model::to_ns(s.watermark) % kTimeUnits[unit] != 0) ++unit;
  return unit;
}

void put_series(ByteWriter& to, std::span<const model::SeriesState> series) {
  to.varint(series.size());
  const std::uint8_t unit = choose_time_unit(series);
  to.u8(unit);
  std::uint64_t next = 0;
  std::int64_t before = 0;  // in units
  for (const model::SeriesState& s : series) {
    to.varint(index(s.series) - next);
    next = std::uint64_t{index(s.series)} + 1;
    to.varint(4 * s.held.size() + (has_watermark(s) ? 1 : 0));
    if (has_watermark(s)) {
      const std::int64_t units = model::to_ns(s.watermark) / kTimeUnits[unit];
      to.varint(base::zigzag(
          static_cast<std::int64_t>(static_cast<std::uint64_t>(units) - static_cast<std::uint64_t>(before))));
      before = units;
    }
    to.varint(s.input);
    const std::uint64_t since = has_watermark(s) ? bits(s.watermark) : 0;
    for (const model::HeldSample& h : s.held) {
      to.varint(base::zigzag(static_cast<std::int64_t>(bits(h.time) - since)));
      to.u64(std::bit_cast<std::uint64_t>(h.value));
      to.varint(h.input);
    }
  }
}

const char* get_series(ByteReader& from, std::vector<model::SeriesState>& series) {
  const std::size_t count = get_count(from, 3);
  const std::uint8_t unit = from.u8();
  if (unit >= kTimeUnits.size()) return "bad time unit";
  std::uint64_t next = 0;
  std::int64_t before = 0;
  for (std::size_t i = 0; i < count; ++i) {
    model::SeriesState& s = series.emplace_back();
    const std::uint64_t gap = from.varint();
    if (gap > UINT32_MAX || next + gap > UINT32_MAX) return "series number out of range";
    s.series = model::SeriesId{static_cast<std::uint32_t>(next + gap)};
    next += gap + 1;
    const std::uint64_t code = from.varint();
    const std::uint64_t held = code / 4;
    if (held > kMostHeld || code % 4 > 1) return "bad series state";
    if (code % 4 == 1) {
      before = static_cast<std::int64_t>(static_cast<std::uint64_t>(before) +
                                         static_cast<std::uint64_t>(base::unzigzag(from.varint())));
      std::int64_t ns = 0;
      if (__builtin_mul_overflow(before, kTimeUnits[unit], &ns) || ns == INT64_MIN) return "watermark out of range";
      s.watermark = model::from_ns(ns);
    }
    const std::uint64_t deliverer = from.varint();
    if (deliverer > UINT32_MAX) return "input number out of range";
    s.input = static_cast<std::uint32_t>(deliverer);
    const std::uint64_t since = has_watermark(s) ? bits(s.watermark) : 0;
    for (std::uint64_t k = 0; k < held; ++k) {
      model::HeldSample& h = s.held.emplace_back();
      h.time =
          model::from_ns(static_cast<std::int64_t>(since + static_cast<std::uint64_t>(base::unzigzag(from.varint()))));
      h.value = std::bit_cast<double>(from.u64());
      const std::uint64_t input = from.varint();
      if (!std::isfinite(h.value) || input > UINT32_MAX) return "bad held sample";
      h.input = static_cast<std::uint32_t>(input);
    }
    if (from.failed()) break;
  }
  return nullptr;
}

void put_inputs(ByteWriter& to, const std::vector<model::InputState>& inputs) {
  to.varint(inputs.size());
  for (const model::InputState& input : inputs) {
    to.text(input.key);
    to.varint(input.position.offset);
    to.varint(input.position.row);
    to.u8(input.ended ? 1 : 0);
    put_time(to, input.newest);
    put_ledger(to, input.ledger);
  }
}

const char* get_inputs(ByteReader& from, std::vector<model::InputState>& inputs) {
  for (std::size_t left = get_count(from, 36); left > 0; --left) {
    model::InputState& input = inputs.emplace_back();
    input.key = from.text();
    input.position.offset = from.varint();
    input.position.row = from.varint();
    const std::uint8_t ended = from.u8();
    if (ended > 1) return "bad input state";
    input.ended = ended == 1;
    input.newest = get_time(from);
    if (const char* wrong = get_ledger(from, input.ledger)) return wrong;
  }
  return nullptr;
}

const char* get_producers(ByteReader& from, std::vector<model::ProducerState>& producers) {
  for (std::size_t left = get_count(from, 3); left > 0; --left) {
    model::ProducerState p;
    const std::uint64_t input = from.varint();
    p.producer = from.text();
    p.sequence = from.varint();
    if (input > UINT32_MAX) return "input number of a producer out of range";
    p.input = static_cast<std::uint32_t>(input);
    if (from.failed()) break;
    if (!producers.empty() &&
        std::tie(producers.back().input, producers.back().producer) >= std::tie(p.input, p.producer))
      return "producers that are not sorted";
    producers.push_back(std::move(p));
  }
  return nullptr;
}

// The pieces of series.
const char* get_series_pieces(ByteReader& from, std::vector<model::SeriesState>& series) {
  for (std::size_t left = get_count(from, 6); left > 0; --left) {
    ByteReader piece(from.text());
    const std::size_t before = series.size();
    if (const char* wrong = get_series(piece, series)) return wrong;
    if (!piece.finished() || series.size() == before) return "a piece of series that is too short or too long";
    if (before > 0 && series[before].series <= series[before - 1].series) return "pieces of series that are not sorted";
  }
  return nullptr;
}

absl::Status get_open(ByteReader& from, std::uint8_t version, model::PartialRows& open) {
  const bool pieces = version == kFormat.version;
  for (std::size_t left = pieces ? get_count(from, 2) : 1; left > 0; --left) {
    const std::string_view bytes = from.text();
    if (from.failed()) return malformed(kFormat, "ends early");
    absl::StatusOr<model::PartialRows> rows = decode_rows(bytes);
    if (!rows.ok()) return rows.status();
    if (!pieces) {
      open = *std::move(rows);
      continue;
    }
    if (rows->empty()) return malformed(kFormat, "a piece without rows");
    const model::PartialRow& first = rows->front();
    if (!open.empty() && std::pair(open.back().group, open.back().slice) >= std::pair(first.group, first.slice))
      return malformed(kFormat, "pieces of rows that are not sorted");
    open.insert(open.end(), std::make_move_iterator(rows->begin()), std::make_move_iterator(rows->end()));
  }
  return absl::OkStatus();
}

absl::Status read(ByteReader& from, std::uint8_t version, model::EdgeState& state) {
  const std::uint8_t flags = from.u8();
  if (flags > 3) return malformed(kFormat, "unknown flags");
  state.snapshot = (flags & 1) != 0;
  state.sealed_everything = (flags & 2) != 0;
  for (std::size_t left = get_count(from, 2); left > 0; --left) {
    model::Series& series = state.new_series.emplace_back();
    series.metric = from.text();
    get_labels(from, series.labels);
  }
  for (std::size_t left = get_count(from, 19); left > 0; --left) {
    model::GroupDef& group = state.new_groups.emplace_back();
    group.stream = from.text();
    group.definition = from.u64();
    group.slice_ns = static_cast<std::int64_t>(from.u64());
    group.decimals = from.u8();
    get_labels(from, group.labels);
    if (!from.failed() && (group.slice_ns <= 0 || group.decimals > model::kMaxDecimals))
      return malformed(kFormat, "a group whose slice or decimals are out of range");
  }
  for (std::size_t left = get_count(from, 9); left > 0; --left) {
    model::SealedStream sealed{std::string(from.text()), get_time(from)};
    if (!state.sealed.empty() && sealed.stream <= state.sealed.back().stream)
      return malformed(kFormat, "sealed streams that are not sorted");
    state.sealed.push_back(std::move(sealed));
  }
  if (absl::Status status = get_open(from, version, state.open); !status.ok()) return status;
  const char* const wrong_series =
      version == kFormat.version ? get_series_pieces(from, state.series) : get_series(from, state.series);
  if (wrong_series != nullptr) return malformed(kFormat, wrong_series);
  if (const char* wrong = get_inputs(from, state.inputs)) return malformed(kFormat, wrong);
  if (version != kWithoutProducers.version) {
    if (const char* wrong = get_producers(from, state.producers)) return malformed(kFormat, wrong);
  }
  if (const char* wrong = get_publications(from, state.publications)) return malformed(kFormat, wrong);
  if (!from.finished()) return malformed(kFormat, "too short, too long or a number that is not in its shortest form");
  return absl::OkStatus();
}

}  // namespace

void StatePieces::add_series(std::span<const model::SeriesState> piece) {
  ByteWriter to(series.emplace_back());
  put_series(to, piece);
}

void StatePieces::add_open(const model::PartialRows& piece) { open.push_back(encode_rows(piece)); }

std::string encode_edge_state(const model::EdgeState& state) {
  StatePieces pieces;
  for (std::size_t begin = 0; begin < state.series.size(); begin += model::kPiece)
    pieces.add_series(std::span(state.series).subspan(begin, std::min(model::kPiece, state.series.size() - begin)));
  const auto at = [&](std::size_t i) { return state.open.begin() + static_cast<std::ptrdiff_t>(i); };
  for (std::size_t begin = 0; begin < state.open.size(); begin += model::kPiece) {
    const std::size_t end = std::min(state.open.size(), begin + model::kPiece);
    if (begin == 0 && end == state.open.size())
      pieces.add_open(state.open);
    else
      pieces.add_open(model::PartialRows(at(begin), at(end)));
  }
  return encode_edge_state_of(state, pieces);
}

std::string encode_edge_state_of(const model::EdgeState& state, const StatePieces& pieces) {
  std::string out = begin_envelope(kFormat);
  ByteWriter to(out);
  to.u8(static_cast<std::uint8_t>((state.snapshot ? 1 : 0) + (state.sealed_everything ? 2 : 0)));
  to.varint(state.new_series.size());
  for (const model::Series& series : state.new_series) {
    to.text(series.metric);
    put_labels(to, series.labels);
  }
  to.varint(state.new_groups.size());
  for (const model::GroupDef& group : state.new_groups) {
    to.text(group.stream);
    to.u64(group.definition);
    to.u64(static_cast<std::uint64_t>(group.slice_ns));
    to.u8(static_cast<std::uint8_t>(group.decimals));
    put_labels(to, group.labels);
  }
  to.varint(state.sealed.size());
  for (const model::SealedStream& sealed : state.sealed) {
    to.text(sealed.stream);
    put_time(to, sealed.time);
  }
  to.varint(pieces.open.size());
  for (const std::string& piece : pieces.open) to.text(piece);
  to.varint(pieces.series.size());
  for (const std::string& piece : pieces.series) to.text(piece);
  put_inputs(to, state.inputs);
  to.varint(state.producers.size());
  for (const model::ProducerState& p : state.producers) {
    to.varint(p.input);
    to.text(p.producer);
    to.varint(p.sequence);
  }
  put_publications(to, state.publications);
  end_envelope(out);
  return out;
}

absl::StatusOr<model::EdgeState> decode_edge_state(std::string_view bytes) {
  const int version = bytes.size() > 1 ? static_cast<std::uint8_t>(bytes[1]) : 0;
  const Format& format = version == kWithoutProducers.version ? kWithoutProducers
                         : version == kWithoutPieces.version  ? kWithoutPieces
                                                              : kFormat;
  const absl::StatusOr<std::string_view> body = open_envelope(format, bytes);
  if (!body.ok()) return body.status();
  ByteReader from(*body);
  model::EdgeState state;
  const absl::Status status = read(from, format.version, state);
  if (!status.ok()) return status;
  return state;
}

}  // namespace orla::codec
