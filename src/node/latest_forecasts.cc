#include "node/latest_forecasts.h"

#include <memory>

#include "node/answers.h"
#include "store/cloud_reader.h"

namespace orla::node {

std::vector<ForecastLine> latest_forecasts(const std::string& cloud_file, std::size_t per_step) {
  std::vector<ForecastLine> lines;
  absl::StatusOr<std::unique_ptr<store::CloudReader>> reader = store::CloudReader::open(cloud_file);
  if (!reader.ok()) return lines;
  const absl::StatusOr<std::vector<store::RollupInfo>> infos = (*reader)->rollups();
  if (!infos.ok()) return lines;
  for (const store::RollupInfo& info : *infos) {
    if (info.hidden) continue;
    for (const store::WindowInfo& step : info.steps) {
      const absl::StatusOr<model::Duration> length = model::parse_duration(step.name);
      if (!step.last || !length.ok()) continue;
      // The last target lies two steps ahead of the last one published; four back, what happened is known.
      store::Query query;
      query.rollup = info.name;
      query.window = step.name;
      query.from = model::add_clamped(*step.last, -3 * *length);
      query.to = model::add_clamped(*step.last, -1 * *length);
      std::vector<ForecastLine> found;
      (*reader)
          ->forecasts(query,
                      [&](const store::ForecastAnswer& a) {
                        if (a.predicted && a.actual) {
                          found.push_back({std::string(a.rollup), std::string(a.step), labels_text(a.labels), a.start,
                                           a.predicted, a.actual, std::string(a.reason)});
                        }
                        return found.size() < per_step ? store::Continue::kYes : store::Continue::kNo;
                      })
          .IgnoreError();  // what cannot be read now is shown the next time
      lines.insert(lines.end(), found.begin(), found.end());
    }
  }
  return lines;
}

}  // namespace orla::node
