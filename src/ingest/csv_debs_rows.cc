#include "ingest/csv_debs_rows.h"

#include <array>
#include <bit>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ingest/csv_debs_rows.cc"
#include "hwy/foreach_target.h"  // compiles what is between HWY_BEFORE_NAMESPACE and HWY_ONCE for each instruction set
//
#include "hwy/highway.h"

#ifndef ORLA_INGEST_CSV_DEBS_ROWS_SHARED
#define ORLA_INGEST_CSV_DEBS_ROWS_SHARED
namespace orla::ingest {
namespace {

// All texts here are taken as little-endian numbers: a text's first byte is the lowest.
static_assert(std::endian::native == std::endian::little);

inline std::uint64_t load64(const char* p) {
  std::uint64_t v = 0;
  std::memcpy(&v, p, sizeof v);
  return v;
}
inline std::uint32_t load32(const char* p) {
  std::uint32_t v = 0;
  std::memcpy(&v, p, sizeof v);
  return v;
}

// The lowest n bytes, n in 0..8.
constexpr std::array<std::uint64_t, 9> kLowBytes = [] {
  std::array<std::uint64_t, 9> masks{};
  for (std::size_t n = 0; n < 8; ++n) masks[n] = (std::uint64_t{1} << (8 * n)) - 1;
  masks[8] = UINT64_MAX;
  return masks;
}();

// Eight digits, the first in the lowest byte; a zero byte counts as the digit 0.
inline std::uint64_t digits8(std::uint64_t text) {
  text &= 0x0f0f0f0f0f0f0f0fULL;
  text = (text * 2561) >> 8 & 0x00ff00ff00ff00ffULL;      // pairs
  text = (text * 6553601) >> 16 & 0x0000ffff0000ffffULL;  // fours
  return (text * 42949672960001ULL) >> 32;
}

}  // namespace
}  // namespace orla::ingest
#endif

HWY_BEFORE_NAMESPACE();
namespace orla::ingest::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Bit i tells of byte i of the 64 at p.
struct Marks {
  std::uint64_t others = 0;    // is no digit
  std::uint64_t newlines = 0;  // is \n
};

HWY_INLINE Marks MarksOf(const char* p) {
  const hn::CappedTag<std::uint8_t, 64> d;
  constexpr std::size_t kLanes = hn::MaxLanes(d);
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(p);
  Marks marks;
  for (std::size_t i = 0; i < 64; i += kLanes) {
    const auto text = hn::LoadU(d, bytes + i);
    std::uint64_t others = 0;
    std::uint64_t newlines = 0;
    const auto is_other = hn::Gt(hn::Sub(text, hn::Set(d, '0')), hn::Set(d, 9));
    hn::StoreMaskBits(d, is_other, reinterpret_cast<std::uint8_t*>(&others));
    hn::StoreMaskBits(d, hn::Eq(text, hn::Set(d, '\n')), reinterpret_cast<std::uint8_t*>(&newlines));
    marks.others |= others << i;
    marks.newlines |= newlines << i;
  }
  return marks;
}

