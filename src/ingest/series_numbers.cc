#include "ingest/series_numbers.h"

namespace orla::ingest {

std::optional<std::uint32_t> SeriesNumbers::find(const model::Series& series) const {
  const std::optional<std::uint32_t> metric = texts_.find(series.metric);
  return metric ? series_.find(*metric, series.labels) : std::nullopt;
}

std::optional<SeriesNumbers::Numbered> SeriesNumbers::number(const model::Series& series) {
  if (const std::optional<std::uint32_t> known = find(series)) return Numbered{*known, false};
  if (left() == 0) return std::nullopt;
  return Numbered{series_.add(texts_.add(series.metric), series.labels), true};
}

}  // namespace orla::ingest
