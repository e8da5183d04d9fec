// Checks of names, limits and nodes: one declaration each, and a tree that leads to one cloud.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "model/address.h"
#include "model/fleet_draft.h"
#include "model/zone.h"

namespace orla::model {
namespace {

template <typename T>
void check_unique(std::string_view what, const std::vector<T>& things, const std::vector<const TreeValue*>& tables,
                  FleetErrors& errors) {
  std::map<std::string, std::uint32_t> lines;
  for (std::size_t i = 0; i < things.size(); ++i) {
    if (things[i].name.empty()) continue;
    const Place place = place_of(*tables[i], "name");
    const auto [first, fresh] = lines.emplace(things[i].name, place.line);
    if (fresh) continue;
    errors.add(place, fmt::format("a second {} {}", what, in_quotes(things[i].name)),
               fmt::format("one {} of a name", what), fmt::format("the first is in line {}", first->second));
  }
}

void check_limits(const FleetDraft& draft, FleetErrors& errors) {
  if (draft.limits_table == nullptr) return;
  const auto ordered = [&](const char* smaller, const char* larger, bool strictly) {
    const std::int64_t low = draft.fleet.limits.at(smaller);
    const std::int64_t high = draft.fleet.limits.at(larger);
    if (strictly ? low < high : low <= high) return;
    const char* written = draft.limits_table->find(larger) != nullptr ? larger : smaller;
    errors.add(place_of(*draft.limits_table, written),
               fmt::format("{} = {} beside {} = {}", larger, high, smaller, low),
               fmt::format("{} {} {}", larger, strictly ? "above" : "at least", smaller));
  };
  ordered("heartbeat_ms", "parent_timeout_ms", true);
  ordered("reconnect_min_ms", "reconnect_max_ms", false);
  ordered("frame_bytes", "credit_bytes", false);
}

class NodeChecks {
 public:
  NodeChecks(const FleetDraft& draft, FleetErrors& errors) : draft_(draft), fleet_(draft.fleet), errors_(errors) {}

  void run() {
    std::size_t clouds = 0;
    bool layers_known = true;
    for (std::size_t i = 0; i < fleet_.nodes.size(); ++i) {
      check_site(i);
      check_address(i, "listen", fleet_.nodes[i].listen);
      check_address(i, "http", fleet_.nodes[i].http);
      check_address(i, "gateway", fleet_.nodes[i].gateway.address);
      check_address(i, "gateway_metrics", fleet_.nodes[i].gateway.metrics);
      if (!layer_known(i)) {
        layers_known = false;
        continue;
      }
      if (fleet_.nodes[i].layer == Layer::kCloud && ++clouds > 1) {
        errors_.add(place_of(table(i), "layer"), fmt::format("{} is a second cloud", in_quotes(fleet_.nodes[i].name)),
                    "exactly one node of layer cloud");
      }
      check_parents(i);
      check_inputs_of(i);
    }
    if (clouds == 0 && layers_known) {
      errors_.add_missing({}, "the fleet has no cloud", "exactly one [[node]] with layer = \"cloud\"");
    }
    check_cycles();
  }

 private:
  const TreeValue& table(std::size_t node) const { return *draft_.nodes[node]; }

  bool layer_known(std::size_t node) const {
    const TreeValue* value = table(node).find("layer");
    const std::vector<std::string> layers = choices_of(*find_setting("node", "layer"));
    return value != nullptr && value->kind == TreeValue::Kind::kText &&
           std::find(layers.begin(), layers.end(), value->text) != layers.end();
  }

  void check_site(std::size_t i) {
    const std::string& site = fleet_.nodes[i].site;
    const std::vector<std::string> known = names_of(fleet_.sites);
    if (site.empty() || std::find(known.begin(), known.end(), site) != known.end()) return;
    errors_.add(
        place_of(table(i), "site"), fmt::format("unknown site {}", in_quotes(site)), "",
        known.empty() ? fmt::format("declare it: [[site]] name = {}", in_quotes(site)) : did_you_mean(site, known));
  }

