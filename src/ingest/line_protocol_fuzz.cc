// LineParser takes any bytes. What it accounts for adds up, its runs are in order, and a second parser that shares the
// series, and the first one again, say the same.
#include <cmath>
#include <cstdlib>

#include "ingest/line_protocol.h"

namespace {

using orla::ingest::LineOptions;
using orla::ingest::LineParser;
using orla::model::InputBatch;

void require(bool holds) {
  if (!holds) std::abort();
}

void check(const InputBatch& batch, const LineOptions& options, std::size_t series) {
  std::uint64_t rejected = 0;
  for (const auto& [reason, count] : batch.rejected) rejected += count;
  require(batch.received == batch.samples.times.size() + rejected);
  require(batch.rejected_set.count == rejected);
  require(batch.samples.times.size() == batch.samples.values.size() &&
          batch.samples.times.size() <= options.max_samples);
  std::uint32_t end = 0;
  for (const auto& run : batch.samples.runs) {
    require(run.begin == end && run.end > run.begin && index(run.series) < series);
    end = run.end;
  }
  require(end == batch.samples.times.size());
  for (const double v : batch.samples.values) require(std::isfinite(v));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  orla::ingest::SeriesTable series(100);
  LineParser first("f", series);
  LineParser second("f", series);
  const LineOptions options{orla::ingest::Precision::kMs, orla::model::from_ns(1'000), 1000};
  InputBatch a;
  InputBatch b;
  const bool taken = first.parse(body, options, a).ok();
  require(second.parse(body, options, b).ok() == taken);
  if (!taken) return 0;
  check(a, options, series.size());
  require(a.samples.times == b.samples.times && a.samples.values == b.samples.values && a.rejected == b.rejected &&
          a.position == b.position);
  require(first.parse(body, options, b).ok());
  require(a.samples.times == b.samples.times && a.samples.values == b.samples.values && a.rejected == b.rejected);
  return 0;
}
