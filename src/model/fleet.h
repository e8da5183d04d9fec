// A fleet file as plain values. Parsing and every check are in fleet_file.h; the table of settings is in settings.h.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/partial.h"
#include "model/time.h"
#include "model/window.h"

namespace orla::model {

enum class Layer : std::uint8_t { kEdge, kAggregator, kCloud };
constexpr std::string_view to_string(Layer layer) {
  switch (layer) {
    case Layer::kEdge:
      return "edge";
    case Layer::kAggregator:
      return "aggregator";
    case Layer::kCloud:
      return "cloud";
  }
  return "";
}
enum class Durability : std::uint8_t { kDisk, kMemory };
// What an edge does when its outbox is at its bound.
enum class OutboxFull : std::uint8_t { kBlock, kReject, kDropOldest };

struct SiteSpec {
  std::string name;
  std::optional<std::pair<double, double>> location;  // latitude, longitude in degrees
};

// The functions of a node. Paths are resolved relative to the fleet file.
struct GatewaySpec {
  std::string address;   // "127.0.0.1:8080"; empty = the node hosts none
  std::string metrics;   // a second address for /metrics; empty = none
  std::string auth;      // folder; empty = no authentication
  std::string images;    // folder; empty = native functions only
  std::string wasmtime;  // its library; empty = beside the program
  bool processes = false;
  std::vector<std::string> namespaces;  // beside the default one
  std::vector<std::string> callbacks_allowed;
  Duration upstream_timeout{};
  Duration drain_notice{};
  Duration drain_timeout{};
};

struct NodeSpec {
  std::string name;
  Layer layer = Layer::kEdge;
  std::string site;
  std::string listen;  // "127.0.0.1:7411"; port 0 = any free one; empty for an edge that has no children
  std::string http;    // "127.0.0.1:8411"; empty = no HTTP
  std::vector<std::vector<std::string>> parents;  // groups of node names in order of preference; empty for the cloud
  Durability durability = Durability::kDisk;
  // Of a disk edge: a commit is synced at once (0), at most so much later, or never (none).
  std::optional<Duration> fsync_delay = Duration::zero();
  OutboxFull outbox_full = OutboxFull::kBlock;
  GatewaySpec gateway;
  std::uint32_t shards = 1;  // of an edge's engine
};

struct MetricSpec {
  std::string name;
  std::string unit;
  int decimals = 0;
  Duration disorder{};
  Duration allowed_lateness{};
};

// How the columns of a CSV file become samples (schema = "mapping").
struct CsvMapping {
  bool header = true;
  char delimiter = ',';
  char decimal_mark = '.';
  std::string time_column;  // a header name, or a 1-based number as text; or several: "Date+Time"
  std::string time_format;  // "unix", "unix_ms", "unix_us", "unix_ns", "rfc3339" or a strptime-like format (%Y-%m-%d
                            // %H:%M:%S, %E*S ...)
  std::string time_zone;    // of times without an offset; an IANA name
  std::vector<std::string> missing;  // cells that mean "no value" (numbers by value): skipped, not counted
  struct LabelColumn {
    std::string label;
    std::string column;
  };
  std::vector<LabelColumn> labels;
  std::vector<std::pair<std::string, std::string>> constant_labels;
  struct ValueColumn {
    std::string metric;
    std::string column;
  };
  std::vector<ValueColumn> values;
};

struct GeneratorSpec {
  int houses = 40;
  std::uint64_t seed = 1;
  Time start{};       // 2013-09-01T00:00:00 Europe/Berlin by default
  Duration length{};  // > 0
};

struct InputSpec {
  enum class Kind : std::uint8_t { kCsv, kGenerator, kPush };
  std::string key;  // unique in the fleet and stable: "edge-1/0" (node, index among the node's inputs)
  std::string node;
  Kind kind = Kind::kCsv;
  std::string path;  // resolved relative to the fleet file
  enum class Schema : std::uint8_t { kDebs2014, kMapping };
  Schema schema = Schema::kDebs2014;
  CsvMapping mapping;
  GeneratorSpec generator;
  std::vector<std::string> metrics;  // push: those it may bring; all of the fleet unless said otherwise
  double speed = 0;                  // event seconds per second; 0 = as fast as possible
  // Row selection: label -> accepted values; rows of other series are not this input's and are not counted.
  std::map<std::string, std::vector<std::string>> select;
  Duration max_jump{};    // 0 = off; not of live inputs
  Duration future{};      // live inputs only
  Duration idle_after{};  // series and, at the cloud, edges
};

struct RollupSpec {
  std::string name;
  std::string metric;  // or
  std::string from;    // the name of another rollup
  std::vector<std::string> by;
  Duration slice{};
  std::vector<WindowSpec> windows;
  std::optional<Statistic> across;  // kSum kMin kMax kMean; nothing = merge
  Statistic of = Statistic::kMean;
  Duration emit{};        // 0 = only when published
  bool keep_raw = false;  // every sample of the metric travels to the cloud as well
  bool quantiles = false;
  std::vector<std::string> distinct;  // labels whose distinct combinations are counted
};

struct ForecastSpec {
  std::vector<std::string> of;  // rollups
  std::string model;            // "debs2014"
  std::vector<Duration> steps;
};

// A function that a node deploys at its start.
struct FunctionEntry {
  std::string node;
  std::string name;
  std::string space;  // the namespace
  std::string image;
  std::string env_process;
  std::map<std::string, std::string> environment;
  std::map<std::string, std::string> labels;
  std::map<std::string, std::string> annotations;
  std::vector<std::string> secrets;
  std::string memory;  // limits; empty = none
  std::string cpu;
};

struct Fleet {
  std::string name;
  std::string zone;  // IANA name
  Duration idle_after{};
  std::string directory;  // of the fleet file
  std::vector<SiteSpec> sites;
  std::vector<NodeSpec> nodes;
  std::vector<MetricSpec> metrics;
  std::vector<InputSpec> inputs;
  std::vector<RollupSpec> rollups;
  std::vector<ForecastSpec> forecasts;
  std::vector<FunctionEntry> functions;
  std::map<std::string, std::int64_t> limits;  // every bound by its setting's name, default filled in (see settings.h)

  const NodeSpec* node(std::string_view name) const;
  const MetricSpec* metric(std::string_view name) const;
  const RollupSpec* rollup(std::string_view name) const;
};

// Live inputs deliver what happens now: the node's clock is theirs, they do not end, and they cannot be read again.
// The others repeat what was recorded.
constexpr bool is_live(InputSpec::Kind kind) { return kind == InputSpec::Kind::kPush; }

// Metrics an input can produce: work and load for debs2014 and the generator, the mapped ones, those of a push input.
std::vector<std::string> metrics_of(const InputSpec& input);

}  // namespace orla::model
