// From the tree to values: which section holds what.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "model/fleet_draft.h"

namespace orla::model {
namespace {

using Kind = TreeValue::Kind;

constexpr std::array<std::string_view, 2> kSingle = {"fleet", "limits"};
constexpr std::array<std::string_view, 7> kRepeated = {"site",   "node",     "metric",  "input",
                                                       "rollup", "forecast", "function"};
// Keys of [[input]] that only a mapped CSV file has.
constexpr std::array<std::string_view, 8> kMappingKeys = {"time",   "labels",    "constants",    "values",
                                                          "header", "delimiter", "decimal_mark", "missing"};

// And those that make sense only where rows are read at a pace of their own, or can be passed over.
constexpr std::array<std::string_view, 6> kNotOfPush = {"path", "schema", "speed", "select", "max_jump", "generator"};

// Of [[node]], and nothing without a gateway.
constexpr std::array<std::string_view, 10> kOfGateway = {
    "gateway_metrics", "gateway_auth",      "images",           "wasmtime",     "processes",
    "namespaces",      "callbacks_allowed", "upstream_timeout", "drain_notice", "drain_timeout"};

class Reader {
 public:
  Reader(const TreeValue& tree, FleetErrors& errors) : tree_(tree), errors_(errors) {}

  FleetDraft read(const std::string& directory) {
    check_sections();
    draft_.fleet.directory = directory.empty() ? "." : directory;
    read_fleet();
    for (const TreeValue* table : draft_.sites = tables("site")) read_site(*table);
    for (const TreeValue* table : draft_.nodes = tables("node")) read_node(*table);
    for (const TreeValue* table : draft_.metrics = tables("metric")) read_metric(*table);
    for (const TreeValue* table : draft_.inputs = tables("input")) read_input(*table);
    for (const TreeValue* table : draft_.rollups = tables("rollup")) read_rollup(*table);
    for (const TreeValue* table : draft_.forecasts = tables("forecast")) read_forecast(*table);
    for (const TreeValue* table : draft_.functions = tables("function")) read_function(*table);
    read_limits();
    return std::move(draft_);
  }

 private:
  void check_sections() {
    std::vector<std::string> known(kSingle.begin(), kSingle.end());
    known.insert(known.end(), kRepeated.begin(), kRepeated.end());
    for (const TreeEntry& entry : tree_.entries) {
      if (std::find(known.begin(), known.end(), entry.key) == known.end()) {
        errors_.add(entry.place, fmt::format("unknown section {}", in_quotes(entry.key)), "",
                    did_you_mean(entry.key, known));
        continue;
      }
      const bool single = std::find(kSingle.begin(), kSingle.end(), entry.key) != kSingle.end();
      if (single && entry.value.kind != Kind::kTable) {
        errors_.add(entry.place, fmt::format("\"{}\" is {}", entry.key, describe(entry.value)),
                    fmt::format("one section [{}]", entry.key));
      }
      if (!single && entry.value.kind != Kind::kList) {
        errors_.add(entry.place, fmt::format("\"{}\" is {}", entry.key, describe(entry.value)),
                    fmt::format("sections [[{}]], in double brackets", entry.key));
      }
    }
  }

  // Sections in the wrong brackets are reported by check_sections and read all the same.
  const TreeValue* single(std::string_view name) const {
    const TreeValue* value = tree_.find(name);
    if (value != nullptr && value->kind == Kind::kList && !value->items.empty()) value = &value->items.front();
    return value != nullptr && value->kind == Kind::kTable ? value : nullptr;
  }

  std::vector<const TreeValue*> tables(std::string_view name) {
    std::vector<const TreeValue*> tables;
    const TreeValue* list = tree_.find(name);
    if (list == nullptr) return tables;
    if (list->kind == Kind::kTable) tables.push_back(list);
    for (const TreeValue& item : list->items) {
      if (item.kind == Kind::kTable) {
        tables.push_back(&item);
      } else {
        errors_.add(item.place, fmt::format("{} in \"{}\"", describe(item), name),
                    fmt::format("sections [[{}]]", name));
      }
    }
    return tables;
  }

