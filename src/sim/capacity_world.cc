#include "sim/capacity_world.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "codec/rows.h"
#include "model/fleet_file.h"
#include "model/plan.h"
#include "node/aggregator_role.h"
#include "node/cloud_role.h"
#include "node/edge_role.h"
#include "sim/event_queue.h"
#include "sim/fake_clock.h"
#include "sim/fake_network.h"
#include "sim/lean_parts.h"

namespace orla::sim {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

namespace {

constexpr seconds kDrain{120};
constexpr milliseconds kLook{250};
constexpr std::size_t kLayers = 3;
// Event time at the start of the world; a whole day, so that every window begins on a whole number.
constexpr std::int64_t kOriginNs = 1'380'585'600'000'000'000;

std::string fleet_text(const CapacityOptions& o) {
  const auto slice = o.slice.count();
  std::string text = "[fleet]\nname = \"capacity\"\nzone = \"UTC\"\n";
  text += "[[node]]\nname = \"cloud\"\nlayer = \"cloud\"\nlisten = \"127.0.0.1:7000\"\n";
  std::string inputs;
  int port = 7001;
  for (int site = 1; site <= o.sites; ++site) {
    std::string group;
    for (int a = 1; a <= o.aggregators; ++a) {
      const std::string name = fmt::format("site-{}-{}", site, a);
      group += fmt::format("{}\"{}\"", group.empty() ? "" : ", ", name);
      text += fmt::format(
          "[[node]]\nname = \"{}\"\nlayer = \"aggregator\"\nlisten = \"127.0.0.1:{}\"\nparents = [\"cloud\"]\n", name,
          port++);
    }
    for (int e = 1; e <= o.edges; ++e) {
      const std::string name = fmt::format("edge-{}-{}", site, e);
      text += fmt::format("[[node]]\nname = \"{}\"\nlayer = \"edge\"\nparents = [{}]\n", name,
                          o.aggregators > 0 ? fmt::format("[{}]", group) : "\"cloud\"");
      inputs += fmt::format("[[input]]\nnode = \"{}\"\npath = \"made.csv\"\n", name);
    }
  }
  text += inputs;
  text += "[[metric]]\nname = \"load\"\nunit = \"W\"\ndecimals = 0\ndisorder = \"1s\"\nallowed_lateness = \"1m\"\n";
  text += fmt::format(
      "[[rollup]]\nname = \"plug_load\"\nmetric = \"load\"\nby = [\"house\", \"plug\"]\nslice = \"{}s\"\n"
      "windows = [\"{}s\"]\n"
      "[[rollup]]\nname = \"house_load\"\nfrom = \"plug_load\"\nby = [\"house\"]\nacross = \"sum\"\nof = \"mean\"\n"
      "windows = [\"{}s\"]\n",
      slice, slice, slice);
  return text;
}

Quantiles quantiles(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const auto at = [&](double q) {
    return values[static_cast<std::size_t>(q * static_cast<double>(values.size() - 1))];
  };
  return {at(0.5), at(0.99), values.back()};
}

class QuietLog final : public base::Logger {
 public:
  bool enabled(base::LogLevel) const override { return false; }
  void write(base::LogLevel, std::string_view) override {}
};

class CapacityWorld {
 public:
  explicit CapacityWorld(const CapacityOptions& options)
      : options_(options), random_(options.seed), network_(queue_, random_), cloud_disk_faults_(random_) {}
  ~CapacityWorld();
  CapacityWorld(const CapacityWorld&) = delete;
  CapacityWorld& operator=(const CapacityWorld&) = delete;

  absl::StatusOr<CapacityReport> run();

 private:
  struct Node {
    const model::NodeSpec* spec = nullptr;
    std::unique_ptr<base::Random> random;
    std::unique_ptr<FakeLoop> loop;
    std::unique_ptr<FakeUplink> up;
    std::unique_ptr<FakeDownlink> down;
    std::unique_ptr<store::EdgeStore> edge_store;
    std::unique_ptr<store::CloudStore> cloud_store;
    std::unique_ptr<SteadyPump> pump;
    std::unique_ptr<node::Role> role;
    Link link;
    std::uint64_t messages = 0;
  };
  struct Totals {
    std::uint64_t frames_in = 0;
    std::uint64_t rows = 0;
    std::vector<double> lag_s;
    std::uint64_t outbox_bytes = 0;
  };