  void check_address(std::size_t i, std::string_view key, const std::string& text) {
    if (!table(i).find(key) || (text.empty() && table(i).find(key)->kind != TreeValue::Kind::kText)) return;
    const Place place = place_of(table(i), key);
    const absl::StatusOr<Address> address = parse_address(text);
    if (!address.ok()) {
      const std::string message(address.status().message());
      const std::size_t cut = message.find("; expected ");
      errors_.add(place, fmt::format("{}: {}", key, message.substr(0, cut)), message.substr(cut + 11));
      return;
    }
    if (address->port == 0) return;
    const auto [first, fresh] =
        addresses_.emplace(std::pair(address->host, address->port), std::pair(place.line, fleet_.nodes[i].name));
    if (fresh) return;
    errors_.add(place, fmt::format("address {} is taken", in_quotes(text)), "an address of its own",
                fmt::format("{} has it in line {}", in_quotes(first->second.second), first->second.first));
  }

  void check_parents(std::size_t i) {
    const NodeSpec& node = fleet_.nodes[i];
    const TreeValue* list = table(i).find("parents");
    if (node.layer == Layer::kCloud) {
      if (list != nullptr && !node.parents.empty()) {
        errors_.add(list->place, "the cloud has parents", "none: everything leads to the cloud");
      }
      return;
    }
    if (list == nullptr || (node.parents.empty() && list->items.empty())) {
      errors_.add_missing(list == nullptr ? table(i).place : list->place,
                          fmt::format("{} has no parents", in_quotes(node.name)),
                          "at least one node of the layer above", "add, for example, parents = [\"cloud\"]");
      return;
    }
    std::set<std::string> seen;
    for (std::size_t g = 0; g < node.parents.size(); ++g) {
      for (std::size_t m = 0; m < node.parents[g].size(); ++m) {
        const std::string& name = node.parents[g][m];
        if (!name.empty()) check_parent(node, name, parent_place(*list, g, m), seen.insert(name).second);
      }
    }
  }

  static Place parent_place(const TreeValue& list, std::size_t group, std::size_t member) {
    if (group >= list.items.size()) return list.place;
    const TreeValue& item = list.items[group];
    return member < item.items.size() ? item.items[member].place : item.place;
  }

  void check_parent(const NodeSpec& child, const std::string& name, Place place, bool first) {
    if (!first) {
      errors_.add(place, fmt::format("parent {} is named twice", in_quotes(name)), "each parent once");
      return;
    }
    const NodeSpec* parent = fleet_.node(name);
    if (parent == nullptr) {
      std::vector<std::string> known;
      for (const NodeSpec& node : fleet_.nodes) {
        if (node.layer != Layer::kEdge && node.name != child.name && !node.name.empty()) known.push_back(node.name);
      }
      errors_.add(place, fmt::format("unknown parent {}", in_quotes(name)), "", did_you_mean(name, known));
      return;
    }
    const auto index = static_cast<std::size_t>(parent - fleet_.nodes.data());
    if (!layer_known(index)) return;
    if (parent->layer == Layer::kEdge) {
      errors_.add(place, fmt::format("parent {} is an edge", in_quotes(name)), "an aggregator or the cloud");
    } else if (parent->listen.empty() && table(index).find("listen") == nullptr) {
      errors_.add(
          place, fmt::format("parent {} has no \"listen\"", in_quotes(name)), "an address its children can reach",
          fmt::format("add listen = \"127.0.0.1:7410\" to {} in line {}", in_quotes(name), table(index).place.line));
    }
  }