  void read_fleet() {
    Fleet& fleet = draft_.fleet;
    draft_.fleet_table = single("fleet");
    if (draft_.fleet_table == nullptr) {
      if (tree_.find("fleet") == nullptr) {
        errors_.add_missing({}, "there is no section [fleet]", "", "begin the file with [fleet] and name = \"...\"");
      }
      fleet.zone = "UTC";
      fleet.idle_after = parse_duration(find_setting("fleet", "idle_after")->fallback).value();
      return;
    }
    SectionReader section("fleet", *draft_.fleet_table, errors_);
    fleet.name = section.text("name");
    fleet.zone = section.text("zone");
    fleet.idle_after = section.duration("idle_after");
  }

  void read_limits() {
    draft_.limits_table = single("limits");
    draft_.fleet.limits = default_limits();
    if (draft_.limits_table == nullptr) return;
    SectionReader section("limits", *draft_.limits_table, errors_);
    for (auto& [key, value] : draft_.fleet.limits) value = section.integer(key);
  }

  void read_site(const TreeValue& table) {
    SectionReader section("site", table, errors_);
    draft_.fleet.sites.push_back({section.text("name"), section.location("location")});
  }

  void read_node(const TreeValue& table) {
    SectionReader section("node", table, errors_);
    NodeSpec node;
    node.name = section.text("name");
    node.layer = static_cast<Layer>(section.choice("layer").value_or(0));
    node.site = section.text("site");
    node.listen = section.text("listen");
    node.http = section.text("http");
    node.parents = section.parents("parents");
    node.durability = static_cast<Durability>(section.choice("durability").value_or(0));
    if (section.has("durability") && node.layer != Layer::kEdge) {
      errors_.add(place_of(table, "durability"), "durability is for edges", "",
                  "leave it out: an aggregator keeps nothing on disk, the cloud always does");
    }
    node.outbox_full = static_cast<OutboxFull>(section.choice("outbox_full").value_or(0));
    if (section.has("outbox_full") && node.layer != Layer::kEdge) {
      errors_.add(place_of(table, "outbox_full"), "outbox_full is for edges", "",
                  "leave it out: aggregators hold what they are given credit for");
    }
    node.shards = static_cast<std::uint32_t>(section.integer("shards"));
    if (section.has("shards") && node.layer != Layer::kEdge) {
      errors_.add(place_of(table, "shards"), "shards is for edges", "",
                  "leave it out: only an edge's engine is cut into parts");
    }
    node.fsync_delay = read_fsync(section, table);
    if (section.has("fsync") && (node.layer != Layer::kEdge || node.durability == Durability::kMemory)) {
      errors_.add(place_of(table, "fsync"), "fsync is for edges with durability = \"disk\"", "", "leave it out");
    }
    read_gateway(section, node);
    draft_.fleet.nodes.push_back(std::move(node));
  }

  void read_gateway(SectionReader& section, NodeSpec& node) {
    GatewaySpec& gateway = node.gateway;
    gateway.address = section.text("gateway");
    gateway.metrics = section.text("gateway_metrics");
    gateway.auth = from_folder(section.text("gateway_auth"));
    gateway.images = from_folder(section.text("images"));
    gateway.wasmtime = from_folder(section.text("wasmtime"));
    gateway.processes = section.boolean("processes");
    gateway.namespaces = section.texts("namespaces");
    gateway.callbacks_allowed = section.texts("callbacks_allowed");
    gateway.upstream_timeout = section.duration("upstream_timeout");
    gateway.drain_notice = section.duration("drain_notice");
    gateway.drain_timeout = section.duration("drain_timeout");
    if (section.has("gateway")) return;
    for (const std::string_view key : kOfGateway) {
      if (!section.has(key)) continue;
      errors_.add(place_of(section.table(), key), fmt::format("\"{}\" of a node without \"gateway\"", key), "",
                  "add gateway = \"127.0.0.1:8080\", or leave it out");
    }
  }

