// Loading a fleet file for a command, with its errors shown.
#pragma once

#include <optional>
#include <string>

#include "base/environment.h"
#include "model/fleet.h"

namespace orla::apps {

// Prints what is wrong to stderr and returns nothing when the file cannot be used.
std::optional<model::Fleet> load_fleet_or_complain(const std::string& path);

}  // namespace orla::apps
