// `orla forecast backtest FILE`: how well the published load forecast would have done on recorded loads.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>

#include "absl/status/status.h"

namespace orla::node {

struct BacktestRequest {
  std::string file;          // DEBS 2014 schema, plain, .gz or .zst; only `load` rows count
  std::string zone = "UTC";  // steps are numbered from local midnight here
  enum class Format : std::uint8_t { kTable, kJson };
  Format format = Format::kTable;
};

// Reads the file and writes the errors of the formula, of persistence and of the day median to `out`, per step length,
// pooled over plugs and over houses (what exactly is compared: forecast/backtest.h). As JSON:
//   {"1m": {"plug": {"n": .., "formula": {"mae": .., "rmse": ..}, "persistence": {..}, "day_median": {..}},
//           "house": {..}}, "5m": .., "15m": .., "60m": .., "120m": ..}
// in watts; of no targets mae and rmse are null. Rows that cannot be read are left out and told to `notes`, one line
// each for the first few and then how many. InvalidArgument when there is not one load to read.
absl::Status run_backtest(const BacktestRequest& request, std::ostream& out, std::ostream& notes);

}  // namespace orla::node