  void check_inputs_of(std::size_t i) {
    const NodeSpec& node = fleet_.nodes[i];
    if (node.layer != Layer::kEdge || node.name.empty()) return;
    const bool has = std::any_of(fleet_.inputs.begin(), fleet_.inputs.end(),
                                 [&](const InputSpec& input) { return input.node == node.name; });
    if (has) return;
    errors_.add_missing(table(i).place, fmt::format("edge {} has no input", in_quotes(node.name)),
                        "at least one [[input]]", fmt::format("add an [[input]] with node = {}", in_quotes(node.name)));
  }

  // Depth first over parents; each cycle is reported once, where the first of its nodes in the file names its parents.
  void check_cycles() {
    enum class Mark : std::uint8_t { kNew, kOpen, kDone };
    std::vector<Mark> marks(fleet_.nodes.size(), Mark::kNew);
    struct Visit {
      std::size_t node;
      std::vector<std::size_t> parents;
      std::size_t next = 0;
    };
    for (std::size_t start = 0; start < fleet_.nodes.size(); ++start) {
      if (marks[start] != Mark::kNew) continue;
      std::vector<Visit> path = {{start, parents_of(start)}};
      marks[start] = Mark::kOpen;
      while (!path.empty()) {
        Visit& top = path.back();
        if (top.next == top.parents.size()) {
          marks[top.node] = Mark::kDone;
          path.pop_back();
          continue;
        }
        const std::size_t parent = top.parents[top.next++];
        if (marks[parent] == Mark::kNew) {
          marks[parent] = Mark::kOpen;
          path.push_back({parent, parents_of(parent)});
        } else if (marks[parent] == Mark::kOpen) {
          std::vector<std::size_t> cycle;
          std::size_t at = path.size();
          do cycle.push_back(path[--at].node);
          while (path[at].node != parent);
          report_cycle({cycle.rbegin(), cycle.rend()});
        }
      }
    }
  }

  std::vector<std::size_t> parents_of(std::size_t i) const {
    std::vector<std::size_t> parents;
    for (const std::vector<std::string>& group : fleet_.nodes[i].parents) {
      for (const std::string& name : group) {
        if (const NodeSpec* parent = fleet_.node(name)) {
          parents.push_back(static_cast<std::size_t>(parent - fleet_.nodes.data()));
        }
      }
    }
    return parents;
  }

  void report_cycle(std::vector<std::size_t> cycle) {
    std::rotate(cycle.begin(), std::min_element(cycle.begin(), cycle.end()), cycle.end());
    std::string text;
    for (const std::size_t node : cycle) text += fleet_.nodes[node].name + " -> ";
    errors_.add(place_of(table(cycle.front()), "parents"),
                fmt::format("parents form a cycle: {}{}", text, fleet_.nodes[cycle.front()].name),
                "parents that lead to the cloud");
  }

  const FleetDraft& draft_;
  const Fleet& fleet_;
  FleetErrors& errors_;
  std::map<std::pair<std::string, std::uint16_t>, std::pair<std::uint32_t, std::string>> addresses_;
};

class InputChecks {
 public:
  InputChecks(const FleetDraft& draft, FleetErrors& errors) : draft_(draft), fleet_(draft.fleet), errors_(errors) {}

  void run() {
    for (std::size_t i = 0; i < fleet_.inputs.size(); ++i) {
      check_node(i);
      if (fleet_.inputs[i].kind == InputSpec::Kind::kPush) {
        check_push(i);
        continue;
      }
      check_select(i);
      if (fleet_.inputs[i].schema == InputSpec::Schema::kMapping) check_mapping(i);
    }
  }

 private:
  const TreeValue& table(std::size_t input) const { return *draft_.inputs[input]; }

  void check_node(std::size_t i) {
    const std::string& name = fleet_.inputs[i].node;
    if (name.empty()) return;
    const NodeSpec* node = fleet_.node(name);
    if (node == nullptr) {
      std::vector<std::string> edges;
      for (const NodeSpec& other : fleet_.nodes) {
        if (other.layer == Layer::kEdge && !other.name.empty()) edges.push_back(other.name);
      }
      errors_.add(place_of(table(i), "node"), fmt::format("unknown node {}", in_quotes(name)), "",
                  did_you_mean(name, edges));
    } else if (node->layer != Layer::kEdge) {
      errors_.add(
          place_of(table(i), "node"),
          fmt::format("{} is {}", in_quotes(name), node->layer == Layer::kCloud ? "the cloud" : "an aggregator"),
          "an edge: only edges have inputs");
    }
  }

