// Round trips and refusals of every format of this room.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>

#include "base/files.h"
#include "base/hash.h"
#include "base/random.h"
#include "codec/edge_state.h"
#include "codec/envelope.h"
#include "codec/note.h"
#include "codec/partial.h"
#include "codec/robust_for_tests.h"
#include "codec/rows.h"
#include "codec/rows_for_tests.h"

namespace orla::codec {
namespace {

using model::EdgeState;
using model::from_ns;
using model::GroupId;
using model::OriginNote;
using model::Partial;
using model::PartialRow;
using model::PartialRows;

model::Ledger some_ledger(base::Random& random) {
  model::Ledger l;
  l.received = random.below(1'000'000);
  l.aggregated = random.below(1000);
  l.late = {random.below(100), random.next()};
  l.rejected = {{"jump", random.below(10)}, {"malformed", 3}};
  l.rejected_set = {5, random.next()};
  if (random.below(2) == 0) l.dropped = {{"series_limit", 9}};
  l.held = random.below(3);
  return l;
}

EdgeState some_state(base::Random& random) {
  EdgeState s;
  s.snapshot = random.below(2) == 0;
  s.sealed_everything = random.below(2) == 0;
  s.new_series = {{"load", {{"house", "1"}, {"plug", ""}}}, {"work", {}}};
  s.new_groups = {{"plug_load", random.next(), kMinute, 3, {{"house", "1"}}}};
  s.sealed = {{"house_load", from_ns(5)}, {"plug_load", model::kMaxTime}};
  s.open = some_rows(random, 20);
  std::uint32_t id = 0;
  for (int i = 0; i < 12; ++i) {
    model::SeriesState& series = s.series.emplace_back();
    series.series = model::SeriesId{id += 1 + static_cast<std::uint32_t>(random.below(3))};
    series.input = static_cast<std::uint32_t>(random.below(3));
    if (random.below(4) != 0) series.watermark = from_ns(static_cast<std::int64_t>(random.below(2000)) * 1'000'000'000);
    if (random.below(8) == 0) series.watermark = from_ns(static_cast<std::int64_t>(random.next()));
    for (std::uint64_t k = random.below(3); k > 0; --k)
      series.held.push_back({from_ns(static_cast<std::int64_t>(random.next())), random.unit(), 1});
  }
  s.inputs = {{"edge-1/0", {random.next(), random.next()}, false, some_ledger(random), from_ns(77)},
              {"edge-1/1", {}, true, {}, model::kMinTime}};
  for (std::uint32_t input = 0; input < 2; ++input) {
    for (const char* producer : {"", "meter-1", "meter-2"}) {
      if (random.below(2) == 0) s.producers.push_back({producer, input, random.next()});
    }
  }
  s.publications = {{"load", from_ns(static_cast<std::int64_t>(random.next()))}, {"work", model::kMinTime}};
  return s;
}

OriginNote some_note(base::Random& random) {
  OriginNote n;
  n.publications = {{"load", from_ns(-7)}, {"work", model::kMaxTime}};
  n.ledgers = {{"edge-1/1", some_ledger(random)}, {"edge-1/0", some_ledger(random)}};
  if (random.below(2) == 0) n.states = {{true, "abc"}, {false, std::string("\0", 1)}};
  if (random.below(2) == 0) {
    n.tombstones = {
        {3, 3, "damaged", {}, model::kMaxTime, model::kMinTime},
        {7, 5000, "drop_oldest", {{"edge-1/0", random.next()}, {"edge-1/1", 0}}, from_ns(-60), from_ns(60)}};
  }
  return n;
}

TEST(PartialCodec, ComesBack) {
  base::SeededRandom random(4);
  for (int i = 0; i < 100; ++i) {
    const Partial p = some_partial(random, from_ns(kMinute));
    const absl::StatusOr<Partial> back = decode_partial(encode_partial(p));
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(*back, p);
  }
  for (const PartialRow& row : sketched_rows(random, 30)) {
    const std::string bytes = encode_partial(row.partial);
    EXPECT_EQ(version_of(bytes), row.partial.sketches.none() ? 1 : 2);
    EXPECT_EQ(*decode_partial(bytes), row.partial);
  }
  Partial contributions;
  contributions.add_contribution(0.1);
  contributions.add_contribution(-3);
  EXPECT_EQ(*decode_partial(encode_partial(contributions)), contributions);
  EXPECT_EQ(*decode_partial(encode_partial(Partial())), Partial());
  Partial p = some_partial(random, from_ns(0));
  p.add(from_ns(9), 0.123, 1);
  expect_robust(encode_partial(p), [](std::string_view bytes) { return decode_partial(bytes).status(); });
}

TEST(EdgeStateCodec, ComesBack) {
  base::SeededRandom random(5);
  for (int i = 0; i < 100; ++i) {
    const EdgeState s = some_state(random);
    const absl::StatusOr<EdgeState> back = decode_edge_state(encode_edge_state(s));
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(*back, s);
  }
  EXPECT_EQ(*decode_edge_state(encode_edge_state(EdgeState())), EdgeState());
  EdgeState unsorted;
  unsorted.producers = {{"b", 0, 1}, {"a", 0, 1}};
  EXPECT_EQ(decode_edge_state(encode_edge_state(unsorted)).status().code(), absl::StatusCode::kInvalidArgument);
  expect_robust(encode_edge_state(some_state(random)),
                [](std::string_view bytes) { return decode_edge_state(bytes).status(); });
}

// The seeds of the fuzzer are bodies of version 1, but for those that are named after what later versions added.
TEST(EdgeStateCodec, ReadsOlderVersions) {
  const auto state_of = [](const std::string& seed, std::uint8_t version) {
    const absl::StatusOr<std::string> body = base::read_file("tests/corpus/edge_state/" + seed, 1 << 20);
    EXPECT_TRUE(body.ok()) << body.status();
    std::string bytes = begin_envelope({'S', version, "edge state"});
    bytes += *body;
    end_envelope(bytes);
    return decode_edge_state(bytes);
  };
  for (const char* seed : {"empty", "some0", "some1"}) {
    const absl::StatusOr<EdgeState> old = state_of(seed, 1);
    ASSERT_TRUE(old.ok()) << seed << ": " << old.status();
    EXPECT_TRUE(old->producers.empty());
    EXPECT_EQ(*decode_edge_state(encode_edge_state(*old)), *old);
    EXPECT_FALSE(state_of(seed, 2).ok());
  }
  EXPECT_EQ(state_of("producers", 2)->producers, (std::vector<model::ProducerState>{{"a", 0, 5}, {"ab", 0, 128}}));
  EXPECT_EQ(state_of("producers", 1).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(state_of("producers", 3).ok());
  EXPECT_EQ(state_of("pieces", 3)->open.size(), 3U);
  EXPECT_FALSE(state_of("pieces", 2).ok());
  EXPECT_EQ(state_of("empty", 4).status().code(), absl::StatusCode::kUnimplemented);
}

TEST(EdgeStateCodec, OpenRowsComeInPieces) {
  EdgeState s;
  for (std::uint32_t i = 0; i < 2 * model::kPiece + 1; ++i) {
    model::PartialRow& row = s.open.emplace_back();
    row.group = model::GroupId{i / 2};
    row.slice = from_ns(i % 2 * 60);
    row.partial.add(from_ns(i % 2 * 60 + 1), i, 0);
  }
  EXPECT_EQ(*decode_edge_state(encode_edge_state(s)), s);
  const auto piece = [&](std::size_t begin, std::size_t end) {
    return encode_rows(model::PartialRows(s.open.begin() + begin, s.open.begin() + end));
  };
  const auto decoded = [](const std::vector<std::string>& open) {
    return decode_edge_state(encode_edge_state_of(EdgeState(), {{}, open}));
  };
  EXPECT_EQ(decoded({piece(0, 1), piece(1, 3)})->open, model::PartialRows(s.open.begin(), s.open.begin() + 3));
  for (const std::vector<std::string>& bad : {std::vector{piece(1, 3), piece(0, 1)},
                                              {piece(0, 2), piece(1, 3)},
                                              {piece(0, 2), piece(2, 2)},
                                              {std::string("rows")}})
    EXPECT_EQ(decoded(bad).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(EdgeStateCodec, SeriesComeInPieces) {
  EdgeState s;
  for (std::uint32_t i = 0; i < 2 * model::kPiece + 1; ++i)
    s.series.push_back({model::SeriesId{2 * i}, from_ns(i), 0, {}});
  EXPECT_EQ(*decode_edge_state(encode_edge_state(s)), s);
  const auto decoded = [&](const std::vector<std::pair<std::size_t, std::size_t>>& pieces) {
    StatePieces made;
    for (const auto& [begin, end] : pieces) made.add_series(std::span(s.series).subspan(begin, end - begin));
    return decode_edge_state(encode_edge_state_of(EdgeState(), made));
  };
  EXPECT_EQ(decoded({{0, 1}, {1, 3}})->series, std::vector(s.series.begin(), s.series.begin() + 3));
  EXPECT_EQ(decoded({{1, 3}, {0, 1}}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(decoded({{0, 2}, {1, 3}}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(decoded({{0, 2}, {2, 2}}).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(NoteCodec, ComesBack) {
  base::SeededRandom random(6);
  for (int i = 0; i < 50; ++i) {
    const OriginNote n = some_note(random);
    const absl::StatusOr<OriginNote> back = decode_note(encode_note(n));
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(*back, n);
  }
  EXPECT_EQ(*decode_note(encode_note(OriginNote())), OriginNote());
  expect_robust(encode_note(some_note(random)), [](std::string_view bytes) { return decode_note(bytes).status(); });
}

TEST(NoteCodec, ReadsNotesWithoutTombstones) {
  std::string bytes = begin_envelope({'N', 1, "note"});
  base::ByteWriter to(bytes);
  to.varint(1);  // publications
  to.text("load");
  to.u64(60);
  to.varint(0);  // ledgers
  to.varint(1);  // states
  to.u8(1);
  to.text("s");
  end_envelope(bytes);
  OriginNote expected;
  expected.publications = {{"load", from_ns(60)}};
  expected.states = {{true, "s"}};
  ASSERT_TRUE(decode_note(bytes).ok()) << decode_note(bytes).status();
  EXPECT_EQ(*decode_note(bytes), expected);
}

TEST(Envelope, IsByteForByteWhatItSays) {
  std::string bytes = begin_envelope({'N', 1, "note"});
  EXPECT_EQ(bytes, "N\x01");
  bytes += "ab";
  end_envelope(bytes);
  ASSERT_EQ(bytes.size(), 12u);
  EXPECT_EQ(base::ByteReader(std::string_view(bytes).substr(4)).u64(), base::hash64("N\x01"
                                                                                    "ab"));
  EXPECT_EQ(open_envelope({'S', 1, "edge state"}, bytes).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace orla::codec
