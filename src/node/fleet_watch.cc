#include "node/fleet_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/numbers.h"
#include "node/http_client.h"
#include "node/state_directory.h"

namespace orla::node {

namespace {

using nlohmann::json;

std::uint64_t number_in_text(const json& value) {
  std::uint64_t n = 0;
  return absl::SimpleAtoi(value.get<std::string>(), &n) ? n : 0;
}

model::Ledger ledger_of(const json& in) {
  model::Ledger ledger;
  ledger.received = in.at("received");
  ledger.aggregated = in.at("aggregated");
  ledger.unmatched = in.at("unmatched");
  ledger.late = {in.at("late"), number_in_text(in.at("late_set"))};
  for (const auto& [reason, n] : in.at("rejected_by_reason").items()) ledger.rejected[reason] = n;
  ledger.rejected_set = {in.at("rejected"), number_in_text(in.at("rejected_set"))};
  for (const auto& [reason, n] : in.at("dropped_by_reason").items()) ledger.dropped[reason] = n;
  ledger.held = in.at("pending");
  return ledger;
}

}  // namespace

FleetWatch::FleetWatch(const model::Fleet& fleet, std::filesystem::path state, const base::Clock& clock)
    : fleet_(fleet), state_(std::move(state)), clock_(clock) {
  for (const model::NodeSpec& node : fleet.nodes) {
    NodeView& view = nodes_.emplace_back();
    view.node = node.name;
    view.layer = node.layer;
  }
  before_.resize(nodes_.size());
}

void FleetWatch::poll(std::chrono::milliseconds patience) {
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    NodeView& view = nodes_[i];
    view.reachable = false;
    view.recovered = -1;
    const std::optional<NodeAddresses> addresses = read_addresses(state_, view.node);
    if (!addresses || addresses->http.empty()) continue;
    const absl::StatusOr<HttpReply> reply = http_request("GET", addresses->http + "/api/v1/status", "", patience);
    if (!reply.ok() || reply->status != 200) continue;
    update(view, before_[i], reply->body);
  }
}

void FleetWatch::update(NodeView& view, Before& before, const std::string& status_json) {
  const json s = json::parse(status_json, nullptr, false);
  // Another program on a port this node had once.
  if (!s.is_object() || s.value("node", "") != view.node || s.value("fleet", "") != fleet_.name) return;
  try {
    if (const json& recovering = s.at("recovering"); !recovering.is_null()) {
      const double all = recovering.at("all_bytes");
      view.recovered = all > 0 ? recovering.at("read_bytes").get<double>() / all : 0;
      return;
    }
    view.pid = s.at("pid");
    view.listen = s.at("listen");
    view.http = s.at("http");
    view.gateway = s.value("gateway", "");
    view.ready = s.at("ready");
    view.drained = s.at("drained");
    view.lag_s = s.at("lag_s").is_null() ? -1 : s.at("lag_s").get<double>();
    view.errors = s.at("alarms").get<std::vector<std::string>>();
    view.inputs.clear();
    view.rejections.clear();
    view.received = view.late = view.rejected = view.dropped = 0;
    view.progress = -1;
    view.inputs_done = true;
    for (const json& input : s.at("inputs")) {
      InputReport report;
      report.ledger = ledger_of(input);
      report.end.position = {input.at("position").at("offset"), input.at("position").at("row")};
      report.end.ended = input.at("ended");
      view.received += report.ledger.received;
      view.late += report.ledger.late.count;
      view.rejected += report.ledger.rejected_total();
      view.dropped += report.ledger.dropped_total();
      for (const json& r : input.at("rejections")) {
        view.rejections.push_back(
            where(input.at("input")) +
            fmt::format(" line {}{}: {} ({})", r.at("line").get<std::uint64_t>(),
                        r.at("column") == 0 ? "" : fmt::format(" column {}", r.at("column").get<int>()),
                        r.at("message").get<std::string>(), r.at("reason").get<std::string>()));
      }
      const bool failed = !input.at("error").is_null();
      view.inputs_done = view.inputs_done && (report.end.ended || input.at("stopped") || failed);
      if (!input.at("progress").is_null()) {
        const double progress = input.at("progress");
        view.progress = view.progress < 0 ? progress : std::min(view.progress, progress);
      }
      view.inputs.emplace(input.at("input").get<std::string>(), std::move(report));
    }
    const base::SteadyTime now = clock_.steady_now();
    const bool edge = view.layer == model::Layer::kEdge;
    const bool cloud = view.layer == model::Layer::kCloud;
    const Before present{
        now, edge ? s.at("samples_in").get<std::uint64_t>() : s.at("frames_in").get<std::uint64_t>(),
        cloud ? s.at("cloud").at("windows_written").get<std::uint64_t>()
              : s.at("uplink").at("frames_sent").get<std::uint64_t>(),
        cloud ? s.at("bytes_in").get<std::uint64_t>() : s.at("uplink").at("bytes_sent").get<std::uint64_t>(), true};
    const double seconds = std::chrono::duration<double>(now - before.at).count();
    if (before.valid && seconds > 0) {
      const auto rate = [&](std::uint64_t a, std::uint64_t b) {
        return b >= a ? static_cast<double>(b - a) / seconds : 0;
      };
      view.in_per_s = rate(before.in, present.in);
      view.out_per_s = rate(before.out, present.out);
      view.bytes_per_s = rate(before.bytes, present.bytes);
    }
    before = present;
    view.reachable = true;
  } catch (const json::exception&) {
    // A status of another version of this program: the node counts as not reachable.
  }
}

