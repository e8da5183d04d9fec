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
#include "codec/rows.h"

namespace orla::codec {
namespace {

using model::EdgeState;
using model::from_ns;
using model::GroupId;
using model::OriginNote;
using model::Partial;
using model::PartialRow;
using model::PartialRows;

constexpr std::int64_t kMinute = 60'000'000'000;

Partial some_partial(base::Random& random, model::Time slice) {
  Partial p;
  const std::uint64_t samples = 1 + random.below(4);
  const std::uint64_t kind = random.below(6);
  for (std::uint64_t i = 0; i < samples; ++i) {
    double v = static_cast<double>(random.below(2'000'000)) / 1000.0;
    if (kind == 0) v = random.unit();
    if (kind == 1) v = -v;
    if (kind == 2) v = 0;
    if (kind == 3 && random.below(2) == 0) v = std::bit_cast<double>(random.below(std::uint64_t{1} << 62));
    const std::uint64_t offset = random.below(60) * 1'000'000'000 + (kind == 4 ? random.below(1'000'000'000) : 0);
    p.add(slice + model::Duration(static_cast<std::int64_t>(offset)), v, 3);
  }
  return p;
}

PartialRows some_rows(base::Random& random, std::size_t count) {
  PartialRows rows;
  for (std::size_t i = 0; i < count; ++i) {
    const auto slice = from_ns((22966000 + static_cast<std::int64_t>(random.below(5))) * kMinute);
    rows.push_back(PartialRow{GroupId{static_cast<std::uint32_t>(random.below(count))}, slice, {}});
    rows.back().partial = some_partial(random, slice);
  }
  model::canonicalize(rows);
  return rows;
}

// Rows some of which have sketches, of either kind or both.
PartialRows sketched_rows(base::Random& random, std::size_t count) {
  PartialRows rows = some_rows(random, count);
  for (PartialRow& row : rows) {
    const std::uint64_t kinds = random.below(4);
    Partial p;
    p.sketches = model::Sketches({(kinds & 1) != 0, (kinds & 2) != 0});
    for (std::uint64_t i = 1 + random.below(80); i > 0; --i)
      p.add(row.slice, (static_cast<double>(random.below(4'000'000)) - 1'000'000) / 1000.0, 3);
    if (model::DistinctSketch* distinct = p.sketches.distinct())
      for (std::uint64_t i = random.below(20) == 0 ? 700 : 1; i > 0; --i) distinct->add(random.next());
    row.partial = p;
  }
  return rows;
}

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

// `good` cut short, lengthened, and changed (also with the checksum made right) gives an error, or what it now says.
void expect_robust(const std::string& good, const std::function<absl::Status(std::string_view)>& decode) {
  ASSERT_TRUE(decode(good).ok()) << decode(good);
  base::SeededRandom random(good.size());
  for (std::size_t size = 0; size < good.size(); size += 1 + size / 16)
    EXPECT_FALSE(decode(std::string_view(good).substr(0, size)).ok());
  EXPECT_FALSE(decode(good + "x").ok());
  for (int i = 0; i < 400; ++i) {
    std::string bad = good;
    char& byte = bad[random.below(bad.size() - 8)];
    byte = static_cast<char>(byte ^ static_cast<char>(1 + random.below(255)));
    EXPECT_EQ(decode(bad).code(), absl::StatusCode::kDataLoss);
    bad.resize(bad.size() - 8);
    end_envelope(bad);
    decode(bad).IgnoreError();
  }
  std::string longer = good.substr(0, good.size() - 8) + std::string(1, '\0');
  end_envelope(longer);
  EXPECT_FALSE(decode(longer).ok());
  std::string newer = good;
  newer[1] = 9;
  newer.resize(newer.size() - 8);
  end_envelope(newer);
  EXPECT_EQ(decode(newer).code(), absl::StatusCode::kUnimplemented);
}

TEST(Rows, ComeBack) {
  base::SeededRandom random(1);
  for (int round = 0; round < 200; ++round) {
    const PartialRows rows = some_rows(random, random.below(50));
    const absl::StatusOr<PartialRows> back = decode_rows(encode_rows(rows));
    ASSERT_TRUE(back.ok()) << back.status();
    ASSERT_EQ(*back, rows);
  }
}