  void check_push(std::size_t i) {
    const InputSpec& input = fleet_.inputs[i];
    for (std::size_t k = 0; k < i; ++k) {
      if (fleet_.inputs[k].kind != InputSpec::Kind::kPush || fleet_.inputs[k].node != input.node || input.node.empty())
        continue;
      errors_.add(place_of(table(i), "kind"), fmt::format("a second push input of {}", in_quotes(input.node)),
                  "one per edge: senders tell their series apart by tags",
                  fmt::format("the first is in line {}", table(k).place.line));
      break;
    }
    if (table(i).find("metrics") == nullptr) return;
    const std::vector<std::string> known = names_of(fleet_.metrics);
    for (std::size_t k = 0; k < input.metrics.size(); ++k) {
      const std::string& metric = input.metrics[k];
      if (metric.empty() || std::find(known.begin(), known.end(), metric) != known.end()) continue;
      errors_.add(place_of(table(i), "metrics", k), fmt::format("unknown metric {}", in_quotes(metric)), "",
                  known.empty() ? fmt::format("declare it: [[metric]] name = {}", in_quotes(metric))
                                : did_you_mean(metric, known));
    }
  }

  void check_select(std::size_t i) {
    const std::vector<std::string> labels = labels_of(fleet_.inputs[i]);
    const TreeValue* select = table(i).find("select");
    if (select == nullptr) return;
    for (const TreeEntry& entry : select->entries) {
      if (std::find(labels.begin(), labels.end(), entry.key) != labels.end()) continue;
      errors_.add(entry.place, fmt::format("select by unknown label {}", in_quotes(entry.key)), "",
                  did_you_mean(entry.key, labels));
    }
  }

  void check_mapping(std::size_t i) {
    const CsvMapping& mapping = fleet_.inputs[i].mapping;
    check_values(i);
    check_time(i);
    check_columns(i, "labels");
    check_columns(i, "values");
    if (const TreeValue* constants = table(i).find("constants")) {
      for (const TreeEntry& entry : constants->entries) {
        const bool twice = std::any_of(mapping.labels.begin(), mapping.labels.end(),
                                       [&](const CsvMapping::LabelColumn& label) { return label.label == entry.key; });
        if (twice) {
          errors_.add(entry.place, fmt::format("label {} is in \"labels\" too", in_quotes(entry.key)),
                      "each label once");
        }
      }
    }
    const char d = mapping.delimiter;
    if (d == mapping.decimal_mark) {
      errors_.add(place_of(table(i), table(i).find("delimiter") ? "delimiter" : "decimal_mark"),
                  "delimiter and decimal_mark are the same character", "two different ones",
                  "files with a decimal comma usually have delimiter = \";\"");
    } else if (d == '"' || d == '\n' || d == '\r' || d == '\0' || (d >= '0' && d <= '9') || d == '-' || d == '+') {
      errors_.add(place_of(table(i), "delimiter"), fmt::format("delimiter is {}", in_quotes(std::string_view(&d, 1))),
                  "a character that occurs in no number and is no quote or line end");
    }
  }

  void check_values(std::size_t i) {
    const TreeValue* values = table(i).find("values");
    if (values == nullptr) return;
    const std::vector<std::string> known = names_of(fleet_.metrics);
    for (const TreeEntry& entry : values->entries) {
      if (std::find(known.begin(), known.end(), entry.key) != known.end()) continue;
      errors_.add(entry.place, fmt::format("unknown metric {}", in_quotes(entry.key)), "",
                  known.empty() ? fmt::format("declare it: [[metric]] name = {}", in_quotes(entry.key))
                                : did_you_mean(entry.key, known));
    }
  }

