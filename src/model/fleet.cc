#include "model/fleet.h"

#include <algorithm>

namespace orla::model {
namespace {

template <typename T>
const T* by_name(const std::vector<T>& things, std::string_view name) {
  const auto found = std::find_if(things.begin(), things.end(), [&](const T& thing) { return thing.name == name; });
  return found == things.end() ? nullptr : &*found;
}

}  // namespace

const NodeSpec* Fleet::node(std::string_view name) const { return by_name(nodes, name); }
const MetricSpec* Fleet::metric(std::string_view name) const { return by_name(metrics, name); }
const RollupSpec* Fleet::rollup(std::string_view name) const { return by_name(rollups, name); }

std::vector<std::string> metrics_of(const InputSpec& input) {
  if (input.kind == InputSpec::Kind::kPush) return input.metrics;
  if (input.kind == InputSpec::Kind::kGenerator || input.schema == InputSpec::Schema::kDebs2014) {
    return {"work", "load"};
  }
  std::vector<std::string> metrics;
  for (const CsvMapping::ValueColumn& value : input.mapping.values) {
    if (std::find(metrics.begin(), metrics.end(), value.metric) == metrics.end()) metrics.push_back(value.metric);
  }
  return metrics;
}

}  // namespace orla::model