  std::string from_folder(const std::string& path) const {
    const std::filesystem::path file(path);
    if (path.empty() || file.is_absolute() || draft_.fleet.directory == ".") return path;
    return (std::filesystem::path(draft_.fleet.directory) / file).string();
  }

  void read_function(const TreeValue& table) {
    SectionReader section("function", table, errors_);
    const auto read_map = [&](std::string_view key) {
      std::map<std::string, std::string> all;
      for (auto& [name, value] : section.pairs(key)) all.emplace(std::move(name), std::move(value));
      return all;
    };
    FunctionEntry function;
    function.node = section.text("node");
    function.name = section.text("name");
    function.space = section.text("namespace");
    function.image = section.text("image");
    function.env_process = section.text("env_process");
    function.environment = read_map("environment");
    function.labels = read_map("labels");
    function.annotations = read_map("annotations");
    function.secrets = section.texts("secrets");
    function.memory = section.text("memory");
    function.cpu = section.text("cpu");
    draft_.fleet.functions.push_back(std::move(function));
  }

  std::optional<Duration> read_fsync(SectionReader& section, const TreeValue& table) {
    const std::string text = section.text("fsync");
    if (text == "on") return Duration::zero();
    if (text == "off") return std::nullopt;
    const absl::StatusOr<Duration> delay = parse_duration(text);
    if (delay.ok() && *delay >= std::chrono::milliseconds(1) && *delay <= std::chrono::minutes(1)) return *delay;
    if (section.has("fsync")) {
      errors_.add(place_of(table, "fsync"), fmt::format("fsync is \"{}\"", text),
                  "on, off, or a duration of 1ms to 1m such as \"500ms\"");
    }
    return Duration::zero();
  }

  void read_metric(const TreeValue& table) {
    SectionReader section("metric", table, errors_);
    MetricSpec metric;
    metric.name = section.text("name");
    metric.unit = section.text("unit");
    metric.decimals = static_cast<int>(section.integer("decimals"));
    metric.disorder = section.duration("disorder");
    metric.allowed_lateness = section.duration("allowed_lateness");
    draft_.fleet.metrics.push_back(std::move(metric));
  }

  void read_input(const TreeValue& table) {
    SectionReader section("input", table, errors_);
    InputSpec input;
    input.node = section.text("node");
    const auto index = std::count_if(draft_.fleet.inputs.begin(), draft_.fleet.inputs.end(),
                                     [&](const InputSpec& other) { return other.node == input.node; });
    input.key = fmt::format("{}/{}", input.node, index);
    input.speed = section.number("speed");
    for (auto& [label, values] : section.selection("select")) input.select.emplace(label, std::move(values));
    input.max_jump = section.duration("max_jump");
    input.future = section.duration("future");
    input.idle_after = section.has("idle_after") ? section.duration("idle_after") : draft_.fleet.idle_after;
    input.schema = static_cast<InputSpec::Schema>(section.choice("schema").value_or(0));
    read_source(section, input);
    if (input.kind == InputSpec::Kind::kPush) {
      read_push(section, input);
    } else {
      read_mapping(section, input);
      read_generator(section, input);
      if (section.has("metrics")) {
        errors_.add(place_of(table, "metrics"), "\"metrics\" beside an input that is no push", "",
                    "leave it out: they follow from the file or the generator");
      }
    }
    draft_.fleet.inputs.push_back(std::move(input));
  }