DebsRowsRead ReadDebsRows(const DebsRows& in, const DebsLabels& labels, DebsLast& last_row) {
  // Seconds that can be told by ten digits, of which the first years are enough for kLatestTime.
  constexpr std::uint64_t kEndSecond = static_cast<std::uint64_t>(model::to_ns(kLatestTime) / 1'000'000'000);
  std::array<std::int64_t, DebsRows::kMaxDecimals + 1> factors{};
  for (int f = 0; f <= in.decimals; ++f) factors[static_cast<std::size_t>(f)] = power_of_ten(in.decimals - f);
  const auto most_decimals = static_cast<unsigned>(in.decimals);

  DebsLast last = last_row;
  const char* p = in.begin;
  std::uint64_t rows = 0;
  std::size_t samples = 0;
  const SampleColumns::Room to = in.to;
  const std::uint32_t unwanted = in.unwanted;
  for (; p < in.end && samples < in.max_samples; ++rows) {
    const Marks marks = MarksOf(p);
    if (marks.newlines == 0) break;
    const auto end = static_cast<unsigned>(std::countr_zero(marks.newlines));

    // id,
    const auto comma = static_cast<unsigned>(std::countr_zero(marks.others));
    if (comma - 1 > 18 || p[comma] != ',') break;

    // time,
    const char* const t = p + comma + 1;
    const std::uint64_t head = load64(t);
    const std::uint32_t tail = load32(t + 7);
    if (head != last.head || tail != last.tail) {
      // Ten digits and a comma.
      if ((marks.others >> (comma + 1) & 0x7ff) != 0x400 || t[10] != ',') break;
      const std::uint64_t second = digits8(head) * 100 + (static_cast<std::uint64_t>(t[8]) - '0') * 10 +
                                   (static_cast<std::uint64_t>(t[9]) - '0');
      if (second >= kEndSecond) break;
      last = {last.entry, head, tail, model::from_ns(static_cast<std::int64_t>(second) * 1'000'000'000)};
    }

    // value,
    const char* const v = t + 11;
    const std::uint64_t others = marks.others >> (comma + 12);
    const auto first = static_cast<unsigned>(std::countr_zero(others));
    const auto second = static_cast<unsigned>(std::countr_zero(others & (others - 1)));
    if (first > 8 || second > 63) break;
    const bool point = v[first] == '.';
    const unsigned value_end = point ? second : first;
    const unsigned digits = value_end - (point ? 1 : 0);
    const unsigned decimals = point ? second - first - 1 : 0;
    if (digits - 1 > 7 || decimals > most_decimals || v[value_end] != ',') break;
    const std::uint64_t before = kLowBytes[point ? first : 8];
    const std::uint64_t text = (load64(v) & before) | (load64(v + 1) & ~before);
    const auto value = static_cast<std::int64_t>(digits8(text << (64 - 8 * digits))) * factors[decimals];
    if (value > INT32_MAX) break;

    // property,plug,household,house
    const unsigned at = comma + 12 + value_end + 1;
    const unsigned size = end - at;
    if (size - 1 > DebsLabels::kMaxBytes - 1 || p[end - 1] == '\0') break;  // NULs at the end would not tell
    const char* const l = p + at;
    const std::uint64_t label_head = load64(l) & kLowBytes[size < 8 ? size : 8];
    const auto label_tail = static_cast<std::uint32_t>(load32(l + 8) & kLowBytes[size < 8 ? 0 : size - 8]);
    const std::uint32_t series = labels.find(label_head, label_tail, last.entry);
    if (series == UINT32_MAX) break;

    to.series[samples] = series;
    to.times[samples] = last.time;
    to.scaled[samples] = static_cast<std::int32_t>(value);
    samples += series != unwanted ? 1 : 0;
    p += end + 1;
  }
  last_row = last;
  return {p, rows, samples};
}

}  // namespace orla::ingest::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace orla::ingest {

HWY_EXPORT(ReadDebsRows);

DebsRowsRead read_debs_rows(const DebsRows& in, const DebsLabels& labels, DebsLast& last) {
  return HWY_DYNAMIC_DISPATCH(ReadDebsRows)(in, labels, last);
}

void DebsLabels::insert(std::string_view text, std::uint32_t number) {
  const std::size_t used = entries_.size() - kBefore - kBehind;
  if (text.empty() || text.size() > kMaxBytes || used >= kMaxTexts) return;
  char bytes[kMaxBytes] = {};
  std::memcpy(bytes, text.data(), text.size());
  const std::uint64_t head = load64(bytes);
  const std::uint32_t tail = load32(bytes + 8);
  if (head == 0 || slots_[slot(head, tail)] != 0) return;
  if (4 * (used + 1) > slots_.size()) {
    ++bits_;
    slots_.assign(std::size_t{1} << bits_, 0);
    for (std::size_t i = 0; i < used; ++i) {
      const Entry& known = entries_[i + kBefore];
      slots_[slot(known.head, known.tail)] = static_cast<std::uint32_t>(i + 1);
    }
  }
  slots_[slot(head, tail)] = static_cast<std::uint32_t>(used + 1);
  entries_[used + kBefore] = {head, tail, number};
  entries_.emplace_back();
}

}  // namespace orla::ingest
#endif
