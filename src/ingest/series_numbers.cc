#include "ingest/series_numbers.h"

namespace orla::ingest {

std::optional<SeriesNumbers::Numbered> SeriesNumbers::number(const model::Series& series) {
  std::string identity = model::identity(series);
  if (const auto known = numbers_.find(identity); known != numbers_.end()) return Numbered{known->second, false};
  if (left() == 0) return std::nullopt;
  const auto next = static_cast<std::uint32_t>(numbers_.size());
  numbers_.emplace(std::move(identity), next);
  return Numbered{next, true};
}

bool SeriesNumbers::knows(const model::Series& series) const { return numbers_.contains(model::identity(series)); }

}  // namespace orla::ingest