  absl::Status build();
  void add(Node& node, std::int64_t number);
  void hook();
  nanoseconds cost(const std::string& at, const link::UpMessage& message);
  double since(model::Time event) const;
  bool drained();
  CapacityReport report(double drained_after_s) const;
  absl::Status check_totals() const;
  Totals& totals(model::Layer layer) { return totals_[static_cast<std::size_t>(layer)]; }

  const CapacityOptions options_;
  EventQueue queue_;
  base::SeededRandom random_;
  FakeNetwork network_;
  FakeClock clock_{queue_};
  QuietLog log_;
  model::Plan plan_;
  CloudDisk cloud_disk_;
  FakeDisk cloud_disk_faults_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::map<std::string, Node*> by_name_;
  Made made_;
  Totals totals_[kLayers];
  base::SteadyTime begin_{};
  std::uint64_t events_ = 0;
};

CapacityWorld::~CapacityWorld() {
  for (const auto& node : nodes_) {
    node->role.reset();
    node->pump.reset();
    node->edge_store.reset();
    node->cloud_store.reset();
    node->up.reset();
    node->down.reset();
  }
}

// How long ago, in simulated time, the event time was.
double CapacityWorld::since(model::Time event) const {
  const auto now = queue_.now() - begin_ + nanoseconds(kOriginNs);
  return std::chrono::duration<double>(now - nanoseconds(model::to_ns(event))).count();
}

nanoseconds CapacityWorld::cost(const std::string& at, const link::UpMessage& message) {
  double ns = options_.costs.message_ns;
  if (const auto* frame = std::get_if<link::FrameMessage>(&message)) {
    const absl::StatusOr<model::PartialRows> rows = codec::decode_rows(frame->rows);
    const double n = rows.ok() ? static_cast<double>(rows->size()) : 0;
    ns += n * options_.costs.row_ns;
    Node& node = *by_name_.at(at);
    Totals& sums = totals(node.spec->layer);
    ++sums.frames_in;
    if (node.spec->layer == model::Layer::kCloud) sums.rows += static_cast<std::uint64_t>(n);
    if (node.spec->layer == model::Layer::kAggregator) {
      for (const model::Range& range : frame->ranges) {
        for (const model::Publication& publication : range.note.publications) {
          if (publication.time != model::kMaxTime) sums.lag_s.push_back(since(publication.time));
        }
      }
    }
  }
  return nanoseconds(static_cast<std::int64_t>(ns));
}

void CapacityWorld::hook() {
  FakeNetwork::Hooks hooks;
  const auto message_ns = nanoseconds(static_cast<std::int64_t>(options_.costs.message_ns));
  hooks.cost_up = [this](const Wire& wire, const link::UpMessage& message) {
    ++by_name_.at(wire.parent)->messages;
    return cost(wire.parent, message);
  };
  hooks.cost_down = [this, message_ns](const Wire& wire, const link::DownMessage&) {
    ++by_name_.at(wire.child)->messages;
    return message_ns;
  };
  hooks.sent_up = [this, message_ns](const Wire& wire, const link::UpMessage& message) {
    Node& node = *by_name_.at(wire.child);
    ++node.messages;
    node.loop->spend(message_ns);
    const auto* frame = std::get_if<link::FrameMessage>(&message);
    if (frame == nullptr) return;
    const absl::StatusOr<model::PartialRows> rows = codec::decode_rows(frame->rows);
    if (!rows.ok()) return;
    Totals& sums = totals(node.spec->layer);
    sums.rows += rows->size();
    node.loop->spend(nanoseconds(static_cast<std::int64_t>(options_.costs.row_ns * static_cast<double>(rows->size()))));
    if (node.spec->layer != model::Layer::kEdge) return;
    for (const model::Range& range : frame->ranges) {
      for (const model::Publication& publication : range.note.publications) {
        if (publication.time != model::kMaxTime) sums.lag_s.push_back(since(publication.time));
      }
    }
  };
  hooks.sent_down = [this, message_ns](const Wire& wire, const link::DownMessage&) {
    Node& node = *by_name_.at(wire.parent);
    ++node.messages;
    node.loop->spend(message_ns);
  };
  network_.set_hooks(std::move(hooks));
}

absl::Status CapacityWorld::build() {
  const std::string text = fleet_text(options_);
  model::ParsedFleet parsed = model::parse_fleet(text, "capacity.toml", [](std::string_view) { return std::nullopt; });
  if (!parsed.fleet) {
    return absl::InvalidArgumentError(
        fmt::format("this fleet cannot be described: {}", model::to_string(parsed.errors.front())));
  }
  plan_ = model::make_plan(*std::move(parsed.fleet));
  network_.heal();
  hook();
  begin_ = queue_.now();
  std::int64_t number = 0;
  for (const model::NodeSpec& spec : plan_.fleet.nodes) {
    auto node = std::make_unique<Node>();
    node->spec = &spec;
    by_name_[spec.name] = node.get();
    nodes_.push_back(std::move(node));
    add(*nodes_.back(), ++number);
  }
  return absl::OkStatus();
}

void CapacityWorld::add(Node& node, std::int64_t number) {
  const model::Layer layer = node.spec->layer;
  node.random = std::make_unique<base::SeededRandom>(options_.seed + 7919 * static_cast<std::uint64_t>(number));
  node.loop = std::make_unique<FakeLoop>(queue_, [] {});
  const bool wan = layer == model::Layer::kAggregator || options_.aggregators == 0;
  node.link.delay_min = wan ? nanoseconds(options_.wan_delay) : nanoseconds(options_.lan_delay);
  node.link.delay_max = node.link.delay_min * 6 / 5;
  node.link.bytes_per_s = static_cast<std::uint64_t>((wan ? options_.wan_mbit_s : options_.lan_mbit_s) * 125'000);
  if (layer != model::Layer::kCloud) {
    node.up = std::make_unique<FakeUplink>(network_, *node.loop, node.link, node.spec->name);
  }
  if (layer != model::Layer::kEdge) node.down = std::make_unique<FakeDownlink>(network_, *node.loop, node.spec->name);
  const node::World world{*node.loop, clock_, *node.random, log_};
  if (layer == model::Layer::kEdge) {
    SteadyPump::Load load;
    load.origin = model::from_ns(kOriginNs);
    load.begin = begin_;
    load.seconds = options_.time.count();
    load.series = options_.series;
    load.charged_per_s = static_cast<std::int64_t>(options_.rate);
    load.sample_ns = options_.costs.sample_ns;
    load.house = number;
    load.phase = nanoseconds(node.random->below(1'000'000'000));
    node.edge_store = std::make_unique<LeanEdgeStore>();
    node.pump = std::make_unique<SteadyPump>(*node.loop, queue_, load, made_);
    node.role = std::make_unique<node::EdgeRole>(plan_, *node.spec, world, node.edge_store.get(), *node.up, *node.pump);
  } else if (layer == model::Layer::kAggregator) {
    node.role = std::make_unique<node::AggregatorRole>(plan_, *node.spec, world, *node.down, *node.up);
  } else {
    node.cloud_store =
        std::make_unique<CostlyCloudStore>(cloud_disk_, cloud_disk_faults_, *node.loop, options_.costs.window_ns,
                                           [this](const store::CloudCommit& commit) {
                                             for (const store::WindowRow& row : commit.windows) {
                                               if (row.table == "plug_load" && row.revision == 0)
                                                 totals(model::Layer::kCloud).lag_s.push_back(since(row.end));
                                             }
                                           });
    node.role = std::make_unique<node::CloudRole>(plan_, *node.spec, world, *node.cloud_store, *node.down);
  }
}

bool CapacityWorld::drained() {
  bool all = true;
  for (const auto& node : nodes_) {
    node::NodeStatus status;
    node->role->fill(status);
    all = all && status.drained;
    if (status.outbox) {
      std::uint64_t& most = totals(node->spec->layer).outbox_bytes;
      most = std::max(most, status.outbox->bytes);
    }
  }
  return all;
}

absl::StatusOr<CapacityReport> CapacityWorld::run() {
  if (absl::Status status = build(); !status.ok()) return status;
  for (const auto& node : nodes_) {
    absl::Status started = absl::OkStatus();
    node->loop->run([&] { started = node->role->start(); });
    if (!started.ok()) return started;
  }
  const base::SteadyTime last_sample = begin_ + options_.time;
  base::SteadyTime next_look = begin_;
  double drained_after_s = 0;
  for (bool over = false; !over && queue_.step(); ++events_) {
    if (queue_.now() < next_look) continue;
    next_look = queue_.now() + kLook;
    const bool idle = drained();
    if (queue_.now() < last_sample + seconds(2)) continue;
    over = idle;
    drained_after_s = std::chrono::duration<double>(queue_.now() - last_sample).count();
    if (!idle && queue_.now() > last_sample + kDrain) {
      return absl::DeadlineExceededError(
          fmt::format("the fleet has not drained {} s after its last sample: it is overloaded", kDrain.count()));
    }
  }
  if (absl::Status status = check_totals(); !status.ok()) return status;
  return report(drained_after_s);
}

// What the cloud has is exactly what was made: values are whole numbers, so sums are exact.
absl::Status CapacityWorld::check_totals() const {
  std::uint64_t count = 0;
  double sum = 0;
  for (const auto& [key, row] : cloud_disk_.windows) {
    if (row.table != "plug_load") continue;
    count += row.shown.count;
    sum += row.shown.sum;
  }
  if (count == made_.samples && sum == made_.value_sum) return absl::OkStatus();
  return absl::InternalError(fmt::format("the cloud has {} samples with sum {}; made were {} with sum {}", count, sum,
                                         made_.samples, made_.value_sum));
}

CapacityReport CapacityWorld::report(double drained_after_s) const {
  CapacityReport out;
  const double time_s = static_cast<double>(options_.time.count());
  out.nodes = static_cast<int>(nodes_.size());
  out.simulated_s = std::chrono::duration<double>(queue_.now() - begin_).count();
  out.samples = made_.charged;
  out.samples_asked = static_cast<std::uint64_t>(options_.rate * time_s * options_.sites * options_.edges);
  out.made = made_.samples;
  out.windows = cloud_disk_.windows.size();
  out.events = events_;
  out.drained_after_s = drained_after_s;
  constexpr model::Layer kOrder[] = {model::Layer::kEdge, model::Layer::kAggregator, model::Layer::kCloud};
  for (const model::Layer layer : kOrder) {
    const Totals& sums = totals_[static_cast<std::size_t>(layer)];
    LayerReport one;
    one.layer = std::string(model::to_string(layer));
    const double active_s = layer == model::Layer::kEdge ? time_s : out.simulated_s;
    std::uint64_t messages = 0;
    for (const auto& node : nodes_) {
      if (node->spec->layer != layer) continue;
      ++one.nodes;
      messages += node->messages;
      const double cpu = std::chrono::duration<double>(node->loop->spent()).count() / active_s;
      one.cpu_mean += cpu;
      one.cpu_max = std::max(one.cpu_max, cpu);
      const double bytes = static_cast<double>(node->link.bytes_up) / time_s;
      one.bytes_up_per_s += bytes;
      if (layer == model::Layer::kCloud) continue;
      const double use = bytes / static_cast<double>(node->link.bytes_per_s);
      one.link_mean += use;
      one.link_max = std::max(one.link_max, use);
    }
    if (one.nodes == 0) continue;
    one.cpu_mean /= one.nodes;
    one.link_mean /= one.nodes;
    one.messages_per_s = static_cast<double>(messages) / time_s;
    one.rows_per_s = static_cast<double>(sums.rows) / time_s;
    one.in_per_s =
        (layer == model::Layer::kEdge ? static_cast<double>(made_.charged) : static_cast<double>(sums.frames_in)) /
        time_s;
    one.lag_s = quantiles(sums.lag_s);
    one.outbox_bytes = sums.outbox_bytes;
    if (one.cpu_max > out.first_full_use) {
      out.first_full_use = one.cpu_max;
      out.first_full = fmt::format("processor of the busiest {}", one.layer);
    }
    if (one.link_max > out.first_full_use) {
      out.first_full_use = one.link_max;
      out.first_full = fmt::format("way up of the busiest {}", one.layer);
    }
    out.layers.push_back(std::move(one));
  }
  return out;
}

}  // namespace

absl::StatusOr<CapacityReport> run_capacity(const CapacityOptions& options) {
  return std::make_unique<CapacityWorld>(options)->run();
}

}  // namespace orla::sim