TEST(Rows, ExtremesComeBack) {
  PartialRows rows;
  const auto add = [&](std::uint32_t group, model::Time slice, std::initializer_list<double> values) {
    PartialRow& row = rows.emplace_back(PartialRow{GroupId{group}, slice, {}});
    for (const double v : values) row.partial.add(slice, v, 0);
  };
  add(0, from_ns(INT64_MIN), {0x1p53, -0x1p53});
  add(0, from_ns(INT64_MAX), {1.7976931348623157e308, -1.7976931348623157e308, 5e-324});
  add(UINT32_MAX, from_ns(-1), {0x1p53 + 2});
  add(UINT32_MAX, from_ns(0), {-0.0, 0.0});
  rows.back().partial.count = UINT64_MAX;
  rows.back().partial.sums = model::ExactSum::from_decimals(-(base::Int128{1} << 126), base::Int128{1} << 126);
  const absl::StatusOr<PartialRows> back = decode_rows(encode_rows(rows));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(*back, rows);
}

TEST(Rows, SmallNumbersTakeFewBytes) {
  // 1000 groups of one minute, 30 samples each, 3 decimals: what a chunk of plugs is.
  base::SeededRandom random(2);
  PartialRows rows;
  for (std::uint32_t group = 0; group < 1000; ++group) {
    PartialRow& row = rows.emplace_back(PartialRow{GroupId{group}, from_ns(22966000 * kMinute), {}});
    for (int i = 0; i < 30; ++i)
      row.partial.add(row.slice + std::chrono::seconds(2 * i), static_cast<double>(random.below(100'000)) / 1000, 3);
  }
  EXPECT_LT(encode_rows(rows).size(), rows.size() * 28);
}

TEST(Rows, RefusesWhatIsNotCanonical) {
  base::SeededRandom random(3);
  expect_robust(encode_rows(some_rows(random, 40)), [](std::string_view bytes) -> absl::Status {
    const absl::StatusOr<PartialRows> rows = decode_rows(bytes);
    if (!rows.ok()) return rows.status();
    PartialRows sorted = *rows;
    model::canonicalize(sorted);
    EXPECT_EQ(sorted, *rows);
    for (const PartialRow& row : *rows) {
      EXPECT_GT(row.partial.count, 0u);
      EXPECT_LE(row.partial.min, row.partial.max);
      EXPECT_LE(row.partial.first_time, row.partial.last_time);
      EXPECT_TRUE(std::isfinite(row.partial.first) && std::isfinite(row.partial.last));
    }
    return absl::OkStatus();
  });
}

TEST(Rows, TakesNoMemoryForRowsThatAreNotThere) {
  std::string bytes = begin_envelope({'R', 1, "rows"});
  base::ByteWriter(bytes).varint(kMaxRows);
  bytes += std::string(100, '\0');
  end_envelope(bytes);
  EXPECT_EQ(decode_rows(bytes).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(RowsCodec, RowsWithSketchesComeBackAsVersionTwo) {
  base::SeededRandom random(11);
  for (int i = 0; i < 100; ++i) {
    const PartialRows rows = sketched_rows(random, 1 + random.below(40));
    const std::string bytes = encode_rows(rows);
    const bool sketched =
        std::any_of(rows.begin(), rows.end(), [](const PartialRow& row) { return !row.partial.sketches.none(); });
    EXPECT_EQ(version_of(bytes), sketched ? 2 : 1);
    const absl::StatusOr<PartialRows> back = decode_rows(bytes);
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(*back, rows);
    EXPECT_EQ(encode_rows(*back), bytes);
  }
  const PartialRows rows = sketched_rows(random, 5);
  expect_robust(encode_rows(rows), [](std::string_view bytes) { return decode_rows(bytes).status(); });
}

TEST(RowsCodec, SketchesThatContradictTheirRowAreRefused) {
  PartialRows rows(1);
  Partial& p = rows[0].partial;
  p.sketches = model::Sketches({true, false});
  p.add(from_ns(1), 2.5, 1);
  ASSERT_TRUE(decode_rows(encode_rows(rows)).ok());
  p.sketches.quantiles()->add(2.5);
  EXPECT_EQ(decode_rows(encode_rows(rows)).status().message(), "rows: a quantile sketch of more or fewer samples");
  p.sketches = model::Sketches({false, true});
  EXPECT_EQ(decode_rows(encode_rows(rows)).status().message(), "rows: a distinct sketch of nothing");
  p.sketches.distinct()->add(1);
  EXPECT_TRUE(decode_rows(encode_rows(rows)).ok());
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

// The seeds of the fuzzer are bodies of version 1, but for the one that is named after what version 2 added.
TEST(EdgeStateCodec, ReadsTheVersionWithoutProducers) {
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
  EXPECT_EQ(state_of("empty", 3).status().code(), absl::StatusCode::kUnimplemented);
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
