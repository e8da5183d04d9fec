// Checks of [[function]]: each at a node that hosts functions, once.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "model/fleet_draft.h"

namespace orla::model {

void check_functions(const FleetDraft& draft, FleetErrors& errors) {
  const Fleet& fleet = draft.fleet;
  std::map<std::pair<std::string, std::string>, std::uint32_t> lines;  // by node and full name
  for (std::size_t i = 0; i < fleet.functions.size(); ++i) {
    const FunctionEntry& function = fleet.functions[i];
    const TreeValue& table = *draft.functions[i];
    if (function.node.empty() || function.name.empty()) continue;
    const NodeSpec* node = fleet.node(function.node);
    if (node == nullptr) {
      errors.add(place_of(table, "node"), fmt::format("unknown node {}", in_quotes(function.node)), "",
                 did_you_mean(function.node, names_of(fleet.nodes)));
      continue;
    }
    if (node->gateway.address.empty()) {
      errors.add(place_of(table, "node"), fmt::format("{} hosts no functions", in_quotes(function.node)),
                 "a node with a \"gateway\"", "add gateway = \"127.0.0.1:8080\" to it");
      continue;
    }
    const std::vector<std::string>& spaces = node->gateway.namespaces;
    if (table.find("namespace") != nullptr && function.space != find_setting("function", "namespace")->fallback &&
        std::find(spaces.begin(), spaces.end(), function.space) == spaces.end()) {
      errors.add(place_of(table, "namespace"),
                 fmt::format("{} has no namespace {}", in_quotes(function.node), in_quotes(function.space)), "",
                 "add it to the node's namespaces");
    }
    const Place place = place_of(table, "name");
    const auto [first, fresh] =
        lines.emplace(std::pair(function.node, function.name + "." + function.space), place.line);
    if (fresh) continue;
    errors.add(place, fmt::format("a second function {} at {}", in_quotes(function.name), in_quotes(function.node)),
               "one function of a name", fmt::format("the first is in line {}", first->second));
  }
}

}  // namespace orla::model