// The file of an input, or its key.
std::string FleetWatch::where(const std::string& input_key) const {
  for (const model::InputSpec& input : fleet_.inputs) {
    if (input.key == input_key && !input.path.empty()) return input.path;
  }
  return input_key;
}

std::vector<std::string> FleetWatch::rejections() const {
  std::vector<std::string> all;
  for (const NodeView& n : nodes_) all.insert(all.end(), n.rejections.begin(), n.rejections.end());
  return all;
}

const NodeView& FleetWatch::node(std::string_view name) const {
  const auto found = std::find_if(nodes_.begin(), nodes_.end(), [&](const NodeView& n) { return n.node == name; });
  assert(found != nodes_.end());
  return *found;
}

void FleetWatch::stop_inputs(std::chrono::milliseconds patience) {
  for (const NodeView& view : nodes_) {
    if (view.layer != model::Layer::kEdge || !view.reachable || view.inputs_done) continue;
    // One that does not hear it is asked again at the next round.
    (void)http_request("POST", view.http + "/api/v1/inputs/stop", "", patience);
  }
}

bool FleetWatch::all_reachable() const {
  return std::all_of(nodes_.begin(), nodes_.end(), [](const NodeView& n) { return n.reachable; });
}

bool FleetWatch::drained() const {
  return std::all_of(nodes_.begin(), nodes_.end(), [](const NodeView& n) {
    if (n.layer == model::Layer::kEdge) return n.reachable && n.inputs_done && n.drained;
    // An aggregator may be away once nothing waits for it.
    return n.layer == model::Layer::kAggregator || (n.reachable && n.drained);
  });
}

double FleetWatch::progress() const {
  double sum = 0;
  std::size_t known = 0;
  for (const NodeView& n : nodes_) {
    if (n.progress < 0) continue;
    sum += n.progress;
    ++known;
  }
  return known == 0 ? -1 : sum / static_cast<double>(known);
}

std::map<std::string, InputReport> FleetWatch::inputs() const {
  std::map<std::string, InputReport> all;
  for (const NodeView& n : nodes_) all.insert(n.inputs.begin(), n.inputs.end());
  return all;
}

}  // namespace orla::node
