// How far the cloud has published each metric: the minimum over the edges that feed it, silent ones left out.
//
// An edge is silent when no frame of it came for its idle_after (the longest of its inputs that can produce the
// metric). One that never spoke holds everything back until then. One whose input has ended (kMaxTime) holds nothing.
// While every edge is silent, nothing moves. What is published stays published, whoever comes back.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "model/chunk.h"
#include "model/plan.h"

namespace orla::stream {

// A value; time is an argument.
class CloudPublication {
 public:
  // `start`: when silence is counted from.
  CloudPublication(const model::Plan& plan, base::SteadyTime start);

  // What was known before this start. Does not count as being heard.
  void restore(std::size_t metric, model::Time published);
  void restore(const model::NodeName& edge, const std::vector<model::Publication>& publications);

  // A frame of the edge came. Times that go back, unknown edges and metrics change nothing.
  void heard(const model::NodeName& edge, const std::vector<model::Publication>& publications, base::SteadyTime now);

  model::Time of(std::size_t metric) const { return metrics_[metric].published; }
  // What of() would be at `now`, per metric.
  std::vector<model::Time> at(base::SteadyTime now) const;
  void publish(const std::vector<model::Time>& times);

 private:
  struct Feeder {
    model::NodeName edge;
    model::Duration idle_after{};  // 0: never silent
    base::SteadyTime heard{};
    model::Time published = model::kMinTime;
  };
  struct Metric {
    std::string name;
    std::vector<Feeder> feeders;
    model::Time published = model::kMinTime;
  };
  Metric* find(std::string_view name);
  void learn(const model::NodeName& edge, const std::vector<model::Publication>& publications);
  std::vector<Metric> metrics_;  // in the plan's order
};

}  // namespace orla::stream
