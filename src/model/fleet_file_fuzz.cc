// Any text is either a fleet, which can be planned, or has errors, which can be printed.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "model/fleet_file.h"
#include "model/plan.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace orla::model;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const ParsedFleet parsed = parse_fleet(text, "fleet.toml", [](std::string_view name) -> std::optional<std::string> {
    if (name == "SET") return "value";
    return std::nullopt;
  });
  if (parsed.fleet.has_value() == !parsed.errors.empty()) std::abort();
  if (parsed.fleet) {
    const Plan plan = make_plan(*parsed.fleet);
    if (plan.tables.size() < parsed.fleet->rollups.size()) std::abort();
    return 0;
  }
  for (const FleetError& error : parsed.errors) {
    if (to_string(error).empty() || error.found.empty()) std::abort();
  }
  return 0;
}
