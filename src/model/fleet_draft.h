// A fleet while it is read: its values, and where in the file each came from.
#pragma once

#include <vector>

#include "model/fleet.h"
#include "model/fleet_section.h"
#include "model/fleet_tree.h"

namespace orla::model {

// Borrows the tree. `nodes[i]` is the table fleet.nodes[i] was read from, and so on.
struct FleetDraft {
  Fleet fleet;
  const TreeValue* fleet_table = nullptr;   // null: there is no [fleet]
  const TreeValue* limits_table = nullptr;  // null: there is no [limits]
  std::vector<const TreeValue*> sites;
  std::vector<const TreeValue*> nodes;
  std::vector<const TreeValue*> metrics;
  std::vector<const TreeValue*> inputs;
  std::vector<const TreeValue*> rollups;
  std::vector<const TreeValue*> forecasts;
  std::vector<const TreeValue*> functions;
};

// Values as they stand; names that refer to nothing and the like are for the checks.
FleetDraft read_draft(const TreeValue& tree, const std::string& directory, FleetErrors& errors);

// One of each concern. Rollups inherit slice and windows there, so it completes the draft.
void check_names_and_limits(const FleetDraft& draft, FleetErrors& errors);
void check_nodes(const FleetDraft& draft, FleetErrors& errors);
void check_inputs(const FleetDraft& draft, FleetErrors& errors);
void complete_rollups(FleetDraft& draft, FleetErrors& errors);
void check_functions(const FleetDraft& draft, FleetErrors& errors);
void check_forecasts(const FleetDraft& draft, FleetErrors& errors);

// The labels that series of an input can have. Not of a push input, whose senders choose them.
std::vector<std::string> labels_of(const InputSpec& input);

template <typename T>
std::vector<std::string> names_of(const std::vector<T>& things) {
  std::vector<std::string> names;
  for (const T& thing : things) {
    if (!thing.name.empty()) names.push_back(thing.name);
  }
  return names;
}

}  // namespace orla::model
