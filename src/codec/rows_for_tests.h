// Rows of partials of several shapes, for the tests of what encodes them.
#pragma once

#include <bit>
#include <cstdint>
#include <string>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/random.h"
#include "model/partial.h"

namespace orla::codec {

inline constexpr std::int64_t kMinute = 60'000'000'000;

inline model::Partial some_partial(base::Random& random, model::Time slice) {
  model::Partial p;
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

inline model::PartialRows some_rows(base::Random& random, std::size_t count) {
  model::PartialRows rows;
  for (std::size_t i = 0; i < count; ++i) {
    const auto slice = model::from_ns((22966000 + static_cast<std::int64_t>(random.below(5))) * kMinute);
    rows.push_back({model::GroupId{static_cast<std::uint32_t>(random.below(count))}, slice, {}});
    rows.back().partial = some_partial(random, slice);
  }
  model::canonicalize(rows);
  return rows;
}

// Rows some of which have sketches, of either kind or both.
inline model::PartialRows sketched_rows(base::Random& random, std::size_t count) {
  model::PartialRows rows = some_rows(random, count);
  for (model::PartialRow& row : rows) {
    const std::uint64_t kinds = random.below(4);
    model::Partial p;
    p.sketches = model::Sketches({(kinds & 1) != 0, (kinds & 2) != 0});
    for (std::uint64_t i = 1 + random.below(80); i > 0; --i)
      p.add(row.slice, (static_cast<double>(random.below(4'000'000)) - 1'000'000) / 1000.0, 3);
    if (model::DistinctSketch* distinct = p.sketches.distinct())
      for (std::uint64_t i = random.below(20) == 0 ? 700 : 1; i > 0; --i) distinct->add(random.next());
    row.partial = p;
  }
  return rows;
}

// What a chunk of plugs is: `plugs` groups of `slices` minutes, a sample of `decimals` places every other second; a
// third of the plugs is idle, and of every fifth the decimals have one place less.
inline model::PartialRows plug_rows(base::Random& random, std::uint32_t plugs, std::int64_t slices, int decimals) {
  model::PartialRows rows;
  double power = 1;
  for (int i = 0; i < decimals; ++i) power *= 10;
  for (std::uint32_t plug = 0; plug < plugs; ++plug) {
    const std::uint64_t about = plug % 3 == 0 ? 0 : random.below(2'000'000);
    for (std::int64_t slice = 0; slice < slices; ++slice) {
      model::PartialRow& row = rows.emplace_back();
      row.group = model::GroupId{plug};
      row.slice = model::from_ns((22966000 + slice) * kMinute);
      const bool fewer = plug % 5 == 0 && decimals > 0;
      for (int i = 0; i < 30; ++i)
        row.partial.add(
            row.slice + model::Duration(2'000'000'000LL * i),
            static_cast<double>(about + (about > 0 ? random.below(5000) : 0)) / (fewer ? power / 10 : power),
            fewer ? decimals - 1 : decimals);
    }
  }
  return rows;
}

// Of all that rows hold.
inline std::uint64_t rows_hash(const model::PartialRows& rows) {
  std::string words;
  base::ByteWriter to(words);
  for (const model::PartialRow& row : rows) {
    const model::Partial& p = row.partial;
    to.u64(model::index(row.group));
    to.u64(static_cast<std::uint64_t>(model::to_ns(row.slice)));
    to.u64(p.count);
    for (const double v : {p.min, p.max, p.first, p.last}) to.u64(std::bit_cast<std::uint64_t>(v));
    to.u64(static_cast<std::uint64_t>(model::to_ns(p.first_time)));
    to.u64(static_cast<std::uint64_t>(model::to_ns(p.last_time)));
    to.text(p.sums.encode());
    to.text(p.sketches.none() ? std::string() : p.sketches.encode());
  }
  return base::hash64(words);
}

}  // namespace orla::codec