  // Which kind of input it is, and that what that kind needs is there.
  void read_source(SectionReader& section, InputSpec& input) {
    const TreeValue& table = section.table();
    const std::string path = section.text("path");
    const bool said = section.has("kind");
    const auto kind = section.choice("kind");
    if (said && !kind) return;
    if (kind && static_cast<InputSpec::Kind>(*kind) == InputSpec::Kind::kPush) {
      input.kind = InputSpec::Kind::kPush;
      return;
    }
    input.kind = kind                                       ? static_cast<InputSpec::Kind>(*kind)
                 : path.empty() && section.has("generator") ? InputSpec::Kind::kGenerator
                                                            : InputSpec::Kind::kCsv;
    if (input.kind == InputSpec::Kind::kCsv) {
      if (path.empty() && section.has("path")) {
        errors_.add(place_of(table, "path"), "path is empty", "the name of a CSV file",
                    said ? "" : "or add generator = { for = \"1h\" } for made-up data in its place");
      } else if (path.empty()) {
        errors_.add_missing(table.place, "[[input]] has no \"path\"", "",
                            said ? "add it, for example path = \"data/plugs.csv.gz\""
                                 : "add it, or generator = { for = \"1h\" } for made-up data");
      }
      if (said && section.has("generator")) {
        errors_.add(place_of(table, "generator"), "generator beside kind = \"csv\"", "",
                    "leave out kind: an empty path then means the generator");
      }
      const std::filesystem::path file(path);
      input.path = file.is_absolute() || draft_.fleet.directory == "." || path.empty()
                       ? path
                       : (std::filesystem::path(draft_.fleet.directory) / file).string();
      return;
    }
    if (!path.empty()) {
      errors_.add(place_of(table, "path"), "path beside kind = \"generator\"", "", "a generator reads no file");
    }
    if (!section.has("generator")) {
      errors_.add_missing(table.place, "[[input]] of kind generator has no \"generator\"", "",
                          "add it, for example generator = { houses = 10, for = \"1h\" }");
    }
    if (said && input.schema == InputSpec::Schema::kMapping) {
      errors_.add(place_of(table, "schema"), "schema = \"mapping\" beside kind = \"generator\"", "\"debs2014\"");
    }
  }

  void read_push(SectionReader& section, InputSpec& input) {
    for (const std::string_view key : kNotOfPush) {
      if (!section.has(key)) continue;
      errors_.add(place_of(section.table(), key), fmt::format("\"{}\" beside kind = \"push\"", key), "",
                  "leave it out: a push input takes what senders write, as it comes");
    }
    for (const std::string_view key : kMappingKeys) {
      if (!section.has(key)) continue;
      errors_.add(place_of(section.table(), key), fmt::format("\"{}\" beside kind = \"push\"", key), "",
                  "leave it out: it is for CSV files");
    }
    input.metrics = section.has("metrics") ? section.texts("metrics") : names_of(draft_.fleet.metrics);
  }

  void read_mapping(SectionReader& section, InputSpec& input) {
    const TreeValue& table = section.table();
    if (input.schema != InputSpec::Schema::kMapping) {
      for (const std::string_view key : kMappingKeys) {
        if (!section.has(key)) continue;
        errors_.add(place_of(table, key), fmt::format("\"{}\" beside schema = \"debs2014\"", key), "",
                    "add schema = \"mapping\", or leave it out");
      }
      return;
    }
    CsvMapping& mapping = input.mapping;
    mapping.header = section.boolean("header");
    mapping.delimiter = section.character("delimiter");
    mapping.decimal_mark = section.choice("decimal_mark").value_or(0) == 0 ? '.' : ',';
    mapping.missing = section.texts("missing");
    mapping.time_zone = draft_.fleet.zone;
    if (const TreeValue* time = table.find("time"); time == nullptr) {
      errors_.add_missing(table.place, "schema = \"mapping\" without \"time\"", "",
                          "add, for example, time = { column = \"timestamp\", format = \"unix\" }");
    } else if (time->kind != Kind::kTable) {
      errors_.add(time->place, fmt::format("time is {}", describe(*time)),
                  "a table, such as { column = \"timestamp\", format = \"unix\" }");
    } else {
      SectionReader inner("input.time", *time, errors_);
      const TreeValue* column = time->find("column");
      const bool number = column != nullptr && column->kind == Kind::kInteger;
      mapping.time_column = number ? fmt::format("{}", column->integer) : inner.text("column");
      mapping.time_format = inner.text("format");
      if (inner.has("zone")) mapping.time_zone = inner.text("zone");
    }
    for (auto& [label, column] : section.pairs("labels")) mapping.labels.push_back({label, column});
    mapping.constant_labels = section.pairs("constants");
    for (auto& [metric, column] : section.pairs("values")) mapping.values.push_back({metric, column});
    if (mapping.values.empty()) {
      errors_.add_missing(place_of(table, "values"), "schema = \"mapping\" without \"values\"", "",
                          "add, for example, values = { load = \"w1\" }");
    }
  }