  void check_time(std::size_t i) {
    const CsvMapping& mapping = fleet_.inputs[i].mapping;
    const TreeValue* time = table(i).find("time");
    if (time == nullptr || time->kind != TreeValue::Kind::kTable) return;
    static const std::vector<std::string> kFormats = {"unix", "unix_ms", "unix_us", "unix_ns", "rfc3339"};
    const std::string& format = mapping.time_format;
    if (std::find(kFormats.begin(), kFormats.end(), format) == kFormats.end() &&
        format.find('%') == std::string::npos) {
      const std::string near = nearest(format, kFormats);
      errors_.add(place_of(*time, "format"), fmt::format("format is {}", in_quotes(format)),
                  "unix, unix_ms, unix_us, unix_ns, rfc3339 or a pattern such as \"%Y-%m-%d %H:%M:%S\"",
                  near.empty() ? "" : fmt::format("did you mean {}?", in_quotes(near)));
    }
    if (time->find("zone") != nullptr && !utc_offsets(mapping.time_zone).ok()) {
      errors_.add(place_of(*time, "zone"), fmt::format("unknown time zone {}", in_quotes(mapping.time_zone)),
                  "an IANA name such as \"Europe/Berlin\" or \"UTC\"");
    }
    check_column(mapping, "column", mapping.time_column, place_of(*time, "column"));
  }

  void check_columns(std::size_t i, std::string_view key) {
    const TreeValue* columns = table(i).find(key);
    if (columns == nullptr) return;
    for (const TreeEntry& entry : columns->entries) {
      const TreeValue& value = entry.value;
      if (value.kind != TreeValue::Kind::kText && value.kind != TreeValue::Kind::kInteger) continue;
      const std::string column = value.kind == TreeValue::Kind::kText ? value.text : fmt::format("{}", value.integer);
      check_column(fleet_.inputs[i].mapping, fmt::format("{}.{}", key, entry.key), column, value.place);
    }
  }

  void check_column(const CsvMapping& mapping, std::string_view what, const std::string& column, Place place) {
    const bool number = !column.empty() && column.size() <= 5 && column.find_first_not_of("0123456789") == column.npos;
    if (column.empty() || (number && std::stoi(column) == 0)) {
      errors_.add(place, fmt::format("{} is {}", what, in_quotes(column)),
                  "a name of the header line or a number from 1");
    } else if (!mapping.header && !number) {
      errors_.add(place, fmt::format("{} is {} in a file without a header line", what, in_quotes(column)),
                  "the number of a column, from 1");
    }
  }

  const FleetDraft& draft_;
  const Fleet& fleet_;
  FleetErrors& errors_;
};

}  // namespace

void check_names_and_limits(const FleetDraft& draft, FleetErrors& errors) {
  check_unique("site", draft.fleet.sites, draft.sites, errors);
  check_unique("node", draft.fleet.nodes, draft.nodes, errors);
  check_unique("metric", draft.fleet.metrics, draft.metrics, errors);
  check_unique("rollup", draft.fleet.rollups, draft.rollups, errors);
  check_limits(draft, errors);
  if (draft.fleet_table == nullptr || utc_offsets(draft.fleet.zone).ok()) return;
  errors.add(place_of(*draft.fleet_table, "zone"), fmt::format("unknown time zone {}", in_quotes(draft.fleet.zone)),
             "an IANA name such as \"Europe/Berlin\" or \"UTC\"",
             utc_offsets("Europe/Berlin").ok() ? "" : "this machine knows none: install the package tzdata");
}

void check_nodes(const FleetDraft& draft, FleetErrors& errors) { NodeChecks(draft, errors).run(); }
void check_inputs(const FleetDraft& draft, FleetErrors& errors) { InputChecks(draft, errors).run(); }

}  // namespace orla::model
