#include "codec/rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/files.h"
#include "codec/envelope.h"
#include "codec/number_block.h"
#include "codec/robust_for_tests.h"
#include "codec/row_forms.h"
#include "codec/rows_for_tests.h"

namespace orla::codec {
namespace {

using model::from_ns;
using model::GroupId;
using model::Partial;
using model::PartialRow;
using model::PartialRows;

void expect_comes_back(const PartialRows& rows) {
  const absl::StatusOr<PartialRows> back = decode_rows(encode_rows(rows));
  ASSERT_TRUE(back.ok()) << back.status();
  ASSERT_EQ(*back, rows);
}

// As versions 1 and 2 were written.
std::string as_varints(const PartialRows& rows, int decimals) {
  std::string out = begin_envelope(rows_format(kRowVarints));
  base::ByteWriter to(out);
  to.varint(rows.size());
  to.u8(static_cast<std::uint8_t>(decimals));
  to.u8(0);
  to.u64(time_bits(rows.front().slice));
  to.varint(kMinute);
  put_row_varints(to, rows, {decimals, 0, time_bits(rows.front().slice), kMinute});
  end_envelope(out);
  return out;
}

TEST(Rows, ComeBack) {
  base::SeededRandom random(1);
  for (int round = 0; round < 200; ++round) {
    expect_comes_back(some_rows(random, random.below(50)));
    expect_comes_back(sketched_rows(random, random.below(20)));
    expect_comes_back(plug_rows(random, 1 + static_cast<std::uint32_t>(random.below(40)),
                                1 + static_cast<std::int64_t>(random.below(5)), static_cast<int>(random.below(5))));
  }
  for (const std::size_t count : {255, 256, 257, 511, 512, 513, 2000}) {
    expect_comes_back(some_rows(random, count));
    expect_comes_back(plug_rows(random, static_cast<std::uint32_t>(count), 1, 3));
  }
}

// Of a few rows, and among so many that they are written as blocks.
TEST(Rows, ExtremesComeBack) {
  PartialRows rows;
  const auto add = [&](std::uint32_t group, model::Time slice, std::initializer_list<double> values) {
    PartialRow& row = rows.emplace_back(PartialRow{GroupId{group}, slice, {}});
    for (const double v : values) row.partial.add(slice, v, 0);
  };
  add(0, from_ns(INT64_MIN), {0x1p53, -0x1p53});
  add(0, from_ns(INT64_MAX), {1.7976931348623157e308, -1.7976931348623157e308, 5e-324});
  for (const std::uint32_t plain : {0U, 600U}) {
    for (std::uint32_t i = 0; i < plain; ++i) add(7 + i, from_ns(i), {0.5, i + 0.25});  // of two places
    if (plain > 0) {
      add(700, from_ns(5), {1, 2, 1e300});                         // an odd max
      add(701, from_ns(5), {0x1p-40, 1, 2});                       // an odd min
      add(702, from_ns(5), {1, 1.0 / 3, 2});                       // odd inside
      add(703, from_ns(5), {1.0 / 3});                             // odd and alone
      add(704, from_ns(5), {1.0 / 3, 1.0 / 3});                    // odd and the same
      add(705, from_ns(5), {9007199254740991, 9007199254740990});  // squares beyond 64 bits
      add(706, from_ns(5), {0, 0, 4503599627370496});
    }
    add(UINT32_MAX - 1, from_ns(-1), {0x1p53 + 2});
    add(UINT32_MAX - 1, from_ns(0), {-0.0, 0.0});
    rows.back().partial.count = UINT64_MAX;
    rows.back().partial.sums = model::ExactSum::from_decimals(-(base::Int128{1} << 126), base::Int128{1} << 126);
    add(UINT32_MAX, from_ns(0), {3, 4});
    rows.back().partial.sums = model::ExactSum::from_decimals((base::Int128{1} << 126), 0);
    expect_comes_back(rows);
    rows.resize(2);
  }
}

TEST(Rows, SmallNumbersTakeFewBytes) {
  base::SeededRandom random(2);
  // 30 samples a row, 3 decimals, a third of the plugs idle; the others spread over 5 W around some power up to 2 kW. A
  // row of those has to say: where (21 bits), three values within (3 * 13), its sum (18) and its squares (26). Idle
  // ones in between are no cheaper, as a block has one width for all.
  EXPECT_LT(encode_rows(plug_rows(random, 1000, 1, 3)).size(), 1000 * (21 + 3 * 13 + 18 + 26) / 8 + 500);
  // Idle ones say nothing, and take a byte so that nothing grows out of proportion when it is decoded.
  PartialRows idle = plug_rows(random, 3000, 1, 0);
  for (PartialRow& row : idle) row.partial = idle[0].partial;
  const std::string bytes = encode_rows(idle);
  EXPECT_GT(bytes.size(), idle.size());
  EXPECT_LT(bytes.size(), idle.size() + 40);
  std::string spoiled = bytes.substr(0, bytes.size() - 8);
  spoiled.back() = 1;
  end_envelope(spoiled);
  EXPECT_FALSE(decode_rows(spoiled).ok());
  for (const std::string& filling : {std::string(), std::string(2, '\0')}) {
    std::string other = bytes.substr(0, bytes.size() - 9) + filling;
    end_envelope(other);
    EXPECT_FALSE(decode_rows(other).ok());
  }
}

TEST(Rows, AFewAreNotLargerThanVarints) {
  base::SeededRandom random(12);
  bool as_blocks = false;
  for (std::uint32_t plugs = 1; plugs <= 40; ++plugs) {
    const PartialRows rows = plug_rows(random, plugs, 1 + static_cast<std::int64_t>(random.below(3)), 3);
    const std::string bytes = encode_rows(rows);
    ASSERT_EQ(*decode_rows(as_varints(rows, 3)), rows);
    EXPECT_LE(bytes.size(), as_varints(rows, 3).size()) << plugs;
    if (rows.size() > 8) as_blocks = version_of(bytes) == 3;
  }
  EXPECT_TRUE(as_blocks);
}

TEST(Rows, SumsOfMetricsWithOtherDecimalsStayShort) {
  // Values of three places, and of every second group counts without any, whose sums are integers.
  base::SeededRandom random(13);
  PartialRows rows = plug_rows(random, 600, 1, 3);
  const std::size_t alone = encode_rows(rows).size();
  for (std::size_t i = 0; i < rows.size(); i += 2) {
    Partial p;
    for (int k = 0; k < 30; ++k)
      p.add(rows[i].slice + model::Duration(2'000'000'000LL * k), static_cast<double>(random.below(50)), 0);
    rows[i].partial = p;
  }
  expect_comes_back(rows);
  EXPECT_LT(encode_rows(rows).size(), alone + 2 * rows.size());
}

TEST(Rows, RefusesWhatIsNotCanonical) {
  base::SeededRandom random(3);
  const auto decode = [](std::string_view bytes) -> absl::Status {
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
  };
  expect_robust(as_varints(plug_rows(random, 20, 2, 3), 3), decode);
  expect_robust(encode_rows(some_rows(random, 40)), decode);
  expect_robust(encode_rows(plug_rows(random, 300, 1, 2)), decode);
}

TEST(Rows, TakesNoMemoryForRowsThatAreNotThere) {
  for (const std::uint8_t version : {kRowVarints, kRowVarintsAndSketches, kRowBlocks}) {
    std::string bytes = begin_envelope(rows_format(version));
    base::ByteWriter(bytes).varint(kMaxRows);
    bytes += std::string(100, '\1');
    end_envelope(bytes);
    EXPECT_EQ(decode_rows(bytes).status().message(), "rows: more rows than its bytes can hold");
  }
}

TEST(Rows, GoldenBytesAreRead) {
  struct Golden {
    const char* name;
    std::uint8_t version;
    std::size_t rows;
    std::uint64_t hash;
  };
  constexpr Golden kGolden[] = {
      {"1-mixed", 1, 177, 0x6d5287b19ba49ebf},   {"1-plugs", 1, 300, 0xb8a1e50f01601801},
      {"1-slices", 1, 280, 0xc772c0804c62e55a},  {"1-none", 1, 0, 0x2d06800538d394c2},
      {"2-sketched", 2, 74, 0xe868b2ed4f1e5d15}, {"3-mixed", 3, 355, 0x2a84415c5cccbd1a},
      {"3-plugs", 3, 300, 0xb4bb8e2951fe712d},   {"3-slices", 3, 280, 0xa6c0f878fb598d54},
      {"3-sketched", 3, 72, 0x2bda95b9a9cf9318}, {"3-idle", 3, 600, 0x95c1381a7ce006e0},
  };
  for (const Golden& golden : kGolden) {
    const absl::StatusOr<std::string> bytes = base::read_file(std::string("tests/data/rows/") + golden.name, 1 << 20);
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    EXPECT_EQ(version_of(*bytes), golden.version) << golden.name;
    const absl::StatusOr<PartialRows> rows = decode_rows(*bytes);
    ASSERT_TRUE(rows.ok()) << rows.status();
    EXPECT_EQ(rows->size(), golden.rows) << golden.name;
    EXPECT_EQ(rows_hash(*rows), golden.hash) << golden.name;
  }
}

TEST(Rows, WithSketchesComeBack) {
  base::SeededRandom random(11);
  for (int i = 0; i < 100; ++i) {
    const PartialRows rows = sketched_rows(random, 1 + random.below(40));
    const std::string bytes = encode_rows(rows);
    const bool sketched =
        std::any_of(rows.begin(), rows.end(), [](const PartialRow& row) { return !row.partial.sketches.none(); });
    EXPECT_TRUE(version_of(bytes) == 3 || version_of(bytes) == (sketched ? 2 : 1));
    const absl::StatusOr<PartialRows> back = decode_rows(bytes);
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(*back, rows);
    EXPECT_EQ(encode_rows(*back), bytes);
  }
  for (const std::size_t count : {5, 60}) {
    const PartialRows rows = sketched_rows(random, count);
    expect_robust(encode_rows(rows), [](std::string_view bytes) { return decode_rows(bytes).status(); });
  }
}

TEST(Rows, SketchesThatContradictTheirRowAreRefused) {
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

TEST(NumberBlock, AnyNumbersComeBack) {
  base::SeededRandom random(21);
  for (int round = 0; round < 4000; ++round) {
    const std::size_t n = 1 + random.below(kBlockValues);
    const std::uint64_t bits = random.below(65);
    const std::uint64_t odd_bits = random.below(65);
    std::vector<std::int64_t> v(n);
    for (std::int64_t& x : v) {
      const std::uint64_t width = random.below(20) == 0 ? odd_bits : bits;
      x = static_cast<std::int64_t>(width == 0 ? 0 : random.next() >> (64 - width));
      if (round % 3 == 0) x = base::unzigzag(static_cast<std::uint64_t>(x));
    }
    std::vector<std::uint8_t> bytes(kNumbersRoom);
    std::uint8_t* const end = write_number_block(v.data(), n, bytes.data());
    const auto size = static_cast<std::size_t>(end - bytes.data());
    ASSERT_LE(size, 1 + 10 * n);
    bytes.resize(size);
    bytes.shrink_to_fit();
    std::vector<std::int64_t> back(n + kValueSlack);
    BlockBytes from{bytes.data(), bytes.data() + size};
    ASSERT_EQ(read_number_block(from, n, back.data()), nullptr);
    EXPECT_EQ(from.next, from.end);
    back.resize(n);
    ASSERT_EQ(back, v);
    for (std::size_t cut = 0; cut < size; cut += 1 + cut / 8) {
      const std::vector<std::uint8_t> part(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(cut));
      BlockBytes few{part.data(), part.data() + cut};
      back.resize(n + kValueSlack);
      EXPECT_NE(read_number_block(few, n, back.data()), nullptr);
    }
  }
}

TEST(NumberBlock, TakesTheSmallerOfItsForms) {
  const auto size_of = [](const std::vector<std::int64_t>& v) {
    std::uint8_t bytes[kNumbersRoom];
    return static_cast<std::size_t>(write_number_block(v.data(), v.size(), bytes) - bytes);
  };
  EXPECT_EQ(size_of(std::vector<std::int64_t>(200, 5)), 2);  // a frame without bits
  EXPECT_EQ(size_of({1, -2000, 3}), 1 + 1 + 2 + 1);          // varints
  std::vector<std::int64_t> far(256);
  for (std::size_t i = 0; i < far.size(); ++i) far[i] = static_cast<std::int64_t>(i * 0x9e3779b97f4a7c15U >> 24);
  EXPECT_LE(size_of(far), 256 * 40 / 8 + 16);  // 40 bits each
}

}  // namespace
}  // namespace orla::codec
