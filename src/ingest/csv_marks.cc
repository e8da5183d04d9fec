#include "ingest/csv_marks.h"

#include <bit>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ingest/csv_marks.cc"
#include "hwy/foreach_target.h"  // compiles what is between HWY_BEFORE_NAMESPACE and HWY_ONCE for each instruction set
//
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace orla::ingest::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

CsvMarks FindCsvMarks(const char* text, std::size_t size, char delimiter, std::uint32_t* out) {
  const hn::CappedTag<std::uint8_t, 64> d;
  constexpr std::size_t kLanes = hn::MaxLanes(d);
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(text);
  const auto end_of_cell = hn::Set(d, static_cast<std::uint8_t>(delimiter));
  const auto end_of_line = hn::Set(d, '\n');
  const auto quote = hn::Set(d, '"');
  const auto nul = hn::Zero(d);
  std::uint32_t* const begin = out;
  std::uint64_t odd = 0;
  for (std::size_t at = 0; at < size; at += 64) {
    std::uint64_t marks = 0;
    std::uint64_t odd_here = 0;
    for (std::size_t i = 0; i < 64; i += kLanes) {
      const auto v = hn::LoadU(d, bytes + at + i);
      std::uint64_t found = 0;
      std::uint64_t found_odd = 0;
      const auto is_mark = hn::Or(hn::Eq(v, end_of_cell), hn::Eq(v, end_of_line));
      const auto is_odd = hn::Or(hn::Eq(v, quote), hn::Eq(v, nul));
      hn::StoreMaskBits(d, is_mark, reinterpret_cast<std::uint8_t*>(&found));
      hn::StoreMaskBits(d, is_odd, reinterpret_cast<std::uint8_t*>(&found_odd));
      marks |= found << i;
      odd_here |= found_odd << i;
    }
    if (size - at < 64) {
      const std::uint64_t inside = (std::uint64_t{1} << (size - at)) - 1;
      marks &= inside;
      odd_here &= inside;
    }
    odd |= odd_here;
    for (; marks != 0; marks &= marks - 1)
      *out++ = static_cast<std::uint32_t>(at) + static_cast<std::uint32_t>(std::countr_zero(marks));
  }
  return {static_cast<std::size_t>(out - begin), odd == 0};
}

}  // namespace orla::ingest::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace orla::ingest {

HWY_EXPORT(FindCsvMarks);
CsvMarks find_csv_marks(std::string_view text, char delimiter, std::uint32_t* out) {
  return HWY_DYNAMIC_DISPATCH(FindCsvMarks)(text.data(), text.size(), delimiter, out);
}

}  // namespace orla::ingest
#endif
