#include "stream/cloud_publication.h"

#include <algorithm>

namespace orla::stream {
namespace {

model::Duration idle_after(const model::Fleet& fleet, const std::string& edge, const std::string& metric) {
  model::Duration longest{};
  for (const model::InputSpec& input : fleet.inputs) {
    if (input.node != edge) continue;
    const std::vector<std::string> metrics = model::metrics_of(input);
    if (std::find(metrics.begin(), metrics.end(), metric) == metrics.end()) continue;
    longest = std::max(longest, input.idle_after);
  }
  return longest == model::Duration::zero() ? fleet.idle_after : longest;
}

}  // namespace

CloudPublication::CloudPublication(const model::Plan& plan, base::SteadyTime start) {
  for (std::size_t m = 0; m < plan.fleet.metrics.size(); ++m) {
    Metric& metric = metrics_.emplace_back();
    metric.name = plan.fleet.metrics[m].name;
    for (std::string& edge : plan.feeders(m)) {
      const model::Duration idle = idle_after(plan.fleet, edge, metric.name);
      metric.feeders.push_back({std::move(edge), idle, start, model::kMinTime});
    }
  }
}

CloudPublication::Metric* CloudPublication::find(std::string_view name) {
  const auto found = std::find_if(metrics_.begin(), metrics_.end(), [&](const Metric& m) { return m.name == name; });
  return found == metrics_.end() ? nullptr : &*found;
}

void CloudPublication::restore(std::size_t metric, model::Time published) {
  metrics_[metric].published = std::max(metrics_[metric].published, published);
}

void CloudPublication::restore(const model::NodeName& edge, const std::vector<model::Publication>& publications) {
  learn(edge, publications);
}

void CloudPublication::heard(const model::NodeName& edge, const std::vector<model::Publication>& publications,
                             base::SteadyTime now) {
  for (Metric& metric : metrics_) {
    for (Feeder& feeder : metric.feeders) {
      if (feeder.edge == edge) feeder.heard = std::max(feeder.heard, now);
    }
  }
  learn(edge, publications);
}

void CloudPublication::learn(const model::NodeName& edge, const std::vector<model::Publication>& publications) {
  for (const model::Publication& publication : publications) {
    Metric* metric = find(publication.metric);
    if (metric == nullptr) continue;
    for (Feeder& feeder : metric->feeders) {
      if (feeder.edge == edge) feeder.published = std::max(feeder.published, publication.time);
    }
  }
}

std::vector<model::Time> CloudPublication::at(base::SteadyTime now) const {
  std::vector<model::Time> out;
  for (const Metric& metric : metrics_) {
    model::Time least = model::kMaxTime;
    bool anybody = false;
    for (const Feeder& feeder : metric.feeders) {
      const bool ended = feeder.published == model::kMaxTime;
      const bool silent = feeder.idle_after > model::Duration::zero() && now - feeder.heard >= feeder.idle_after;
      if (silent && !ended) continue;
      anybody = true;
      least = std::min(least, feeder.published);
    }
    out.push_back(anybody ? std::max(metric.published, least) : metric.published);
  }
  return out;
}

void CloudPublication::publish(const std::vector<model::Time>& times) {
  for (std::size_t m = 0; m < metrics_.size(); ++m) restore(m, times[m]);
}

}  // namespace orla::stream
