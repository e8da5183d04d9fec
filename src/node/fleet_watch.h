// What a running fleet says of itself, as the supervisor sees it: every node asked over HTTP.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "model/fleet.h"
#include "node/verification.h"

namespace orla::node {

struct NodeView {
  std::string node;
  model::Layer layer{};
  std::string listen;
  std::string http;
  std::string gateway;  // of functions; empty: none
  std::int64_t pid = 0;
  bool reachable = false;
  double recovered = -1;  // not reachable, but reads what an earlier process left: so much of it, 0..1
  bool ready = false;
  bool drained = false;
  double in_per_s = 0;     // samples (edges) or frames
  double out_per_s = 0;    // frames, or window rows (cloud)
  double bytes_per_s = 0;  // sent, or received (cloud)
  double lag_s = -1;
  std::uint64_t received = 0;  // samples (edges)
  std::uint64_t late = 0;
  std::uint64_t rejected = 0;
  std::uint64_t dropped = 0;
  double progress = -1;  // the slowest of its inputs; negative: unknown
  bool inputs_done = false;
  std::vector<std::string> errors;            // inputs that failed, alarms
  std::vector<std::string> rejections;        // the latest few rows of each input: where and why
  std::map<std::string, InputReport> inputs;  // by key; as last heard
};

class FleetWatch {
 public:
  // `fleet` and `clock` outlive it.
  FleetWatch(const model::Fleet& fleet, std::filesystem::path state, const base::Clock& clock);

  // Asks every node; one that does not answer within `patience` is not reachable.
  void poll(std::chrono::milliseconds patience);
  // In the order of the fleet file.
  const std::vector<NodeView>& nodes() const { return nodes_; }
  const NodeView& node(std::string_view name) const;
  // Asks every edge that has not stopped to stop its inputs.
  void stop_inputs(std::chrono::milliseconds patience);

  // Every node answers.
  bool all_reachable() const;
  // Every input has ended or stopped and everything is acknowledged by the cloud.
  bool drained() const;
  // 0..1 over the inputs whose end is known; negative: none.
  double progress() const;
  std::map<std::string, InputReport> inputs() const;
  // Of all nodes.
  std::vector<std::string> rejections() const;

 private:
  struct Before {
    base::SteadyTime at{};
    std::uint64_t in = 0;
    std::uint64_t out = 0;
    std::uint64_t bytes = 0;
    bool valid = false;
  };
  std::string where(const std::string& input_key) const;
  void update(NodeView& view, Before& before, const std::string& status_json);

  const model::Fleet& fleet_;
  const std::filesystem::path state_;
  const base::Clock& clock_;
  std::vector<NodeView> nodes_;
  std::vector<Before> before_;
};

}  // namespace orla::node