  void read_generator(SectionReader& section, InputSpec& input) {
    const TreeValue* table = section.table().find("generator");
    if (table == nullptr) return;
    if (table->kind != Kind::kTable) {
      errors_.add(table->place, fmt::format("generator is {}", describe(*table)),
                  "a table, such as { houses = 10, for = \"1h\" }");
      return;
    }
    SectionReader inner("input.generator", *table, errors_);
    input.generator.houses = static_cast<int>(inner.integer("houses"));
    input.generator.seed = static_cast<std::uint64_t>(inner.integer("seed"));
    input.generator.start = inner.time("start", draft_.fleet.zone);
    input.generator.length = inner.duration("for");
  }

  void read_rollup(const TreeValue& table) {
    SectionReader section("rollup", table, errors_);
    RollupSpec rollup;
    rollup.name = section.text("name");
    rollup.metric = section.text("metric");
    rollup.from = section.text("from");
    rollup.by = section.texts("by");
    rollup.slice = section.duration("slice");
    rollup.windows = section.windows("windows");
    if (const auto across = section.choice("across")) {
      constexpr std::array kAcross = {Statistic::kSum, Statistic::kMin, Statistic::kMax, Statistic::kMean};
      rollup.across = kAcross[*across];
    }
    constexpr std::array kOf = {Statistic::kMean, Statistic::kSum, Statistic::kMin, Statistic::kMax, Statistic::kLast};
    rollup.of = kOf[section.choice("of").value_or(0)];
    rollup.emit = section.duration("emit");
    rollup.keep_raw = section.choice("keep").value_or(0) == 1;
    rollup.quantiles = section.boolean("quantiles");
    rollup.distinct = section.texts("distinct");
    draft_.fleet.rollups.push_back(std::move(rollup));
  }

  void read_forecast(const TreeValue& table) {
    SectionReader section("forecast", table, errors_);
    ForecastSpec forecast;
    forecast.of = section.texts("of");
    forecast.model = choices_of(*find_setting("forecast", "model"))[section.choice("model").value_or(0)];
    forecast.steps = section.durations("steps");
    draft_.fleet.forecasts.push_back(std::move(forecast));
  }

  const TreeValue& tree_;
  FleetErrors& errors_;
  FleetDraft draft_;
};

}  // namespace

FleetDraft read_draft(const TreeValue& tree, const std::string& directory, FleetErrors& errors) {
  return Reader(tree, errors).read(directory);
}

std::vector<std::string> labels_of(const InputSpec& input) {
  if (input.kind == InputSpec::Kind::kGenerator || input.schema == InputSpec::Schema::kDebs2014) {
    return {"house", "household", "plug"};
  }
  std::vector<std::string> labels;
  for (const CsvMapping::LabelColumn& label : input.mapping.labels) labels.push_back(label.label);
  for (const auto& [label, value] : input.mapping.constant_labels) labels.push_back(label);
  return labels;
}

}  // namespace orla::model
